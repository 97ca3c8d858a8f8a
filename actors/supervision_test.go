package actors

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley"
	"parley/actors/runtime"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// restarts returns the number of restarts of an actor, or -1 if there is none.
func restarts(n *Node, name string) int {
	for _, a := range n.Tree() {
		if a.Name == name {
			return a.Restarts
		}
	}
	return -1
}

// checkAtWork checks that a form of an agent reaches the host and is answered.
func checkAtWork(tb testing.TB, n *Node, a *Agent) {
	tb.Helper()
	asked := ask(tb, a, parley.Form{})
	if _, err := n.Host().Answer(tb.Context(), capabilities.FormID(asked.Form), parley.Answer{Values: text("a", "x")}); err != nil {
		tb.Fatal(err)
	}
	if o, err := a.Await(tb.Context(), capabilities.FormID(asked.Form)); err != nil || o.Status != view.StatusAnswered {
		tb.Fatalf("%+v, %v", o, err)
	}
}

func crash(*mailboxActor) (none, error) { panic("for the test") }

func TestMailboxCrashLeavesOthersAtWork(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	if _, err := inspect(t.Context(), fae, crash); parley.CodeOf(err) != parley.Internal {
		t.Fatal(err)
	}
	checkAtWork(t, n, bob)
	checkAtWork(t, n, fae)
	if got := restarts(n, agentName(fae.id)); got != 1 {
		t.Errorf("%d restarts", got)
	}
}

func TestRepeatedCrashesQuarantineMailbox(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	for range maxRestarts + 1 {
		if _, err := inspect(t.Context(), fae, crash); parley.CodeOf(err) != parley.Internal {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "it is quarantined", func() bool {
		_, err := fae.Version(t.Context())
		return parley.CodeOf(err) == parley.Internal
	})
	checkAtWork(t, n, bob)
	if i := slices.IndexFunc(n.Tree(), func(a view.ActorState) bool { return a.Problem != "" }); i < 0 || n.Tree()[i].Name != agentName(fae.id) {
		t.Errorf("the tree does not show it: %+v", n.Tree())
	}
}

func TestSchedulerCrashLeavesOthersAtWork(t *testing.T) {
	var armed atomic.Bool
	n := openWith(t, Options{Folder: t.TempDir(), Clock: func() time.Time {
		if armed.Load() && strings.Contains(string(debug.Stack()), "(*scheduler).look") && armed.CompareAndSwap(true, false) {
			panic("for the test")
		}
		return time.Now()
	}})
	fae := guest(t, n, "fae")
	armed.Store(true)
	eventually.Holds(t, "it crashes", func() bool { return restarts(n, schedulerName) == 1 })
	checkAtWork(t, n, fae)
	asked := ask(t, fae, parley.Form{Deadline: n.now().Add(50_000_000)})
	if o, err := fae.Await(t.Context(), capabilities.FormID(asked.Form)); err != nil || o.Status != view.StatusExpired {
		t.Errorf("%+v, %v", o, err)
	}
}

// crashingLog is a log handler that panics once, at the record of a journal failure.
type crashingLog struct {
	slog.Handler
	armed *atomic.Bool
}

func (h crashingLog) Enabled(context.Context, slog.Level) bool { return true }
func (h crashingLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "the journal failed: read-only" && h.armed.CompareAndSwap(true, false) {
		panic("for the test")
	}
	return nil
}

func TestJournalSupervisorCrashLeavesOthersAtWork(t *testing.T) {
	var armed, fails atomic.Bool
	n := openWith(t, Options{
		Folder: t.TempDir(), Log: slog.New(crashingLog{slog.DiscardHandler, &armed}),
		Failpoint: func(step string) error {
			if fails.Load() && (step == "before publish" || step == "before reopen") {
				return errors.New("for the test")
			}
			return nil
		},
	})
	fae := guest(t, n, "fae")
	armed.Store(true)
	fails.Store(true)
	if _, err := fae.Send(t.Context(), "HOST", "hello"); parley.CodeOf(err) != parley.ReadOnly {
		t.Error(err)
	}
	eventually.Holds(t, "it crashes", func() bool { return restarts(n, journalName) == 1 })
	fails.Store(false)
	eventually.Holds(t, "the journal is back", func() bool { return n.journal.Err() == nil })
	checkAtWork(t, n, fae)
}

// actorOf returns the actor of a name.
func actorOf(tb testing.TB, n *Node, name string) *actor.PID {
	tb.Helper()
	t := n.registry.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, c := range t.children {
		if c.name == name {
			return actor.NewPID(t.system.Address(), id)
		}
	}
	tb.Fatalf("there is no actor %s", name)
	return nil
}

func TestPeerCrashLeavesOthersAtWork(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	a.registry.system.Root.Send(actorOf(t, a.Node, peerName(b.id)), "no message of a peer's actor")
	eventually.Holds(t, "it crashes", func() bool { return restarts(a.Node, peerName(b.id)) == 1 })
	checkAtWork(t, a.Node, guest(t, a.Node, "fae"))
	awaitMessage(t, c.Host(), send(t, a.Host(), "c", "hello").Message)
	awaitMessage(t, b.Host(), send(t, a.Host(), "b", "hello").Message)
}

// crashingProgram is a program whose run panics.
type crashingProgram struct{ runtime.Program }

func (crashingProgram) Run(context.Context, runtime.Prompt, runtime.Host, func()) runtime.Result {
	panic("for the test")
}

func TestProgramCrashLeavesOthersAtWork(t *testing.T) {
	n := openNode(t, t.TempDir())
	var crashed atomic.Bool
	n.supervisor.program = func(p events.ProgramSet) runtime.Program {
		if crashed.CompareAndSwap(false, true) {
			return crashingProgram{n.supervisor.newRuntime(p)}
		}
		return n.supervisor.newRuntime(p)
	}
	fae := newShellAgent(t, n, "fae", "read -r x; echo done")
	if _, err := n.Host().Prompt(t.Context(), fae, "go", ""); err == nil {
		t.Error("the prompt of a crashed run is accepted")
	}
	waitForFinish(t, fae, view.FinishError)
	checkAtWork(t, n, guest(t, n, "bob"))
	eventually.Holds(t, "it is restarted", func() bool { return restarts(n, programName(fae.id)) == 1 })
	prompt(t, fae, "again")
	waitForFinish(t, fae, view.FinishIdle)
}
