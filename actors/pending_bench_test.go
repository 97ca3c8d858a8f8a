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
	"time"

	"parley"
	"parley/actors/view"
	"parley/internal/eventually"
)

// BenchmarkPendingAsks measures the memory that an open form adds, both copies included: 64 agents ask one host, which
// answers nothing. It decodes the fields for each ask, as an edge of the node does. The first tenth of the forms counts
// for what the node itself takes. live-B/form is on the heap after a collection, and rss-B/form is resident. With waiters,
// a function waits for each outcome. Both are measured after the time PENDING_REST without mail: the log's server keeps what
// was written last for some ten seconds. PARLEY_BENCH_HEAP names a file for a heap profile.
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
	n := openQuiet(b)
	guests := make([]*Agent, 64)
	for i := range guests {
		guests[i] = guest(b, n, fmt.Sprint("guest", i))
	}
	askPending(b, guests, 0, forms/10, waiting)
	rest(b, "PENDING_REST")
	live, rss := memoryUse()
	askPending(b, guests, forms/10, forms, waiting)
	rest(b, "PENDING_REST")
	nowLive, nowRSS := memoryUse()
	b.ReportMetric(float64(nowLive-live)/float64(forms-forms/10), "live-B/form")
	b.ReportMetric(float64(nowRSS-rss)/float64(forms-forms/10), "rss-B/form")
	if profile := os.Getenv("PARLEY_BENCH_HEAP"); profile != "" {
		writeHeap(b, profile)
	}
}

// askPending asks the forms from a number to another.
func askPending(b *testing.B, guests []*Agent, from, to int, waiting bool) {
	b.Helper()
	var ended func(view.Outcome, error)
	if waiting {
		ended = func(view.Outcome, error) {}
	}
	var asking sync.WaitGroup
	for i, g := range guests {
		asking.Go(func() {
			done := make(chan error, 1)
			for f := from + i; f < to; f += len(guests) {
				fields, err := parley.ParseFields([]byte(pendingFields))
				if err != nil {
					b.Error(err)
					return
				}
				ask := parley.Form{To: "HOST", Title: fmt.Sprint("Question ", f), Description: fmt.Sprint("Configure the settings of project ", f), Fields: fields}
				BeginAsk(g, ask, func(_ view.Asked, err error) { done <- err }, ended)
				if err := <-done; err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	asking.Wait()
	eventually.Holds(b, "no snapshot is written", guests[0].node.snapshots.idle)
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

// rest sleeps for the time in a variable, and reports whether there is one.
func rest(b *testing.B, variable string) bool {
	b.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return false
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(d)
	return true
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

// idle reports whether no snapshot is being made or written.
func (s *snapshots) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.taken
}
