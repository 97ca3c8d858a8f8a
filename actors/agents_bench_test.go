package actors

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/actors/view"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// The benchmarks run a node with a thousand idle agents and a hundred whose programs run.
const (
	benchIdle    = 1000
	benchRunning = 100
	benchWaiters = 10_000
)

const echoScript = `while read prompt; do echo "$prompt"; printf '{"type":"done"}\n'; done`

// populate makes the agents. The program of an idle agent has echoed and ended, that of a running one has echoed and
// continues.
func populate(b *testing.B, n *Node) (idle []*Agent) {
	b.Helper()
	idle = make([]*Agent, benchIdle)
	var making sync.WaitGroup
	for w := range 16 {
		making.Go(func() {
			for i := w; i < benchIdle; i += 16 {
				idle[i] = newShellAgent(b, n, fmt.Sprint("idle", i), `read prompt; echo "$prompt"`)
			}
		})
	}
	making.Wait()
	for i := range benchRunning {
		prompt(b, newShellAgent(b, n, fmt.Sprint("running", i), "read prompt; echo \"$prompt\"; read more"), "hello")
	}
	return idle
}

// durations holds how long each of several operations took.
type durations []time.Duration

func (ts durations) percentile(percent int) time.Duration {
	slices.Sort(ts)
	return ts[min(len(ts)*percent/100, len(ts)-1)]
}

func (ts durations) report(b *testing.B) {
	b.ReportMetric(float64(ts.percentile(50).Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(ts.percentile(99).Microseconds())/1000, "p99-ms")
}

func measure(b *testing.B, operation func() error) time.Duration {
	b.Helper()
	start := time.Now()
	if err := operation(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// rawSyncs returns a function that appends to a file durably.
func rawSyncs(b *testing.B, folder string) func() error {
	b.Helper()
	f, err := os.Create(filepath.Join(folder, "raw"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	page := make([]byte, 4096)
	return func() error {
		if _, err := f.Write(page); err != nil {
			return err
		}
		return syncData(f)
	}
}

// BenchmarkAgentsAtWork times lists of the agents and the acceptance of prompts. A program is started for each prompt, or
// kept. fsyncs is the median divided by that of raw fdatasyncs, which alternate with the prompts.
func BenchmarkAgentsAtWork(b *testing.B) {
	folder := b.TempDir()
	n := openNode(b, folder)
	idle := populate(b, n)
	kept := newProgramAgent(b, n, NewAgent{Name: "kept", Program: &events.ProgramSet{Keep: true, Command: []string{"sh", "-c", echoScript}}})
	raw := rawSyncs(b, folder)
	b.Run("list", func(b *testing.B) {
		var ts durations
		for b.Loop() {
			ts = append(ts, measure(b, func() error {
				list, err := n.Host().Agents().List(b.Context(), view.AgentFilter{})
				if err == nil && len(list) < benchIdle+benchRunning {
					err = fmt.Errorf("%d agents", len(list))
				}
				return err
			}))
		}
		ts.report(b)
	})
	next := 0
	prompts := func(agent func() *Agent) func(*testing.B) {
		return func(b *testing.B) {
			var ts, disk durations
			for b.Loop() {
				a := agent()
				disk = append(disk, measure(b, raw))
				ts = append(ts, measure(b, func() error {
					_, err := n.Host().Prompt(b.Context(), a, "hello", "")
					return err
				}))
				waitForFinish(b, a, view.FinishIdle)
			}
			ts.report(b)
			b.ReportMetric(float64(disk.percentile(50).Microseconds())/1000, "raw-p50-ms")
			b.ReportMetric(float64(ts.percentile(50))/float64(disk.percentile(50)), "fsyncs")
		}
	}
	b.Run("prompt", prompts(func() *Agent { next++; return idle[next%len(idle)] }))
	b.Run("prompt-kept", prompts(func() *Agent { return kept }))
}

// BenchmarkWakeOneOfMany times an agent's report that it is idle until its waiter returns. The report is durable first. Ten
// thousand calls wait for other agents.
func BenchmarkWakeOneOfMany(b *testing.B) {
	n := openNode(b, b.TempDir())
	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	for i := range 100 {
		a := guest(b, n, fmt.Sprint("g", i))
		if err := a.Report(ctx, mailbox.Running, ""); err != nil {
			b.Fatal(err)
		}
		for range benchWaiters / 100 {
			waiting.Go(func() { _, _ = a.WaitForFinish(ctx, 0) })
		}
	}
	waiters := func() (count int) {
		n.finished.mu.Lock()
		defer n.finished.mu.Unlock()
		for _, w := range n.finished.all {
			count += len(w)
		}
		return count
	}
	eventually.Holds(b, "all wait", func() bool { return waiters() == benchWaiters })
	one := guest(b, n, "one")
	var ts durations
	for b.Loop() {
		if err := one.Report(ctx, mailbox.Running, ""); err != nil {
			b.Fatal(err)
		}
		woken := make(chan time.Time, 1)
		go func() {
			if _, err := one.WaitForFinish(ctx, 0); err != nil {
				b.Error(err)
			}
			woken <- time.Now()
		}()
		eventually.Holds(b, "it waits", func() bool { return waiters() == benchWaiters+1 })
		start := time.Now()
		if err := one.Report(ctx, mailbox.Idle, ""); err != nil {
			b.Fatal(err)
		}
		ts = append(ts, (<-woken).Sub(start))
	}
	ts.report(b)
	cancel()
	waiting.Wait()
}
