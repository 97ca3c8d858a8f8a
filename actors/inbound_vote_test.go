package actors

import (
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// TestPeerHasOneVote has a node vote as several of its agents, on a form and on a call of the victim's: in its own turn, again, as an agent
// to whom it has forwarded the form, and as one that nobody has asked. All of them have the one vote of their node, and it decides nothing alone.
func TestPeerHasOneVote(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	host := v.victim.Host()
	second, stranger := v.newID(), v.newID()
	vote := func(by, form capabilities.ID, field, says string) *events.AnswerQueued {
		return &events.AnswerQueued{Form: form, Answer: v.newID(), Date: 1, Values: capabilities.Record(map[string]capabilities.Value{field: capabilities.String(says)})}
	}
	check := func(form capabilities.ID, field, says string) {
		t.Helper()
		cast := func(by capabilities.ID) *events.AnswerQueued {
			t.Helper()
			e := vote(by, form, field, says)
			v.wantAccepted(v.deliverAll(v.item(events.OutboxAnswer, by, v.fae.id, e))[0])
			return e
		}
		v.wantAccepted(v.deliver(events.OutboxForward, v.fae.id, &events.FormForwarded{Form: form, By: v.host, To: second, Via: v.newID()}))
		first := cast(v.host)
		for _, by := range []capabilities.ID{v.host, second, v.host, second} {
			cast(by)
			m, err := v.fae.Message(t.Context(), capabilities.FormID(form))
			if err != nil || m.Outcome != nil || m.Votes == nil || m.Votes.Have != 1 || len(m.Votes.Cast) != 1 {
				t.Fatalf("after another vote by %s: %+v, %+v, %v", by, m.Votes, m.Outcome, err)
			}
		}
		v.checkNoEvents(func() {
			v.wantRefused(v.deliverAll(v.item(events.OutboxAnswer, stranger, v.fae.id, vote(stranger, form, field, says)))[0], "NOT_PERMITTED")
			v.wantRefused(v.deliverAll(v.item(events.OutboxAnswer, host.id, v.fae.id, vote(host.id, form, field, says)))[0], "")
			v.deliver(events.OutboxAnswer, v.fae.id, first) // a packet again
		})
		if m, err := v.fae.Message(t.Context(), capabilities.FormID(form)); err != nil || m.Outcome != nil || m.Votes.Have != 1 {
			t.Errorf("in the end: %+v, %+v, %v", m.Votes, m.Outcome, err)
		}
	}
	v.runCase(t, "on a form", func() {
		asked := ask(v, v.fae, parley.Form{To: "HOST", Need: 2})
		if err := host.Forward(t.Context(), capabilities.FormID(asked.Form), "hostile"); err != nil {
			t.Fatal(err)
		}
		v.awaitDelivered()
		check(asked.Form, "a", "yes")
	})
	v.runCase(t, "on a call", func() {
		p, err := v.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"ls"}`}, Need: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := host.Forward(t.Context(), capabilities.FormID(p.Form), "hostile"); err != nil {
			t.Fatal(err)
		}
		v.awaitDelivered()
		check(p.Form, "decision", mailbox.Once)
		v.wantRefused(v.deliver(events.OutboxAnswer, v.fae.id, vote(v.host, p.Form, "decision", mailbox.Always)), "")
		if m, err := v.fae.Message(t.Context(), capabilities.FormID(p.Form)); err != nil || m.Outcome != nil {
			t.Errorf("%+v, %v", m.Outcome, err)
		}
		d := host.Decide(t.Context(), "", []parley.Decision{{Form: p.Form, Digest: digestOf(t, v.fae, p.Form), Decision: mailbox.Once}})[0]
		if d.Err != nil || d.Outcome.Status != view.StatusAnswered {
			t.Errorf("the host's own vote: %+v", d)
		}
	})
	v.checkResponsive()
}
