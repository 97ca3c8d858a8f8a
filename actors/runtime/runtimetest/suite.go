//go:build unix

package runtimetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/actors/runtime"
	"parley/actors/runtime/proctest"
	"parley/internal/eventually"
)

// Kind is a kind of program under test. Its prompts make the program do one thing.
type Kind struct {
	New  func(testing.TB) runtime.Program // of a program that stays for the next prompt
	Who  runtime.Prompt                   // prints its process ID first, and ends
	Wait runtime.Prompt                   // prints a text, and waits until it is told to stop
	Hang runtime.Prompt                   // prints its process ID first, and does nothing more, whatever it is told
	Die  runtime.Prompt                   // exits with an error
}

// Conforms tests what all kinds of programs have to do: one process for all prompts, and each prompt taken once. After
// an end there is another process, and nothing is left of one that was ended.
func Conforms(t *testing.T, k Kind) {
	for name, test := range map[string]func(*testing.T, Kind){
		"prompts in turn": testInTurn, "an exit": testExit, "kills": testKills, "a run that is stopped": testStopped,
		"a program that hears nothing": testHanging, "close": testClose, "kills at any time": testAnyTime,
		"a host that fails":  func(t *testing.T, k Kind) { checkHostFails(t, k.New(t), k.Hang) },
		"a host that blocks": func(t *testing.T, k Kind) { checkHostStuck(t, k.New(t), k.Hang) },
	} {
		t.Run(name, func(t *testing.T) { test(t, k) })
	}
}

// who returns the ID of the process that takes a prompt to its good end.
func who(t *testing.T, program runtime.Program, k Kind, run int) string {
	t.Helper()
	h := NewHost(t)
	p := k.Who
	p.Run = fmt.Sprint("r", run)
	if got := Begin(t, program, h, p).Result(); got.Err != nil {
		t.Fatalf("run %d: %v", run, got.Err)
	}
	return firstOf(t, h)
}

// firstOf returns the first word of the output: a process ID.
func firstOf(t *testing.T, h *Host) string {
	t.Helper()
	words := strings.Fields(h.Text(runtime.Output))
	if len(words) == 0 {
		t.Fatal("nothing was put out")
	}
	return words[0]
}

func testInTurn(t *testing.T, k Kind) {
	program := k.New(t)
	defer program.Close()
	for range 2 {
		if err := program.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := who(t, program, k, 0)
	for run := range 20 {
		if pid := who(t, program, k, run+1); pid != first {
			t.Fatalf("run %d is in process %s, the first was in %s", run, pid, first)
		}
	}
}

func testExit(t *testing.T, k Kind) {
	program := k.New(t)
	defer program.Close()
	first := who(t, program, k, 0)
	if got := Begin(t, program, NewHost(t), k.Die).Result(); got.Err == nil || !strings.Contains(got.Err.Error(), "exit status") {
		t.Errorf("ended with %v", got.Err)
	}
	if again := who(t, program, k, 1); again == first {
		t.Errorf("it is process %s again", first)
	}
}

func testKills(t *testing.T, k Kind) {
	program := k.New(t)
	defer program.Close()
	for run := range 5 {
		pid, err := strconv.Atoi(who(t, program, k, run))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "the process is gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	}
}

func testStopped(t *testing.T, k Kind) {
	program := k.New(t)
	defer program.Close()
	first := who(t, program, k, 0)
	run := Begin(t, program, NewHost(t), k.Wait)
	eventually.Holds(t, "it waits", func() bool { return run.Text(runtime.Output) != "" })
	run.Cancel(proctest.ErrEnough)
	if got := run.Result(); got.Err != proctest.ErrEnough {
		t.Errorf("ended with %v", got.Err)
	}
	if again := who(t, program, k, 1); again != first {
		t.Errorf("process %s was stopped, and the next is %s", first, again)
	}
}

func testHanging(t *testing.T, k Kind) {
	program := k.New(t)
	defer program.Close()
	run := Begin(t, program, NewHost(t), k.Hang)
	eventually.Holds(t, "it hangs", func() bool { return run.Text(runtime.Output) != "" })
	run.Cancel(proctest.ErrEnough)
	if got := run.Result(); got.Err != proctest.ErrEnough {
		t.Errorf("ended with %v", got.Err)
	}
	first := firstOf(t, run.Host)
	proctest.WantGone(t, first)
	if again := who(t, program, k, 1); again == first {
		t.Errorf("it is process %s again", first)
	}
}

func testClose(t *testing.T, k Kind) {
	program := k.New(t)
	if err := program.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := proctest.Programs(t)[0]
	program.Close()
	program.Close()
	proctest.WantGone(t, strconv.Itoa(pid))
}

// testAnyTime ends runs, and kills their programs, after some milliseconds each.
func testAnyTime(t *testing.T, k Kind) {
	program := k.New(t)
	defer program.Close()
	for i := range 24 {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := []runtime.Prompt{k.Who, k.Wait, k.Die}[i%3]
		p.Run = fmt.Sprint("r", i)
		ended := make(chan struct{})
		timer := time.AfterFunc(time.Duration(i%7)*2*time.Millisecond, func() {
			defer close(ended)
			if i%2 == 0 {
				for _, pid := range proctest.Programs(t) {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			cancel(proctest.ErrEnough)
		})
		program.Run(ctx, p, NewHost(t), func() {})
		if !timer.Stop() {
			<-ended // otherwise it would end the children of the next case
		}
		cancel(nil)
	}
	got := program.Run(t.Context(), k.Who, NewHost(t), func() {})
	if WasKilled(got) { // by the last kill, which was not detected yet
		who(t, program, k, 1)
	} else if got.Err != nil {
		t.Error(got.Err)
	}
}
