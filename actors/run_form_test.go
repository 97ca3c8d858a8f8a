package actors

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"parley"
	"parley/actors/runtime"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// formsAskedBy returns the forms that an agent has asked, oldest first.
func formsAskedBy(tb testing.TB, a *Agent) (all []view.Message) {
	tb.Helper()
	in, err := a.Mail().Inbox(tb.Context(), view.MessageFilter{All: true})
	if err != nil {
		tb.Fatal(err)
	}
	for _, m := range in.Messages {
		if m.Type != "message" && m.From == a.id {
			all = append(all, m)
		}
	}
	return all
}

// awaitFormsAsked blocks until an agent has asked count forms, and returns the last.
func awaitFormsAsked(tb testing.TB, a *Agent, count int) view.Message {
	tb.Helper()
	var asked []view.Message
	eventually.Holds(tb, "it has asked", func() bool {
		asked = formsAskedBy(tb, a)
		return len(asked) >= count
	})
	if len(asked) != count {
		tb.Fatalf("it has asked %d times, want %d", len(asked), count)
	}
	return asked[count-1]
}

// answerAsHost answers an agent's form as the host.
func answerAsHost(tb testing.TB, a *Agent, e view.Message, name, value string) {
	tb.Helper()
	host := a.node.Host()
	eventually.Holds(tb, "the form has arrived", func() bool {
		_, err := host.Message(tb.Context(), capabilities.FormID(e.MessageID))
		return err == nil
	})
	if _, err := host.Answer(tb.Context(), capabilities.FormID(e.MessageID), parley.Answer{Values: text(name, value)}); err != nil {
		tb.Fatal(err)
	}
}

const askingScript = `
send(type="output", text="process %d\n" % os.getpid())
send(type="ask_user", id="when", title="Deploy", context="When?", fields=[{"name": "day", "type": "text", "required": True}])
answer = receive()
send(type="output", text=prompt + " on " + answer["values"]["day"])
send(type="done")
`

// TestNextRunGetsAnswerOfKilledProgram kills a program that waits for an answer. The next run gets the answer and asks
// nothing again.
func TestNextRunGetsAnswerOfKilledProgram(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	a := newPythonAgent(t, n, "w", askingScript)
	prompt(t, a, "deploy")
	asked := awaitFormsAsked(t, a, 1)
	children := descendantsOf(os.Getpid())
	if len(children) == 0 {
		t.Skip("the program's process cannot be found")
	}
	for _, pid := range children {
		if strings.Contains(commandLine(pid), "When?") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := waitForFinish(t, a, view.FinishError); !strings.Contains(s.Error, "SIGKILL") {
		t.Errorf("the error is %q", s.Error)
	}
	answerAsHost(t, a, asked, "day", "Tuesday")
	prompt(t, a, "redeploy")
	waitForFinish(t, a, view.FinishIdle)
	if out := outputOf(t, a); !strings.Contains(out, "redeploy on Tuesday") {
		t.Errorf("the output is %q", out)
	}
	awaitFormsAsked(t, a, 1)

	prompt(t, a, "once more") // after a successful run it is another form
	answerAsHost(t, a, awaitFormsAsked(t, a, 2), "day", "Friday")
	waitForFinish(t, a, view.FinishIdle)
	if out := outputOf(t, a); !strings.Contains(out, "once more on Friday") {
		t.Errorf("the output is %q", out)
	}
}

const twoCallsScript = `
for i in range(2):
    send(type="approval", id="call-%d" % i, tool="shell", input={"command": "rm"})
    decision = receive()
    send(type="output", text="%d %s %s\n" % (i, decision["approved"], decision.get("reason", "")))
send(type="done")
`

// TestDeniedCallIsNotAskedAgainInItsRun repeats a call that was denied. The call is denied again without a form.
func TestDeniedCallIsNotAskedAgainInItsRun(t *testing.T) {
	n := openNode(t, t.TempDir())
	a := newPythonAgent(t, n, "w", twoCallsScript)
	prompt(t, a, "go")
	asked := awaitFormsAsked(t, a, 1)
	waitForFinish(t, a, view.FinishPermission)
	decide := func(e view.Message, decision string) {
		t.Helper()
		values := text("decision", decision)
		values["reason"] = text("", "not that")[""]
		if _, err := n.Host().Answer(t.Context(), capabilities.FormID(e.MessageID), parley.Answer{Values: values}); err != nil {
			t.Fatal(err)
		}
	}
	decide(asked, mailbox.Deny)
	waitForFinish(t, a, view.FinishIdle)
	if out := outputOf(t, a); out != "0 False not that\n1 False not that\n" {
		t.Errorf("the output is %q", out)
	}
	awaitFormsAsked(t, a, 1)

	prompt(t, a, "go") // a decision is for one run, and Once for one call
	decide(awaitFormsAsked(t, a, 2), mailbox.Once)
	decide(awaitFormsAsked(t, a, 3), mailbox.Always)
	waitForFinish(t, a, view.FinishIdle)
	prompt(t, a, "go")
	waitForFinish(t, a, view.FinishIdle)
	awaitFormsAsked(t, a, 3)
}

// TestConcurrentEqualCallsAreSeparateForms makes equal calls at once. Each has a form of its own.
func TestConcurrentEqualCallsAreSeparateForms(t *testing.T) {
	n := openNode(t, t.TempDir())
	a := newPythonAgent(t, n, "w", `
for i in range(8): send(type="approval", id="call-%d" % i, tool="shell", input={"command": "rm"})
for i in range(8): receive()
send(type="done")
`)
	prompt(t, a, "go")
	awaitFormsAsked(t, a, 8)
	if err := n.Host().Agents().Interrupt(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	for _, e := range formsAskedBy(t, a) {
		if e.Outcome == nil || e.Outcome.Status != view.StatusCancelled {
			t.Errorf("%s is %+v", e.MessageID, e.Outcome)
		}
	}
	waitForFinish(t, a, view.FinishIdle)
}

// TestEndedRunCannotActForItsAgent checks that a run can no longer act once its program has ended, or once it was
// interrupted and its program has not ended yet.
func TestEndedRunCannotActForItsAgent(t *testing.T) {
	n := openNode(t, t.TempDir())
	g := newBarrier(t)
	a := newShellAgent(t, n, "w", "trap '' TERM; echo trapped; "+g.wait())
	checkRefused := func(d *runtimeHost, write bool) {
		t.Helper()
		before := len(eventsOf[events.Event](t, a))
		calls := map[string]error{"a message": d.Send(t.Context(), "HOST", "late")}
		_, calls["a question"] = d.Ask(t.Context(), runtime.Question{ID: "late", Description: "late?", Fields: textField("a")})
		_, calls["a call"] = d.Approve(t.Context(), runtime.Call{Permission: parley.Permission{Tool: "shell", Input: "{}"}})
		if write {
			calls["output"] = d.Write(t.Context(), runtime.Output, "late")
		}
		for what, err := range calls {
			if err == nil {
				t.Errorf("%s is accepted", what)
			}
		}
		if after := len(eventsOf[events.Event](t, a)); after != before {
			t.Errorf("%d events of a run that has ended", after-before)
		}
	}
	prompt(t, a, "go")
	eventually.Holds(t, "it ignores signals", func() bool { return strings.Contains(outputOf(t, a), "trapped") })
	run := n.supervisor.currentRun(a.id)
	interrupted := make(chan error, 1)
	go func() { interrupted <- n.Host().Agents().Interrupt(t.Context(), a) }()
	eventually.Holds(t, "it is interrupted", func() bool { return currentStatus(t, a).Status == mailbox.Idle })
	select {
	case <-run.over:
		t.Fatal("the program has ended")
	default:
	}
	checkRefused(run.host, false)
	g.open()
	if err := <-interrupted; err != nil {
		t.Fatal(err)
	}
	checkRefused(run.host, true)
	if out := outputOf(t, a); strings.Contains(out, "late") {
		t.Errorf("the output is %q", out)
	}

	prompt(t, a, "more") // the next run is another one
	if next := n.supervisor.currentRun(a.id); next == run {
		t.Fatal("it is the same run")
	}
	waitForFinish(t, a, view.FinishIdle) // its end is an event too
	checkRefused(run.host, true)
}

// TestInterruptionCancelsOpenForms races an interruption with a program that asks as fast as it can.
func TestInterruptionCancelsOpenForms(t *testing.T) {
	n := openNode(t, t.TempDir())
	a := newPythonAgent(t, n, "w", `
for i in range(50):
    send(type="ask", id="q%d" % i, prompt="Go on?")
    send(type="approval", id="c%d" % i, tool="shell", input={"n": i})
while True: receive()
`)
	for range 5 {
		prompt(t, a, "go")
		eventually.Holds(t, "it asks", func() bool { return currentStatus(t, a).Asks > 0 })
		if err := n.Host().Agents().Interrupt(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if s := waitForFinish(t, a, view.FinishIdle); s.Asks != 0 || len(s.Pending) != 0 {
			t.Fatalf("%d questions are open, %d calls", s.Asks, len(s.Pending))
		}
	}
}

// TestProgramGetsAnswerAfterMailboxCrash crashes the mailbox of an agent whose program waits for an answer.
func TestProgramGetsAnswerAfterMailboxCrash(t *testing.T) {
	n := openNode(t, t.TempDir())
	a := newPythonAgent(t, n, "w", askingScript)
	prompt(t, a, "deploy")
	asked := awaitFormsAsked(t, a, 1)
	_, err := inspect(t.Context(), a, func(b *mailboxActor) (struct{}, error) { panic("for the test") })
	if parley.CodeOf(err) != parley.Internal {
		t.Fatal(err)
	}
	answerAsHost(t, a, asked, "day", "Monday")
	waitForFinish(t, a, view.FinishIdle)
	if out := outputOf(t, a); !strings.Contains(out, "deploy on Monday") {
		t.Errorf("the output is %q", out)
	}
	if run := n.supervisor.currentRun(a.id); !run.host.closed || run.wait(t.Context(), n) != nil {
		t.Error("its run is not over")
	}
}
