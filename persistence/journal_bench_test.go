package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/events"
)

// rawRate returns the number of durable writes of 4 KiB per second.
func rawRate(b *testing.B, folder string) float64 {
	b.Helper()
	f, err := os.CreateTemp(folder, "raw")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 4096)
	n, start := 0, time.Now()
	for time.Since(start) < 300*time.Millisecond {
		if _, err := f.Write(buf); err != nil {
			b.Fatal(err)
		}
		if err := syncData(f); err != nil {
			b.Fatal(err)
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds()
}

func BenchmarkAppendAndRelease(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			o := testOptions(b)
			raw := rawRate(b, o.Folder)
			j := open(b, o)
			var left atomic.Int64
			left.Store(int64(b.N))
			sections := make([][]events.Section, callers)
			for c := range callers {
				w := make(writer)
				for range b.N/callers + 1 {
					sections[c] = append(sections[c], w.section(b, c, 1))
				}
			}
			before := j.lastCommit().Number
			b.ResetTimer()
			start := time.Now()
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() {
					done := make(chan error, 1)
					for _, s := range sections[c] {
						j.Release(j.Append(s), func(err error) { done <- err })
						if err := <-done; err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			n := float64((b.N/callers + 1) * callers)
			rate := n / time.Since(start).Seconds()
			b.ReportMetric(rate, "events/s")
			b.ReportMetric(rate/raw, "events/flush")
			b.ReportMetric(raw, "raw-flushes/s")
			b.ReportMetric(n/float64(j.lastCommit().Number-before), "events/commit")
		})
	}
}

// filledJournal makes a journal with commits of per events each, and returns its options.
func filledJournal(b testing.TB, commits, per int) Options {
	b.Helper()
	return filled(b, testOptions(b), commits, per)
}

// filled fills the journal of some options.
func filled(b testing.TB, o Options, commits, per int) Options {
	b.Helper()
	f := filler{writer: make(writer)}
	f.fill(b, o, commits, per)
	return o
}

// filler fills a journal that is closed.
type filler struct {
	writer writer
	last   Mark
}

// fill adds commits of per events each.
func (f *filler) fill(b testing.TB, o Options, commits, per int) {
	b.Helper()
	full, err := o.withDefaults()
	if err != nil {
		b.Fatal(err)
	}
	full.unsynced = true
	l, err := connect(&full) // without flushes, which would take minutes
	if err != nil {
		b.Fatal(err)
	}
	defer l.close()
	if err := claim(l); err != nil {
		b.Fatal(err)
	}
	if _, err := l.openStream(b.Context(), f.last); err != nil {
		b.Fatal(err)
	}
	for range commits {
		c := events.Commit{Number: f.last.Number + 1, Prev: f.last.Hash, At: 1, Node: o.Node}
		for i := range per {
			c.Sections = append(c.Sections, f.writer.section(b, (int(f.last.Number)*per+i)%10_000, 1))
		}
		bytes, hash, err := c.Encode(nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.js.PublishAsync(o.subject(), bytes); err != nil {
			b.Fatal(err)
		}
		f.last = Mark{Number: c.Number, Hash: hash}
	}
	<-l.js.PublishAsyncComplete()
	h, err := openHighWater(o.Folder, o.Node)
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(h.write(f.last), h.close()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkReplay(b *testing.B) {
	o := filledJournal(b, 100_000, 3)
	for _, with := range []string{"whole", "index"} {
		b.Run(with, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				if with == "whole" {
					removeIndexSnapshot(b, o)
				}
				b.StartTimer()
				j, err := Open(b.Context(), o)
				b.StopTimer()
				if err != nil {
					b.Fatal(err)
				}
				closeJournal(b, j)
				b.StartTimer()
			}
		})
	}
}

// removeIndexSnapshot removes the index snapshot.
func removeIndexSnapshot(t testing.TB, o Options) {
	t.Helper()
	if err := os.Remove(filepath.Join(o.Folder, indexFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
