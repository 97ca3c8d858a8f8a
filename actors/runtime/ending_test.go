//go:build unix

package runtime

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley"
)

var errEnough = errors.New("enough")

func TestARunCanBeEnded(t *testing.T) {
	t.Run("a command", func(t *testing.T) {
		r := NewExec(script(`trap 'echo ended; exit 1' TERM; echo started; while :; do sleep 0.01; done`))
		run := begin(t, r, newTestDesk(t), hello)
		until(t, "started", func() bool { return run.output(Output) == "started\n" })
		run.cancel(errEnough)
		if got := run.result(); got.Err != errEnough || run.output(Output) != "started\nended\n" {
			t.Errorf("%v %q", got.Err, run.output(Output))
		}
	})
	t.Run("a stubborn command", func(t *testing.T) {
		r := NewExec(playing("stubborn"))
		run := begin(t, r, newTestDesk(t), hello)
		until(t, "started", func() bool { return run.output(Output) != "" })
		run.cancel(errEnough)
		if got := run.result(); got.Err != errEnough {
			t.Error(got.Err)
		}
		wantGone(t, run.output(Output))
	})
	t.Run("a program that is kept", func(t *testing.T) {
		s := playing("echo")
		s.Keep = true
		r := NewExec(s)
		defer r.Close()
		run := begin(t, r, newTestDesk(t), Prompt{Run: "r", Text: "wait"})
		until(t, "started", func() bool { return run.output(Output) == "waiting\n" })
		before := programs(t)
		run.cancel(errEnough)
		if got := run.result(); got.Err != errEnough {
			t.Error(got.Err)
		}
		d := newTestDesk(t)
		if got := begin(t, r, d, Prompt{Run: "s", Text: "text"}).result(); got.Err != nil || !strings.HasPrefix(d.output(Output), strconv.Itoa(before[0])+" ") {
			t.Errorf("%v: it is another one: %q", got.Err, d.output(Output))
		}
	})
	t.Run("a stubborn program that is kept", func(t *testing.T) {
		s := playing("stubborn")
		s.Keep = true
		r := NewExec(s)
		defer r.Close()
		run := begin(t, r, newTestDesk(t), hello)
		until(t, "started", func() bool { return run.output(Output) != "" })
		run.cancel(errEnough)
		if got := run.result(); got.Err != errEnough {
			t.Error(got.Err)
		}
		wantGone(t, run.output(Output))
	})
}

func TestARunTakesNoLongerThanItMay(t *testing.T) {
	for _, keep := range []bool{false, true} {
		s := script(`echo $$; exec sleep 60`)
		s.RunTime, s.Keep = 300*time.Millisecond, keep
		d, r := run(t, s, hello)
		if parley.CodeOf(r.Err) != parley.Timeout || !strings.Contains(r.Err.Error(), "300ms") {
			t.Errorf("ended with %v", r.Err)
		}
		wantGone(t, d.output(Output))
	}
}

// wantGone has nothing be left of the group whose leader's ID is given: nothing that lives longer than its reaping takes.
func wantGone(t testing.TB, leader string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(leader))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the group is gone", func() bool { return syscall.Kill(-pid, 0) == syscall.ESRCH })
}

func TestCloseLeavesNothing(t *testing.T) {
	for _, name := range []string{"echo", "stubborn"} {
		s := playing(name)
		s.Keep = true
		r := NewExec(s)
		if err := r.Prepare(context.Background()); err != nil {
			t.Fatal(err)
		}
		pid := r.(*commands).kept.tree.leader
		r.Close()
		r.Close()
		wantGone(t, strconv.Itoa(pid))
	}
}
