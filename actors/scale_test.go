package actors

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/internal/eventually"
)

// These benchmarks make a large journal first.

// BenchmarkStart opens a node with a million events in its journal and makes one call: with the snapshot of the index, and
// after the loss of every snapshot.
func BenchmarkStart(b *testing.B) {
	if testing.Short() {
		b.Skip("makes a million events")
	}
	folder := b.TempDir()
	events := fillJournal(b, folder, 1_000_000)
	for _, with := range []bool{true, false} {
		b.Run(fmt.Sprintf("indexSnapshot=%t", with), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				if !with {
					dropSnapshots(b, folder)
				}
				b.StartTimer()
				n, err := Open(b.Context(), Options{Folder: folder})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := n.Host().Names().List(b.Context(), "", "", 0); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				closeNode(b, n)
				b.StartTimer()
			}
			b.ReportMetric(float64(events), "events")
		})
	}
}

// dropSnapshots removes all snapshots. The server creates their stream again.
func dropSnapshots(b *testing.B, folder string) {
	b.Helper()
	streams := folder + "/journal/jetstream/$G/streams"
	entries, err := os.ReadDir(streams)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "OBJ_") {
			continue
		}
		if err := os.RemoveAll(streams + "/" + e.Name()); err != nil {
			b.Fatal(err)
		}
	}
}

// fillJournal asks and answers forms until the journal has the wanted number of events.
func fillJournal(b *testing.B, folder string, want uint64) uint64 {
	b.Helper()
	n, err := Open(b.Context(), Options{Folder: folder})
	if err != nil {
		b.Fatal(err)
	}
	const callers = 256
	hosts, guests := makePairs(b, n, callers)
	var left atomic.Int64
	left.Store(int64(want / 4)) // events in each, and a few acks
	done := make(chan error, callers)
	for i := range callers {
		go func() {
			var err error
			for left.Add(-1) >= 0 && err == nil {
				err = cycle(hosts[i], guests[i])
			}
			done <- err
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	made := n.State().Journal.Events
	closeNode(b, n)
	return made
}

// BenchmarkOpenForms asks 100,000 forms of 10,000 mailboxes, waits until the mailboxes are passivated, and reports the
// memory of the process.
func BenchmarkOpenForms(b *testing.B) {
	if testing.Short() {
		b.Skip("asks 100,000 forms")
	}
	const mailboxes, forms = 10_000, 100_000
	for b.Loop() {
		n, err := Open(b.Context(), Options{Folder: b.TempDir(), Idle: 3 * time.Second})
		if err != nil {
			b.Fatal(err)
		}
		_, guests := makePairs(b, n, mailboxes/2)
		var next atomic.Int64
		done := make(chan error, 64)
		for range 64 {
			go func() {
				for i := next.Add(1); i <= forms; i = next.Add(1) {
					_, err := guests[int(i)%len(guests)].Ask(context.Background(), parley.Form{
						To: "HOST", Description: "Configure project settings",
						Fields: []events.Field{{Name: "projectName", Label: "Project name", Type: events.Text, Required: true}},
					})
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 64 {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		eventually.Holds(b, "all mailboxes are passivated", func() bool { return n.State().Active == 0 })
		b.ReportMetric(float64(settledMemory(b))/(1<<20), "MiB")
		if st := n.State(); st.OpenForms != forms {
			b.Fatalf("%d open forms", st.OpenForms)
		}
		closeNode(b, n)
	}
}

// settledMemory returns the resident memory once it no longer falls.
func settledMemory(b *testing.B) int {
	b.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for last := math.MaxInt; ; <-tick.C {
		debug.FreeOSMemory()
		now := residentMemory(b)
		if now > last-1<<20 {
			return now
		}
		last = now
	}
}

func residentMemory(b *testing.B) int {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("there is no /proc")
	}
	for _, line := range strings.Split(string(status), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kib, err := strconv.Atoi(f[1])
			if err != nil {
				b.Fatal(err)
			}
			return kib << 10
		}
	}
	b.Fatal("no VmRSS")
	return 0
}

// BenchmarkFirstMessage times the first call to a passivated mailbox with 1,000 events.
func BenchmarkFirstMessage(b *testing.B) {
	n, err := Open(b.Context(), Options{Folder: b.TempDir(), Idle: time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	defer closeNode(b, n)
	hosts, guests := makePairs(b, n, 1)
	for range 1000 / 2 {
		if err := cycle(hosts[0], guests[0]); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		b.StopTimer()
		eventually.Holds(b, "all mailboxes are passivated", func() bool { return n.State().Active == 0 })
		b.StartTimer()
		if _, err := guests[0].Mail().Inbox(b.Context(), view.MessageFilter{Pending: true}); err != nil {
			b.Fatal(err)
		}
	}
}
