package actors

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestConcurrentRunsAreLimited starts more programs than may run. The others wait for a slot. An agent whose message is
// dismissed leaves its slot to the next.
func TestConcurrentRunsAreLimited(t *testing.T) {
	n := openWith(t, Options{Folder: t.TempDir(), Runs: 1})
	g := newBarrier(t)
	first, second, third := newShellAgent(t, n, "first", g.wait()), newShellAgent(t, n, "second", "true"), newShellAgent(t, n, "third", "true")
	prompt(t, first, "go")
	for _, name := range []string{"second", "third"} {
		if _, err := n.Host().Send(t.Context(), name, "go"); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "both wait for a slot", func() bool {
		n.supervisor.mu.Lock()
		defer n.supervisor.mu.Unlock()
		return len(n.supervisor.waiting) == 2
	})
	if _, err := n.Host().Prompt(t.Context(), second, "more", ""); parley.CodeOf(err) != parley.RateLimited {
		t.Errorf("a prompt without a free slot: %v", err)
	}
	now := NewAgent{Kind: events.Guest, Name: "now", Program: &events.ProgramSet{Runtime: "exec", Command: []string{"true"}}}
	if _, err := n.Host().Make(t.Context(), now); parley.CodeOf(err) != parley.RateLimited {
		t.Errorf("an agent that must start at once: %v", err)
	}
	once, err := n.Host().Prompt(t.Context(), first, "once", "key")
	if err != nil || !once.Queued {
		t.Errorf("got %+v, %v", once, err)
	}
	if p := prompt(t, first, "again"); !p.Queued || p.Running {
		t.Errorf("a running program takes another slot: %+v", p)
	}
	if err := second.Dismiss(t.Context(), capabilities.FormNumber(0)); err != nil {
		t.Fatal(err)
	}
	g.open()
	for _, a := range []*Agent{third, first, second} {
		waitForFinish(t, a, view.FinishIdle)
	}
	for a, want := range map[*Agent]int{first: 3, second: 0, third: 1} {
		if runs := len(eventsOf[*events.RunStarted](t, a)); runs != want {
			t.Errorf("%s: %d runs, want %d", a.id, runs, want)
		}
	}
	prompt(t, second, "go")
	waitForFinish(t, second, view.FinishIdle)
}

func TestFailedRunReportsErrorAndNextStarts(t *testing.T) {
	n := openNode(t, t.TempDir())
	a := newShellAgent(t, n, "w", `read prompt; case "$prompt" in *bad*) echo first words; echo last words >&2; exit 3;; esac; echo success`)
	prompt(t, a, "bad")
	if s := waitForFinish(t, a, view.FinishError); !strings.Contains(s.Error, "exit status 3") {
		t.Errorf("the error is %q", s.Error)
	}
	ended := eventsOf[*events.RunEnded](t, a)
	if len(ended) != 1 || !strings.Contains(ended[0].Output, "last words") {
		t.Errorf("got %+v", ended)
	}
	prompt(t, a, "good")
	if s := waitForFinish(t, a, view.FinishIdle); s.Error != "" {
		t.Errorf("the error is %q", s.Error)
	}
	if out := outputOf(t, a); !strings.Contains(out, "first words") || !strings.Contains(out, "last words") || !strings.Contains(out, "success") {
		t.Errorf("the output is %q", out)
	}
}

// TestSecretsAreStruckOutOfWhatIsKept has a program fail with a secret in its last lines: the log, which is kept for ever, has the rest.
func TestSecretsAreStruckOutOfWhatIsKept(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	a := newShellAgent(t, n, "w", `read prompt; echo "PASSWORD=hunter2 was refused" >&2; exit 3`)
	prompt(t, a, "go")
	s := waitForFinish(t, a, view.FinishError)
	ended := eventsOf[*events.RunEnded](t, a)
	if len(ended) != 1 || !strings.Contains(ended[0].Output, "PASSWORD=[secret] was refused") || strings.Contains(ended[0].Output+ended[0].Error+s.Error, "hunter2") {
		t.Errorf("got %+v, %q", ended, s.Error)
	}
}

// TestCloseStopsProgramsAndRestartResumesMail closes a node. Its programs and their children end. After a restart the queued
// messages get runs.
func TestCloseStopsProgramsAndRestartResumesMail(t *testing.T) {
	folder, g, processes := t.TempDir(), newBarrier(t), newPIDs(t)
	n := openNode(t, folder)
	a := newShellAgent(t, n, "w", processes.note()+processes.child("sleep 600")+g.wait()+"; kill $!")
	kept := newProgramAgent(t, n, NewAgent{Name: "kept", Program: &events.ProgramSet{
		Keep: true, Command: []string{"sh", "-c", processes.note() + `while read prompt; do printf '{"type":"done"}\n'; done`},
	}})
	prompt(t, kept, "go")
	waitForFinish(t, kept, view.FinishIdle)
	prompt(t, a, "one")
	if p := prompt(t, a, "two"); !p.Queued {
		t.Fatalf("got %+v", p)
	}
	processes.all(t, 3)
	closeNode(t, n)
	processes.allGone(t, 3)

	n = openNode(t, folder)
	a, kept = &Agent{node: n, id: a.id}, &Agent{node: n, id: kept.id}
	if s := currentStatus(t, a); s.Status != mailbox.Running || s.Queued != 0 {
		t.Errorf("the second message has no run: %+v", s)
	}
	ended := eventsOf[*events.RunEnded](t, a)
	if len(ended) != 1 || ended[0].Error != mailbox.Interrupted {
		t.Errorf("the first run: %+v", ended)
	}
	g.open()
	waitForFinish(t, a, view.FinishIdle)
	if s := currentStatus(t, kept); s.Status != mailbox.Idle {
		t.Errorf("an idle agent: %+v", s)
	}
}

// TestProgramRunsWhileMailboxIsPassivated passivates the mailbox of a running program. A waiting call gets the run's end.
func TestProgramRunsWhileMailboxIsPassivated(t *testing.T) {
	n := openWith(t, Options{Folder: t.TempDir(), Idle: time.Nanosecond})
	g := newBarrier(t)
	a := newShellAgent(t, n, "w", g.wait())
	prompt(t, a, "go")
	ended := startWaitForFinish(t, a)
	passivated := func() bool {
		n.registry.passivate(time.Now())
		n.registry.mu.Lock()
		defer n.registry.mu.Unlock()
		return n.registry.registrations[a.id] == nil
	}
	eventually.Holds(t, "the mailbox is passivated", passivated)
	if s := currentStatus(t, a); s.Status != mailbox.Running {
		t.Errorf("it is %s: %s", s.Status, s.Error)
	}
	eventually.Holds(t, "the mailbox is passivated again", passivated)
	g.open()
	if f := <-ended; f.Status != view.FinishIdle || f.Final.Error != "" {
		t.Errorf("it has finished: %+v", f)
	}
}

// startWaitForFinish starts a call that waits for an agent's finish, and blocks until the call is registered.
func startWaitForFinish(t *testing.T, a *Agent) <-chan view.Finish {
	t.Helper()
	ended := make(chan view.Finish, 1)
	go func() {
		f, err := a.WaitForFinish(t.Context(), 0)
		if err != nil {
			t.Error(err)
		}
		ended <- f
	}()
	eventually.Holds(t, "the call waits", func() bool {
		return a.node.finished.has(a.id)
	})
	return ended
}

func TestProgramRunsAfterMailboxCrash(t *testing.T) {
	n := openNode(t, t.TempDir())
	g := newBarrier(t)
	a := newShellAgent(t, n, "w", g.wait())
	prompt(t, a, "go")
	ended := startWaitForFinish(t, a)
	_, err := inspect(t.Context(), a, func(b *mailboxActor) (struct{}, error) {
		b.state = nil
		panic("for the test")
	})
	if parley.CodeOf(err) != parley.Internal {
		t.Fatalf("the call that crashed: %v", err)
	}
	if s := currentStatus(t, a); s.Status != mailbox.Running {
		t.Errorf("it is %s: %s", s.Status, s.Error)
	}
	g.open()
	if f := <-ended; f.Status != view.FinishIdle {
		t.Errorf("it has finished: %+v", f)
	}
	if runs := len(eventsOf[*events.RunStarted](t, a)); runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// TestUnwrittenRunEndIsWrittenLater ends a program while no commit can be stored.
func TestUnwrittenRunEndIsWrittenLater(t *testing.T) {
	var broken atomic.Bool
	n := openWith(t, Options{Folder: t.TempDir(), Failpoint: func(step string) error {
		if broken.Load() && (step == "before publish" || step == "before reopen") {
			return errors.New("no space left on device, for the test")
		}
		return nil
	}})
	g := newBarrier(t)
	a, next := newShellAgent(t, n, "w", g.wait()+"; echo why >&2; exit 4"), newShellAgent(t, n, "next", "true")
	prompt(t, a, "go")
	broken.Store(true)
	if _, err := n.Host().Send(t.Context(), "next", "lost"); parley.CodeOf(err) != parley.ReadOnly {
		t.Fatalf("a message on a failed disk: %v", err)
	}
	run := n.supervisor.currentRun(a.id)
	g.open()
	<-run.over
	broken.Store(false)
	eventually.Holds(t, "it has ended", func() bool { return currentStatus(t, a).Status != mailbox.Running })
	if s := waitForFinish(t, a, view.FinishError); !strings.Contains(s.Error, "exit status 4") {
		t.Errorf("the error is %q", s.Error)
	}
	eventually.Holds(t, "the node writes again", func() bool {
		_, err := n.Host().Prompt(t.Context(), next, "go", "key")
		return err == nil
	})
	waitForFinish(t, next, view.FinishIdle)
}

// TestArchiveStopsProgram archives agents whose programs are kept, running or starting.
func TestArchiveStopsProgram(t *testing.T) {
	n := openNode(t, t.TempDir())
	processes := newPIDs(t)
	serve := processes.note() + `while read prompt; do case "$prompt" in *go*) printf '{"type":"done"}\n';; *cancel*) printf '{"type":"done"}\n';; esac; done`
	for i := range 10 {
		m := NewAgent{Kind: events.Guest, Name: fmt.Sprint("kept", i), Program: &events.ProgramSet{Runtime: "exec", Keep: true, Command: []string{"sh", "-c", serve}}}
		a, err := n.Host().Make(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 3 {
		case 0: // it is idle
			prompt(t, a, "go")
			waitForFinish(t, a, view.FinishIdle)
		case 1: // it works
			prompt(t, a, "linger")
		}
		if err := n.Host().Agents().Archive(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if s := currentStatus(t, a); s.Status != mailbox.Closed {
			t.Errorf("it is %s", s.Status)
		}
		for _, pid := range descendantsOf(os.Getpid()) {
			if commandOf := commandLine(pid); strings.Contains(commandOf, string(processes)) {
				t.Errorf("agent %d is archived, and its program is there: %s", i, commandOf)
			}
		}
		if _, err := n.Host().Prompt(t.Context(), a, "go", ""); parley.CodeOf(err) != parley.AgentArchived {
			t.Errorf("a message to it: %v", err)
		}
	}
	n.supervisor.mu.Lock()
	defer n.supervisor.mu.Unlock()
	if len(n.supervisor.processes) != 0 || n.supervisor.running != 0 {
		t.Errorf("%d programs, %d runs", len(n.supervisor.processes), n.supervisor.running)
	}
}

// TestInitializingAgentIsReadyAfterRestart restarts the node while an agent is initializing.
func TestInitializingAgentIsReadyAfterRestart(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	a := newShellAgent(t, n, "w", "true")
	if err := a.do(t.Context(), mailbox.PrepareProgram{Status: mailbox.Initializing}); err != nil {
		t.Fatal(err)
	}
	closeNode(t, n)
	n = openNode(t, folder)
	list, err := n.Host().Agents().List(t.Context(), view.AgentFilter{Statuses: []string{mailbox.Idle}})
	if err != nil || !slices.ContainsFunc(list, func(s view.AgentStatus) bool { return s.ID == a.id }) {
		t.Errorf("got %+v, %v", list, err)
	}
}

// TestSlotIsFreeOnceARunHasEnded checks that who sees the end of the only run that may run can prompt another agent at once.
func TestSlotIsFreeOnceARunHasEnded(t *testing.T) {
	t.Parallel()
	n := openWith(t, Options{Folder: t.TempDir(), Runs: 1})
	a, b := newShellAgent(t, n, "a", "true"), newShellAgent(t, n, "b", "true")
	for range 30 {
		prompt(t, a, "go")
		waitForFinish(t, a, view.FinishIdle)
		a, b = b, a
	}
}

// TestPromptKeyIsIdempotent repeats a prompt: concurrently, after its run, and while there is no free slot.
func TestPromptKeyIsIdempotent(t *testing.T) {
	n := openWith(t, Options{Folder: t.TempDir(), Runs: 1})
	a, other := newShellAgent(t, n, "w", "true"), newShellAgent(t, n, "other", "read prompt; read more")
	again := func() view.Prompted {
		p, err := n.Host().Prompt(t.Context(), a, "go", "key")
		if err != nil {
			t.Error(err)
		}
		return p
	}
	var sent [20]view.Prompted
	var sending sync.WaitGroup
	for i := range sent {
		sending.Go(func() { sent[i] = again() })
	}
	sending.Wait()
	waitForFinish(t, a, view.FinishIdle)
	prompt(t, other, "go")
	for _, p := range append(sent[:], again()) {
		if p.Message != sent[0].Message {
			t.Errorf("%s and %s", p.Message, sent[0].Message)
		}
	}
	if runs := len(eventsOf[*events.RunStarted](t, a)); runs != 1 {
		t.Errorf("%d runs", runs)
	}
	if err := n.Host().Agents().Archive(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Host().Prompt(t.Context(), a, "go", "key"); parley.CodeOf(err) != parley.AgentArchived {
		t.Errorf("to an archived agent: %v", err)
	}
}

// TestInterruptedRunIsFollowedByNext interrupts a run while another message is queued. That message gets a run.
func TestInterruptedRunIsFollowedByNext(t *testing.T) {
	n := openNode(t, t.TempDir())
	a := newShellAgent(t, n, "w", `read prompt; case "$prompt" in *linger*) read more;; esac`)
	prompt(t, a, "linger")
	if p := prompt(t, a, "and then this"); !p.Queued {
		t.Fatalf("got %+v", p)
	}
	if err := a.Agents().Interrupt(t.Context(), a); err != nil { // an agent may stop itself
		t.Fatal(err)
	}
	waitForFinish(t, a, view.FinishIdle)
	ended := eventsOf[*events.RunEnded](t, a)
	if len(ended) != 2 || ended[0].Error != "" || ended[1].Error != "" || ended[0].By != a.id || !ended[1].By.IsZero() {
		t.Errorf("got %+v", ended)
	}
	if err := guest(t, n, "other").Agents().Interrupt(t.Context(), a); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("by an agent without authority: %v", err)
	}
}
