package actors

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// skewedClock is a clock that runs ahead, and is put right by setting it to 0.
type skewedClock struct{ ahead atomic.Int64 }

func (c *skewedClock) now() time.Time            { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *skewedClock) runsAhead(d time.Duration) { c.ahead.Store(int64(d)) }

// TestClockThatRanAheadIsPutRight has a node's clock run ahead by a day, and puts it right: while the node runs, and while it is down. What is asked
// then goes by the clock. Leave that has ended by then stays ended, and none is given that would have. The log goes on from its newest time.
func TestClockThatRanAheadIsPutRight(t *testing.T) {
	ats.Register() // as in TestTimersInVirtualTime
	defer ats.Unregister()
	for _, restarts := range []bool{false, true} {
		folder := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var clock skewedClock
			o := Options{Folder: folder, Clock: clock.now, Idle: time.Minute}
			n := openWith(t, o)
			fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
			ended, err := n.Host().Tokens().Make(t.Context(), NewToken{Until: n.clock().Add(12 * time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			call := parley.Permission{Tool: "Bash", Input: `{"command":"ls"}`}
			if err := addEndingRule(t, fae, &call, n.clock().Add(12*time.Hour)); err != nil {
				t.Fatal(err)
			}
			if p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: call}); err != nil || !p.Decided {
				t.Fatalf("a rule that lasts: %+v, %v", p, err)
			}
			if _, _, err := n.Credentials().Authenticate(t.Context(), ended.Text); err != nil {
				t.Fatalf("a token that lasts: %v", err)
			}
			clock.runsAhead(24 * time.Hour)
			send(t, fae, "HOST", "It is tomorrow.")
			clock.runsAhead(0)
			if restarts {
				closeNode(t, n)
				n = openWith(t, o)
				fae, bob = &Agent{node: n, id: fae.id}, &Agent{node: n, id: bob.id}
			}

			begun := capabilities.At(time.Now())
			remind, escalate, end := begun.Add(time.Hour), begun.Add(2*time.Hour), begun.Add(3*time.Hour)
			asked := ask(t, n.Host(), parley.Form{
				To: "fae", Deadline: end,
				Remind:   []events.Delay{events.Delay(remind - begun)},
				Escalate: []parley.Escalation{{After: events.Delay(escalate - begun), To: "bob"}},
			})
			if _, err := n.Host().Mail().Schedules().Add(t.Context(), mailbox.ScheduleMessage{To: "bob", Post: parley.Post{Text: "Once an hour."}, Every: "@hourly"}); err != nil {
				t.Fatal(err)
			}
			before := received(t, bob)
			time.Sleep(time.Until(escalate.Std()) - time.Second)
			if r := routeOf(t, n.Host()); r.Reminded != 1 || r.RemindedAt != remind {
				t.Errorf("after the reminder: %+v", r)
			}
			if got := received(t, bob) - before; got < 1 || got > 2 {
				t.Errorf("a series of each hour was sent %d times in two hours", got)
			}
			time.Sleep(2 * time.Second)
			if r := routeOf(t, n.Host()); len(r.Steps) != 1 || r.Steps[0].Cause != events.Escalated || r.Steps[0].At != escalate {
				t.Errorf("after the escalation: %+v", r)
			}
			if o, err := n.Host().Await(t.Context(), capabilities.FormID(asked.Form)); err != nil || o.Status != view.StatusExpired || o.At != end {
				t.Errorf("the form ends with %+v, %v, and not at %s", o, err, end)
			}

			if _, _, err := n.Credentials().Authenticate(t.Context(), ended.Text); parley.CodeOf(err) != parley.Unauthenticated {
				t.Errorf("a token that had ended is good again: %v", err)
			}
			if p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: call}); err != nil || p.Decided || p.Form.IsZero() {
				t.Errorf("a rule that had ended decides again: %+v, %v", p, err)
			}
			soon := capabilities.At(time.Now()).Add(time.Hour)
			if err := addEndingRule(t, fae, &call, soon); parley.CodeOf(err) != parley.InvalidArgument || parley.AsError(err).Hint == "" {
				t.Errorf("a rule that would be over at once: %v", err)
			}
			if _, err := n.Host().Tokens().Make(t.Context(), NewToken{Until: soon}); parley.CodeOf(err) != parley.InvalidArgument {
				t.Errorf("a token that would be over at once: %v", err)
			}
			later, err := n.Host().Tokens().Make(t.Context(), NewToken{Until: begun.Add(48 * time.Hour)})
			if err == nil {
				_, _, err = n.Credentials().Authenticate(t.Context(), later.Text)
			}
			if err != nil {
				t.Errorf("a token that ends later: %v", err)
			}
			checkLogGoesOn(t, fae, n.Host())
		})
	}
}

// TestClocksOfTwoNodesDiffer has the clock of one of two nodes run ahead by a day, and puts it right. Forms go both ways, are answered, and expire on time.
func TestClocksOfTwoNodesDiffer(t *testing.T) {
	t.Parallel()
	var clock skewedClock
	a, b := openClusterNode(t, "a", true), &clusterNode{options: Options{Folder: t.TempDir(), Name: "b", Clock: clock.now}}
	b.open(t)
	connectHosts(t, a, b)
	clock.runsAhead(24 * time.Hour)
	awaitMessage(t, a.Host(), send(t, b.Host(), "a", "It is tomorrow.").Message)
	clock.runsAhead(0)
	for _, way := range [][2]*clusterNode{{a, b}, {b, a}} {
		asker, answerer := way[0], way[1]
		name := answerer.options.Name
		now := capabilities.At(time.Now())
		hour := ask(t, asker.Host(), parley.Form{To: name, Deadline: now.Add(time.Hour)})
		if m := awaitMessage(t, answerer.Host(), hour.Form); m.Deadline != now.Add(time.Hour) || m.Date.Std().After(time.Now().Add(time.Minute)) {
			t.Errorf("to %s: it is of %s, and ends at %s", name, m.Date, m.Deadline)
		}
		o, err := answerWith(answerer.Host(), hour.Form, "in time")
		if err != nil || o.Status != view.StatusAnswered || o.At.Std().After(time.Now().Add(time.Minute)) {
			t.Errorf("to %s: %+v, %v", name, o, err)
		}
		short := ask(t, asker.Host(), parley.Form{To: name, Deadline: capabilities.At(time.Now().Add(300 * time.Millisecond))})
		awaitSameOutcome(t, short.Form, view.StatusExpired, asker.Host(), answerer.Host())
	}
	eventually.Holds(t, "nothing is expired that has an hour", func() bool { return a.State().OpenForms == 0 && b.State().OpenForms == 0 })
	checkLogGoesOn(t, a.Host(), b.Host())
}

// TestClockJumps has the clock of a node jump, with a start of the node in between, and jump back. After each jump forms are answered and expire on time.
func TestClockJumps(t *testing.T) {
	for name, to := range map[string]time.Time{
		"to 1970, as without a battery": time.UnixMilli(0).Add(time.Hour),
		"before 1970":                   time.UnixMilli(0).Add(-10 * 24 * time.Hour),
		"back by seconds":               time.Now().Add(-3 * time.Second),
		"ahead by centuries":            time.Now().Add(250 * 365 * 24 * time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var clock skewedClock
			o := Options{Folder: t.TempDir(), Clock: clock.now}
			n := openWith(t, o)
			fae := guest(t, n, "fae")
			works := func() {
				t.Helper()
				long := ask(t, fae, parley.Form{Deadline: n.clock().Add(time.Hour)})
				if _, err := answerWith(n.Host(), long.Form, "in time"); err != nil {
					t.Error(err)
				}
				short := ask(t, fae, parley.Form{Deadline: n.clock().Add(200 * time.Millisecond)})
				if o, err := fae.Await(t.Context(), capabilities.FormID(short.Form)); err != nil || o.Status != view.StatusExpired {
					t.Errorf("%+v, %v", o, err)
				}
			}
			works()
			for _, ahead := range []time.Duration{time.Until(to), 0} {
				clock.runsAhead(ahead)
				works()
				closeNode(t, n)
				n = openWith(t, o)
				fae = &Agent{node: n, id: fae.id}
				works()
			}
			if _, err := n.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			checkLogGoesOn(t, fae)
		})
	}
}

// addEndingRule has the host of an agent allow a call of its until a time.
func addEndingRule(t *testing.T, a *Agent, call *parley.Permission, until capabilities.Time) error {
	t.Helper()
	covers, err := mailbox.Offered(call, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.node.Host().Rules().add(t.Context(), a, mailbox.AddRule{Tool: call.Tool, Covers: covers, Allow: true, Until: until})
	return err
}

// checkLogGoesOn checks that no time goes back in the logs of agents.
func checkLogGoesOn(t *testing.T, agents ...*Agent) {
	t.Helper()
	for _, a := range agents {
		logged, err := a.Log(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(logged.Entries); i++ {
			if logged.Entries[i].At < logged.Entries[i-1].At {
				t.Errorf("time goes back in the log: %s after %s", logged.Entries[i].At, logged.Entries[i-1].At)
			}
		}
	}
}
