package actors

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// rawRate measures serial append+fdatasync of 4 KiB on the disk that a folder is on, in writes a second.
func rawRate(b *testing.B, folder string) float64 {
	b.Helper()
	f, err := os.Create(filepath.Join(folder, "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	start, n := time.Now(), 0
	for ; time.Since(start) < time.Second; n++ {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := syncData(f); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkAskToAnswer times a durable cycle of ask, answer and await. The name says the number of callers, each with agents
// of its own. cycles/fsync is the rate divided by that of raw serial fdatasyncs in the same run.
func BenchmarkAskToAnswer(b *testing.B) {
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			folder := b.TempDir()
			raw := rawRate(b, b.TempDir())
			n := openNode(b, folder)
			hosts, guests := makePairs(b, n, callers)
			var left atomic.Int64
			left.Store(int64(b.N))
			done := make(chan error, callers)
			used := cpuTime(b)
			b.ResetTimer()
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
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/raw, "cycles/fsync")
			b.ReportMetric(float64((cpuTime(b)-used).Microseconds())/float64(b.N), "cpu-µs/op")
			s := n.journal.Stats()
			b.ReportMetric(float64(s.Events)/float64(s.Commits), "events/commit")
		})
	}
}

func makePairs(b *testing.B, n *Node, count int) (hosts, guests []*Agent) {
	b.Helper()
	for i := range count {
		h, err := n.Host().Make(b.Context(), NewAgent{Kind: events.Host, Name: fmt.Sprintf("h%d", i)})
		if err != nil {
			b.Fatal(err)
		}
		g, err := h.Make(b.Context(), NewAgent{Kind: events.Guest, Name: "guest"})
		if err != nil {
			b.Fatal(err)
		}
		hosts, guests = append(hosts, h), append(guests, g)
	}
	return hosts, guests
}

func cycle(host, guest *Agent) error { return keyedCycle(host, guest, "") }

// keyedCycle is cycle with an idempotency key, such as the clients send.
func keyedCycle(host, guest *Agent, key string) error {
	ctx := context.Background()
	asked, err := guest.Ask(ctx, parley.Form{To: "HOST", Description: "Configure project settings", Key: key, Fields: []events.Field{
		{Name: "projectName", Label: "Project name", Type: events.Text, Required: true},
		{Name: "port", Label: "Port", Type: events.Number},
	}})
	if err != nil {
		return err
	}
	ref := capabilities.FormID(asked.Form)
	_, err = host.Answer(ctx, ref, parley.Answer{Values: map[string]capabilities.Value{
		"projectName": capabilities.String("my-app"), "port": capabilities.Int(8080),
	}})
	if err != nil {
		return err
	}
	_, err = guest.Await(ctx, ref)
	return err
}
