package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// TestTimersInVirtualTime runs a whole node in a bubble of package synctest, with its actors and its journal. Reminders,
// escalations, deadlines and passivation come when they are due, to the millisecond, and hours take no time.
//
// The actor library allows it: its goroutines wait on channels alone. So do those of the embedded server, except for its
// clock of accesses, a goroutine that all servers of a process share. That one is started outside of the bubble. Files are
// real: time does not pass while a goroutine waits for the disk. Links to other nodes do not run here, as their sockets
// would keep the time from passing.
func TestTimersInVirtualTime(t *testing.T) {
	ats.Register()
	defer ats.Unregister()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n := openWith(t, Options{Folder: folder, Idle: time.Minute})
		fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
		begun := n.now()
		remind, escalate, end := begun.Add(time.Hour), begun.Add(2*time.Hour), begun.Add(3*time.Hour)
		asked := ask(t, n.Host(), parley.Form{
			To: "fae", Deadline: end,
			Remind:   []events.Delay{events.Delay(remind - begun)},
			Escalate: []parley.Escalation{{After: events.Delay(escalate - begun), To: "bob"}},
		})
		sleepUntil := func(at capabilities.Time) {
			t.Helper()
			time.Sleep(time.Until(at.Std()) - time.Minute)
			if active := n.State().Active; active != 0 {
				t.Errorf("%d mailboxes are active at %s", active, n.now())
			}
		}

		sleepUntil(remind)
		if r := routeOf(t, n.Host()); r.Reminded != 0 || r.RemindsAt != remind {
			t.Errorf("before the reminder: %+v", r)
		}
		sleepUntil(escalate)
		r := routeOf(t, n.Host())
		if r.Reminded != 1 || r.RemindedAt != remind || r.RemindsAt != 0 {
			t.Errorf("after the reminder: %+v", r)
		}
		if len(r.Steps) != 1 || r.Steps[0].Cause != "" || received(t, bob) != 0 {
			t.Errorf("before the escalation: %+v, bob has %d", r, received(t, bob))
		}
		sleepUntil(end)
		r = routeOf(t, n.Host())
		if len(r.Steps) != 1 || r.Steps[0].Cause != events.Escalated || r.Steps[0].At != escalate || received(t, bob) != 1 || received(t, fae) != 1 {
			t.Errorf("after the escalation: %+v, bob has %d and fae %d", r, received(t, bob), received(t, fae))
		}
		o, err := n.Host().Await(t.Context(), capabilities.FormID(asked.Form))
		if err != nil || o.Status != view.StatusExpired || o.At != end || n.now() < end {
			t.Errorf("the form ends with %+v, %v, at %s", o, err, n.now())
		}
	})
}

// routeOf returns the reminders and escalations of the form that an agent has asked.
func routeOf(t *testing.T, a *Agent) *view.Route {
	t.Helper()
	for m, err := range a.Mail().All(t.Context(), view.MessageFilter{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Route != nil {
			return m.Route
		}
	}
	t.Fatal("no form has a route")
	return nil
}

// received returns the number of messages in an agent's inbox.
func received(t *testing.T, a *Agent) int {
	t.Helper()
	in, err := a.Mail().Inbox(t.Context(), view.MessageFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return len(in.Messages)
}
