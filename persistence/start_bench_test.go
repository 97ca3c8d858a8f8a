package persistence

import (
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// startEvents is the largest log that BenchmarkStart opens.
var startEvents = flag.Int("start.events", 100_000, "events of the largest log that BenchmarkStart opens")

// BenchmarkStart opens logs of 10^4 events and more, after a regular stop and after a kill. Each is reported as a
// ratio to the one of 10^4 events too.
func BenchmarkStart(b *testing.B) {
	first := map[bool]time.Duration{}
	for n := 10_000; n <= *startEvents; n *= 10 {
		o := filledJournal(b, n/10, 10)
		full, err := o.withDefaults()
		if err != nil {
			b.Fatal(err)
		}
		closeJournal(b, openAgain(b, o))
		syscall.Sync() // what was written before is no part of a start
		for _, clean := range []bool{true, false} {
			b.Run(fmt.Sprintf("events=%d/clean=%v", n, clean), func(b *testing.B) {
				var took time.Duration
				for range b.N {
					b.StopTimer()
					if !clean {
						killed(b, &full)
					}
					b.StartTimer()
					began := time.Now()
					j := openAgain(b, o)
					took += time.Since(began)
					b.StopTimer()
					closeJournal(b, j)
					b.StartTimer()
				}
				mean := took / time.Duration(b.N)
				if first[clean] == 0 {
					first[clean] = mean
				}
				b.ReportMetric(float64(mean.Milliseconds()), "ms/start")
				b.ReportMetric(float64(mean)/float64(first[clean]), "of-10^4")
			})
		}
	}
}

func openAgain(b *testing.B, o Options) *Journal {
	b.Helper()
	j, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	return j
}
