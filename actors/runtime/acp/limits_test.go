//go:build unix

package acp

import (
	"os"

	"parley/actors/runtime"
	"parley/actors/runtime/proctest"
	"parley/actors/runtime/runtimetest"
	"parley/internal/eventually"

	goruntime "runtime"
	"strings"
	"testing"
)

func TestOpenRequestsAreLimited(t *testing.T) {
	ask := `ask session/request_permission {"sessionId":"SESSION","toolCall":{"toolCallId":"c"},"options":` + permissionOptions + `}`
	var lines []string
	for range 100 {
		lines = append(lines, ask)
	}
	for range 100 - runtime.MaxOpen {
		lines = append(lines, "receive")
	}
	lines = append(lines, "say refused ")
	for range runtime.MaxOpen {
		lines = append(lines, "receive")
	}
	run := runtimetest.Begin(t, agent(t), runtimetest.NewHost(t), prompted(lines...))
	var open []*runtimetest.OpenCall
	for range runtime.MaxOpen {
		open = append(open, run.NextCall())
	}
	eventually.Holds(t, "the others are refused", func() bool { return strings.Contains(run.Text(runtime.Output), "refused") })
	for _, c := range open {
		c.Decide <- runtime.Decision{Allowed: true}
	}
	if got := run.Result(); got.Err != nil || strings.Count(run.Text(runtime.Output), "too many requests") != 100-runtime.MaxOpen || strings.Count(run.Text(runtime.Output), `"selected"`) != runtime.MaxOpen {
		t.Errorf("%v %s", got.Err, run.Text(runtime.Output))
	}
}

func TestAgentThatDoesNotReadIsEnded(t *testing.T) {
	r := agent(t)
	run := runtimetest.Begin(t, r, runtimetest.NewHost(t), prompted("pid", "spam"))
	eventually.Holds(t, "it says who it is", func() bool { return run.Text(runtime.Output) != "" })
	eventually.Holds(t, "nothing of it is read any more", func() bool {
		who, _, _ := strings.Cut(run.Text(runtime.Output), " ")
		stat, err := os.ReadFile("/proc/" + who + "/stat")
		return err == nil && strings.Contains(string(stat), ") S ")
	})
	if n := goruntime.NumGoroutine(); n > 2*maxRequested {
		t.Errorf("%d goroutines are at work for it", n)
	}
	run.Cancel(proctest.ErrEnough)
	if got := run.Result(); got.Err != proctest.ErrEnough {
		t.Error(got.Err)
	}
	proctest.WantGone(t, strings.Fields(run.Text(runtime.Output))[0])
}

func TestLargeUpdatesWaitForHost(t *testing.T) {
	d := runtimetest.NewHost(t)
	first, room := make(chan struct{}, 1<<16), make(chan struct{})
	size := 0
	d.WriteFunc = func(stream runtime.Stream, text string) error {
		if stream == runtime.Output {
			first <- struct{}{}
			<-room
			size += len(text)
		}
		return nil
	}
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	run := runtimetest.Begin(t, agent(t), d, prompted("bulk"))
	proctest.Next(t, first)
	eventually.Holds(t, "it waits", func() bool { return proctest.IsWaiting(t) })
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 3*maxHeld {
		t.Errorf("%d bytes are held", held)
	}
	close(room)
	if got := run.Result(); got.Err != nil || size != 12*900<<10 {
		t.Errorf("%v: %d bytes were written", got.Err, size)
	}
}
