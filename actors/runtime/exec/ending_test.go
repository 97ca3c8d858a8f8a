//go:build unix

package exec

import (
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/runtime"
	"parley/actors/runtime/proctest"
	"parley/actors/runtime/runtimetest"
	"parley/internal/eventually"
)

func TestRunCanBeEnded(t *testing.T) {
	t.Run("a command", func(t *testing.T) {
		r := New(runtimetest.Script(`trap 'echo ended; exit 1' TERM; echo started; while :; do sleep 0.01; done`))
		run := runtimetest.Begin(t, r, runtimetest.NewHost(t), hello)
		eventually.Holds(t, "started", func() bool { return run.Text(runtime.Output) == "started\n" })
		run.Cancel(proctest.ErrEnough)
		if got := run.Result(); got.Err != proctest.ErrEnough || run.Text(runtime.Output) != "started\nended\n" {
			t.Errorf("%v %q", got.Err, run.Text(runtime.Output))
		}
	})
	t.Run("a stubborn command", func(t *testing.T) {
		r := New(runtimetest.Playing("stubborn"))
		run := runtimetest.Begin(t, r, runtimetest.NewHost(t), hello)
		eventually.Holds(t, "started", func() bool { return run.Text(runtime.Output) != "" })
		run.Cancel(proctest.ErrEnough)
		if got := run.Result(); got.Err != proctest.ErrEnough {
			t.Error(got.Err)
		}
		proctest.WantGone(t, run.Text(runtime.Output))
	})
}

func TestRunTimeIsLimited(t *testing.T) {
	for _, keep := range []bool{false, true} {
		s := runtimetest.Script(`echo $$; exec sleep 60`)
		s.RunTime, s.Keep = 300*time.Millisecond, keep
		d, r := run(t, s, hello)
		if parley.CodeOf(r.Err) != parley.Timeout || !strings.Contains(r.Err.Error(), "300ms") {
			t.Errorf("ended with %v", r.Err)
		}
		proctest.WantGone(t, d.Text(runtime.Output))
	}
}
