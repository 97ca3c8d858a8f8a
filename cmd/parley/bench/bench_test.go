package bench

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/actors"
	"parley/cmd/parley/proc"
	"parley/gateway"
	"parley/gateway/client"
)

// BenchmarkSocket measures cycles of 64 callers through a node's socket, with the clients in the same process. It gives
// the figures by which the collector of the program is set: PARLEY_BENCH_COLLECTOR is its percentage and its floor in MiB,
// as in "100,96". See docs/benchmarks.md.
func BenchmarkSocket(b *testing.B) {
	if percent, floor, ok := strings.Cut(os.Getenv("PARLEY_BENCH_COLLECTOR"), ","); ok {
		p, wrong := strconv.Atoi(percent)
		f, wrongFloor := strconv.Atoi(floor)
		if wrong != nil || wrongFloor != nil {
			b.Fatal(wrong, wrongFloor)
		}
		proc.TuneCollector(p, uint64(f)<<20)
	}
	for range b.N {
		folder := b.TempDir()
		node, err := actors.Open(b.Context(), actors.Options{Folder: folder})
		if err != nil {
			b.Fatal(err)
		}
		socket := filepath.Join(folder, "socket")
		server, err := gateway.Listen(node, gateway.Options{Socket: socket, Listen: gateway.Off, Service: gateway.Off, Version: "bench", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		server.Serve()
		c, err := client.New(client.Options{Socket: socket})
		if err != nil {
			b.Fatal(err)
		}
		before, collecting := cpuTime(b), collectorTime()
		got, err := Run(b.Context(), Options{Callers: 64, Agents: 128, Duration: 4 * time.Second, Folder: folder, Client: c})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(got.Cycles), "cpu-µs/cycle")
		b.ReportMetric(100*(collectorTime()-collecting)/(cpuTime(b)-before).Seconds(), "gc-%")
		b.ReportMetric(got.CyclesPerSecond, "cycles/s")
		b.ReportMetric(got.CyclesPerRaw, "cycles/fsync")
		b.ReportMetric(got.P50Ms, "p50-ms")
		b.ReportMetric(got.RSSMiB, "rss-MiB")
		b.ReportMetric(got.RSSMiB*float64(1<<20)/float64(got.Cycles), "rss-B/cycle")
		c.Close()
		ending, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), 20*time.Second)
		if err := server.Drain(ending); err != nil {
			b.Error(err)
		}
		if err := node.Close(ending); err != nil {
			b.Error(err)
		}
		cancel()
	}
}

// cpuTime returns the processor time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// collectorTime returns the seconds of processor that the garbage collector has used.
func collectorTime() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64() - sample[1].Value.Float64()
}
