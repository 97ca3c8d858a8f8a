package actors

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/actors/view"
	"parley/mailbox/form"
)

// BenchmarkPendingAsks measures the memory of open forms: 64 agents ask one host, which answers nothing. It decodes the
// fields for each ask, as an edge of the node does. live-B/form is what the heap has after a collection, both copies
// included; rss-B/form is the resident memory after one. With waiters, a function waits for each outcome.
func BenchmarkPendingAsks(b *testing.B) {
	for _, waiting := range []bool{false, true} {
		for _, forms := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("waiters=%t/forms=%d", waiting, forms), func(b *testing.B) {
				for range b.N {
					pendingAsks(b, forms, waiting)
				}
			})
		}
	}
}

const pendingFields = `[
	{"name":"projectName","label":"Project name","type":"text","required":true},
	{"name":"port","label":"Port","type":"number","help":"The port on which the project listens"},
	{"name":"mode","type":"select","options":[{"value":"dev","label":"Development"},{"value":"prod","label":"Production"}]}
]`

func pendingAsks(b *testing.B, forms int, waiting bool) {
	const callers = 64
	n := openQuiet(b)
	guests := make([]*Agent, callers)
	for i := range guests {
		guests[i] = guest(b, n, fmt.Sprint("guest", i))
	}
	live, rss := memoryUse()
	var asking sync.WaitGroup
	for i, g := range guests {
		asking.Go(func() {
			done := make(chan error, 1)
			for f := i; f < forms; f += callers {
				fields, err := form.ParseFields([]byte(pendingFields))
				if err != nil {
					b.Error(err)
					return
				}
				ask := Ask{To: "HOST", Title: fmt.Sprint("Question ", f), Description: fmt.Sprint("Configure the settings of project ", f), Fields: fields}
				var ended func(view.Outcome, error)
				if waiting {
					ended = func(view.Outcome, error) {}
				}
				g.Async().Ask(ask, func(_ view.Asked, err error) { done <- err }, ended)
				if err := <-done; err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	asking.Wait()
	nowLive, nowRSS := memoryUse()
	b.ReportMetric(float64(nowLive-live)/float64(forms), "live-B/form")
	b.ReportMetric(float64(nowRSS-rss)/float64(forms), "rss-B/form")
	if profile := os.Getenv("PENDING_PROFILE"); profile != "" {
		writeHeap(b, profile)
	}
	if n.State().OpenForms != forms {
		b.Fatalf("%d forms are open", n.State().OpenForms)
	}
}

// openQuiet opens a node that the benchmark closes itself.
func openQuiet(b *testing.B) *Node {
	b.Helper()
	folder := filepath.Join(b.TempDir(), "node")
	n, err := Open(b.Context(), Options{Folder: folder})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { closeNode(b, n) })
	return n
}

// memoryUse returns the bytes that live on the heap, and the resident bytes, after a collection.
func memoryUse() (live, rss int64) {
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	status, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		pages, _ := strconv.ParseInt(strings.Fields(string(status))[1], 10, 64)
		rss = pages * int64(os.Getpagesize())
	}
	return int64(m.HeapAlloc), rss
}

func writeHeap(b *testing.B, file string) {
	b.Helper()
	f, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := pprof.WriteHeapProfile(f); err != nil {
		b.Fatal(err)
	}
}
