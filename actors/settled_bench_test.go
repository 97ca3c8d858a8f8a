package actors

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley/actors/view"
	"parley/capabilities"
)

// BenchmarkSettledForms measures how the cost of one host grows with the forms that it has settled. 64 agents ask and
// the host answers. Then one caller makes 200 cycles, the host lists what is pending, the first and the last page of
// its inbox, and reads an old form; the node is closed and opened again, and the host is visited. live-B/form counts
// both copies. SETTLED is the largest number of forms, 10,000 by
// default, and SETTLED_PROFILE a file for a heap profile. rest-MiB is what lives after the time SETTLED_REST without mail:
// the log's server keeps what was written last for some ten seconds. With SETTLED_KEYS, four agents ask, and each form
// has an idempotency key.
func BenchmarkSettledForms(b *testing.B) {
	most := 10_000
	if text := os.Getenv("SETTLED"); text != "" {
		most, _ = strconv.Atoi(text)
	}
	for forms := 1000; forms <= most; forms *= 10 {
		b.Run(fmt.Sprintf("forms=%d", forms), func(b *testing.B) {
			for range b.N {
				settledForms(b, forms)
			}
		})
	}
}

func settledForms(b *testing.B, forms int) {
	callers, key := 64, func(int) string { return "" }
	if os.Getenv("SETTLED_KEYS") != "" {
		callers, key = 4, func(n int) string { return fmt.Sprint("018f3c6e-7b1a-7f00-a1b2-", n) }
	}
	folder := filepath.Join(b.TempDir(), "node")
	n, err := Open(b.Context(), Options{Folder: folder})
	if err != nil {
		b.Fatal(err)
	}
	guests := make([]*Agent, callers)
	for i := range guests {
		guests[i] = guest(b, n, fmt.Sprint("guest", i))
	}
	live, rss := memoryUse()
	var asking sync.WaitGroup
	for i, g := range guests {
		asking.Go(func() {
			for f := i; f < forms; f += callers {
				if err := keyedCycle(n.Host(), g, key(f)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	asking.Wait()
	nowLive, nowRSS := memoryUse()
	b.ReportMetric(float64(nowLive-live)/float64(forms), "live-B/form")
	b.ReportMetric(float64(nowLive)/(1<<20), "live-MiB")
	b.ReportMetric(float64(nowRSS-rss)/(1<<20), "rss-MiB")
	if rest(b, "SETTLED_REST") {
		nowLive, _ = memoryUse()
		b.ReportMetric(float64(nowLive)/(1<<20), "rest-MiB")
	}
	if profile := os.Getenv("SETTLED_PROFILE"); profile != "" {
		writeHeap(b, profile)
	}
	var took []time.Duration
	for i := range 200 {
		took = append(took, timed(b, func() error { return keyedCycle(n.Host(), guests[0], key(forms+i)) }))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[100].Microseconds()), "cycle-µs")
	reads(b, n, forms, "")
	closeNode(b, n)
	report := func(name string, fn func() error) { b.ReportMetric(float64(timed(b, fn).Microseconds())/1000, name) }
	report("open-ms", func() (err error) {
		n, err = Open(b.Context(), Options{Folder: folder})
		return err
	})
	report("visit-ms", func() error {
		_, err := n.Host().Version(b.Context())
		return err
	})
	reads(b, n, forms, "-opened")
	closeNode(b, n)
}

// reads measures lists of the host's messages and one old form.
func reads(b *testing.B, n *Node, forms int, suffix string) {
	b.Helper()
	report := func(name string, fn func() error) {
		b.ReportMetric(float64(timed(b, fn).Microseconds())/1000, name+suffix)
	}
	page := func(f view.MessageFilter, first int) func() error {
		return func() error {
			_, err := n.Host().Mail().Page(b.Context(), f, uint64(first), 50)
			return err
		}
	}
	report("pending-ms", page(view.MessageFilter{Pending: true}, 0))
	report("firstpage-ms", page(view.MessageFilter{All: true}, 0))
	report("lastpage-ms", page(view.MessageFilter{}, forms-50))
	report("oldform-ms", func() error {
		_, err := n.Host().Message(b.Context(), capabilities.FormNumber(uint64(forms/2)))
		return err
	})
}

func timed(b *testing.B, fn func() error) time.Duration {
	b.Helper()
	start := time.Now()
	if err := fn(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}
