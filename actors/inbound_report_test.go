package actors

import (
	"context"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// TestPeerCannotSayWhatLocalAgentsDid has a node say of its own form that agents of the victim ended it or voted on it. The
// form ends by its asker, no vote counts, and nothing in the log names an agent of the victim.
func TestPeerCannotSayWhatLocalAgentsDid(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	host, missing := v.victim.host, capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}
	said := capabilities.Record(map[string]capabilities.Value{"a": capabilities.String("yes, do it")})
	ended := func(form capabilities.ID, by capabilities.ID) map[string]events.Event {
		return map[string]events.Event{
			"answered": &events.FormAnswered{Form: form, By: by, Withheld: true, Date: 1},
			"declined": &events.FormCancelled{Form: form, By: by, Reason: events.Declined, Note: "never ask again", Date: 1},
		}
	}
	for by, id := range map[string]capabilities.ID{"its host": host, "another agent": v.worker.id, "the receiver": v.fae.id, "nobody's agent": missing} {
		for _, how := range []string{"answered", "declined"} {
			v.runCase(t, how+" by "+by, func() {
				form := v.form(v.fae.id, v.faeGrant)
				v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, form))
				e := ended(form.ID, id)[how]
				if a, ok := e.(*events.FormAnswered); ok && id == v.fae.id {
					a.Withheld, a.Values, a.Answer = false, said, v.newID()
				}
				v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, e))
				v.checkEndedByAsker(form.ID)
			})
		}
		v.runCase(t, "cancelled by "+by, func() {
			form := v.form(v.fae.id, v.faeGrant)
			v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, form))
			for _, reason := range []events.Reason{events.Cancelled, events.Superseded, events.Expired} {
				v.checkNoEvents(func() {
					v.wantRefused(v.deliver(events.OutboxOutcome, v.fae.id, &events.FormCancelled{Form: form.ID, By: id, Reason: reason, Date: 1}), "NOT_PERMITTED")
				})
			}
		})
		v.runCase(t, "voted by "+by, func() {
			form := v.form(v.fae.id, v.faeGrant)
			form.Route = &events.Route{Need: 3}
			v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, form))
			vote := &events.VoteCast{Form: form.ID, By: id, Principal: capabilities.ID{Node: v.victim.ID()}, Revision: 1, Outcome: events.VoteAnswered, Date: 1}
			v.checkNoEvents(func() { v.wantAccepted(v.deliver(events.OutboxVotes, v.fae.id, vote)) })
			vote.Principal = v.host
			v.checkNoEvents(func() { v.wantRefused(v.deliver(events.OutboxVotes, v.fae.id, vote), "INVALID_ARGUMENT") })
			if m := v.received(form.ID); m.Votes == nil || len(m.Votes.Cast) > 0 {
				t.Errorf("the votes are %+v", m.Votes)
			}
		})
		v.runCase(t, "escalated from "+by, func() {
			form := v.form(v.fae.id, v.faeGrant)
			form.Steps = &events.CopySteps{{By: id, Cause: events.Escalated, Date: 1, After: 1000}}
			if id == v.fae.id {
				v.wantRefused(v.deliver(events.OutboxCopy, v.fae.id, form), "INVALID_ARGUMENT")
				return
			}
			v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, form))
			if m := v.received(form.ID); len(m.Steps) > 0 {
				t.Errorf("it is said to have come by %+v", m.Steps)
			}
		})
	}
	v.checkResponsive()
}

// TestPeerSaysWhatLocalAgentsDid has an agent of the victim answer forms of another node, and that node say so truly and not.
func TestPeerSaysWhatLocalAgentsDid(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	asked := func(need uint32) *events.FormRequested {
		form := v.form(v.fae.id, v.faeGrant)
		if need > 1 {
			form.Route = &events.Route{Need: need}
		}
		v.wantAccepted(v.deliver(events.OutboxCopy, v.fae.id, form))
		return form
	}
	sentAnswer := func(form *events.FormRequested) *events.AnswerQueued {
		t.Helper()
		sent := awaitEvent[*events.AnswerQueued](v.hostileNode)
		for sent.Form != form.ID {
			sent = awaitEvent[*events.AnswerQueued](v.hostileNode)
		}
		return sent
	}
	answer := func(form *events.FormRequested) *events.AnswerQueued {
		t.Helper()
		if _, err := answerWith(v.fae, form.ID, "mine"); err != nil {
			t.Fatal(err)
		}
		return sentAnswer(form)
	}
	outcome := func(q *events.AnswerQueued, values capabilities.Value) *events.FormAnswered {
		return &events.FormAnswered{Form: q.Form, By: v.fae.id, Values: values, Answer: q.Answer, Date: 1}
	}
	v.runCase(t, "the answer that it gave", func() {
		q := answer(asked(1))
		v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, outcome(q, q.Values)))
		if o := v.received(q.Form).Outcome; o == nil || o.Status != view.StatusAnswered || o.By != v.fae.id {
			t.Errorf("the outcome is %+v", o)
		}
	})
	v.runCase(t, "with other values", func() {
		q := answer(asked(1))
		v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, outcome(q, capabilities.Record(map[string]capabilities.Value{"a": capabilities.String("other")}))))
		v.checkEndedByAsker(q.Form)
	})
	v.runCase(t, "as a decline", func() {
		q := answer(asked(1))
		v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, &events.FormCancelled{Form: q.Form, By: v.fae.id, Reason: events.Declined, Answer: q.Answer, Date: 1}))
		v.checkEndedByAsker(q.Form)
	})
	v.runCase(t, "under the ID of another settlement", func() {
		q := answer(asked(1))
		forged := outcome(q, q.Values)
		forged.Answer = v.newID()
		v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, forged))
		v.checkEndedByAsker(q.Form)
	})
	amended := func(form *events.FormRequested, title string) {
		t.Helper()
		e := &events.FormAmended{Form: form.ID, Revision: 2, Title: title, Description: "all of it", Fields: v.received(form.ID).Fields, Date: 1}
		e.Digest = e.QuestionDigest()
		v.wantAccepted(v.deliver(events.OutboxAmendment, v.fae.id, e))
	}
	v.runCase(t, "to the question before it was changed", func() {
		form := asked(1)
		q := answer(form)
		amended(form, "wipe production?")
		v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, outcome(q, q.Values)))
		v.checkEndedByAsker(q.Form)
	})
	v.runCase(t, "as a decline of the question before it was changed", func() {
		form := asked(1)
		if _, err := declineSoon(v.fae, form.ID); err != nil {
			t.Fatal(err)
		}
		q := sentAnswer(form)
		amended(form, "keep the backups?")
		v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, &events.FormCancelled{Form: form.ID, By: v.fae.id, Reason: events.Declined, Note: "no", Answer: q.Answer, Date: 1}))
		v.checkEndedByAsker(form.ID)
	})
	v.runCase(t, "to the changed question", func() {
		form := asked(1)
		amended(form, "delete the build?")
		q := answer(form)
		v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, outcome(q, q.Values)))
		if o := v.received(q.Form).Outcome; o == nil || o.Status != view.StatusAnswered || o.By != v.fae.id {
			t.Errorf("the outcome is %+v", o)
		}
	})
	v.runCase(t, "another's answer under its ID", func() {
		q := answer(asked(1))
		forged := &events.FormAnswered{Form: q.Form, By: v.newID(), Withheld: true, Answer: q.Answer, Date: 1}
		v.checkNoEvents(func() { v.wantRefused(v.deliver(events.OutboxOutcome, v.fae.id, forged), "NOT_PERMITTED") })
	})
	v.runCase(t, "its vote, that it was against, and that it was withdrawn", func() {
		form := asked(2)
		q := answer(form)
		digest := (&events.FormAmended{Title: form.Title, Description: form.Description, Fields: v.received(form.ID).Fields}).QuestionDigest()
		vote := events.VoteCast{
			Form: form.ID, By: v.fae.id, Principal: capabilities.ID{Node: v.victim.ID()}, Revision: 1, Outcome: events.VoteAnswered, Digest: digest, Date: 1, Answer: q.Answer,
		}
		against, other := vote, vote
		against.Outcome, against.Note = events.VoteDeclined, "no"
		other.Digest = events.Hash{1}
		for _, forged := range []events.VoteCast{against, other} {
			v.checkNoEvents(func() { v.wantAccepted(v.deliver(events.OutboxVotes, v.fae.id, &forged)) })
		}
		v.wantAccepted(v.deliver(events.OutboxVotes, v.fae.id, &vote))
		stands := func() {
			t.Helper()
			m := v.received(form.ID)
			if m.Votes == nil || len(m.Votes.Cast) != 1 || m.Votes.Cast[0].By != v.fae.id || m.Votes.Own != view.VoteStands {
				t.Errorf("the votes are %+v", m.Votes)
			}
		}
		stands()
		v.checkNoEvents(func() { v.wantAccepted(v.deliver(events.OutboxVotes, v.fae.id, &other)) })
		stands()
		none := &events.VoteWithdrawn{Form: form.ID, Date: 1}
		v.checkNoEvents(func() { v.wantAccepted(v.deliver(events.OutboxVotes, v.fae.id, none)) })
		stands()
		if queued, err := v.fae.Withdraw(t.Context(), capabilities.FormID(form.ID)); err != nil || !queued {
			t.Fatalf("withdrawn: %v, %v", queued, err)
		}
		v.wantAccepted(v.deliver(events.OutboxVotes, v.fae.id, none))
		if m := v.received(form.ID); len(m.Votes.Cast) > 0 {
			t.Errorf("the votes are %+v", m.Votes)
		}
		again := vote
		again.Answer = answer(form).Answer
		v.wantAccepted(v.deliver(events.OutboxVotes, v.fae.id, &again))
		stands()
		v.checkNoEvents(func() { v.wantAccepted(v.deliver(events.OutboxVotes, v.fae.id, none)) })
		v.checkNoEvents(func() { v.wantAccepted(v.deliver(events.OutboxVotes, v.fae.id, &vote)) })
		stands()
		v.wantAccepted(v.deliver(events.OutboxOutcome, v.fae.id, outcome(q, q.Values)))
		v.checkEndedByAsker(form.ID)
	})
	v.runCase(t, "its forward, and why", func() {
		if _, err := v.victim.Host().Send(t.Context(), "fae", "this is @worker"); err != nil {
			t.Fatal(err)
		}
		if err := v.fae.Adopt(t.Context(), capabilities.FormNumber(v.lastNumber()), "worker", "worker"); err != nil {
			t.Fatal(err)
		}
		form := asked(1)
		if err := v.fae.Forward(t.Context(), capabilities.FormID(form.ID), "worker"); err != nil {
			t.Fatal(err)
		}
		forwarded := awaitEvent[*events.FormForwarded](v.hostileNode)
		for forwarded.Form != form.ID {
			forwarded = awaitEvent[*events.FormForwarded](v.hostileNode)
		}
		away := *forwarded
		away.Because = events.ForwardCause{Cause: events.Member}
		v.checkNoEvents(func() { v.wantRefused(v.deliver(events.OutboxForwarded, v.fae.id, &away), "NOT_PERMITTED") })
		v.wantAccepted(v.deliver(events.OutboxForwarded, v.fae.id, forwarded))
		if m := v.received(form.ID); len(m.ForwardedTo) != 1 || m.ForwardedTo[0].Cause != "" {
			t.Errorf("it is forwarded to %+v", m.ForwardedTo)
		}
	})
	v.checkResponsive()
}

// TestPeerSaysWhomAMessageDidNotReach has a group of another node say that a message of the victim's host did not reach agents. Of those of
// the victim it is believed that are archived, or whose reference the node has no more.
func TestPeerSaysWhomAMessageDidNotReach(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	archived := guest(t, v.victim, "archived")
	if err := v.victim.Host().Agents().Archive(t.Context(), archived); err != nil {
		t.Fatal(err)
	}
	sent, err := v.victim.Host().Send(t.Context(), "hostile", "the news")
	if err != nil {
		t.Fatal(err)
	}
	awaitEvent[*events.MessagePosted](v.hostileNode)
	v.waitIdle()
	missing, own := capabilities.ID{ULID: v.newID().ULID, Node: v.victim.ID()}, v.newID()
	report := func(agents ...capabilities.ID) []events.Event {
		var all []events.Event
		for _, id := range agents {
			all = append(all, &events.MessageUnreached{Message: sent.Message, By: v.host, Agent: id, Why: "AGENT_ARCHIVED: the agent is archived", Date: 1})
		}
		return all
	}
	v.checkNoEvents(func() {
		v.wantAccepted(v.deliver(events.OutboxUnreached, v.victim.host, report(v.worker.id, v.fae.id, v.victim.host, missing)...))
	})
	v.wantAccepted(v.deliver(events.OutboxUnreached, v.victim.host, report(v.fae.id, archived.id, v.formerlyGranted.id, own)...))
	m, err := v.victim.Host().Message(t.Context(), capabilities.FormID(sent.Message))
	if err != nil {
		t.Fatal(err)
	}
	said := map[capabilities.ID]bool{}
	for _, u := range m.Unreached {
		said[u.ID] = true
	}
	if len(said) != 3 || !said[archived.id] || !said[v.formerlyGranted.id] || !said[own] {
		t.Errorf("it is said not to have reached %+v", m.Unreached)
	}
	v.checkResponsive()
}

// received returns a form as fae has it.
func (v *hostileHarness) received(form capabilities.ID) view.Message {
	v.Helper()
	m, err := v.fae.Message(v.Context(), capabilities.FormID(form))
	if err != nil {
		v.Fatal(err)
	}
	return m
}

func (v *hostileHarness) lastNumber() uint64 {
	v.Helper()
	in, err := v.fae.Mail().Inbox(v.Context(), view.MessageFilter{All: true})
	if err != nil {
		v.Fatal(err)
	}
	last := uint64(0)
	for _, m := range in.Messages {
		last = max(last, m.Number)
	}
	return last
}

// checkEndedByAsker checks that a form has ended in fae's mailbox by its asker, and that no event but the form's own names
// an agent of the victim.
func (v *hostileHarness) checkEndedByAsker(form capabilities.ID) {
	v.Helper()
	o := v.received(form).Outcome
	if o == nil || o.Status != view.StatusCancelled || o.By != v.host || !o.Values.IsNull() {
		v.Errorf("the outcome is %+v", o)
	}
	for _, e := range eventsOf[events.Event](v, v.fae) {
		a, answered := e.(*events.FormAnswered)
		c, cancelled := e.(*events.FormCancelled)
		if answered && a.Form == form && a.By.Node == v.victim.ID() || cancelled && c.Form == form && c.By.Node == v.victim.ID() {
			v.Errorf("the log has %+v", e)
		}
	}
}

// TestThirdNodeIsToldOf has b forward a form of a's to c, who answers. What b sees of c is what a says, under b's name of c.
func TestThirdNodeIsToldOf(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	asked := ask(t, a.Host(), parley.Form{To: "b"})
	awaitMessage(t, b.Host(), asked.Form)
	if err := b.Host().Forward(t.Context(), capabilities.FormID(asked.Form), "c"); err != nil {
		t.Fatal(err)
	}
	if m := awaitMessage(t, c.Host(), asked.Form); len(m.Chain) != 1 || m.Chain[0].Name != "b" {
		t.Errorf("c has it by %+v", m.Chain)
	}
	if _, err := answerWith(c.Host(), asked.Form, "x"); err != nil {
		t.Fatal(err)
	}
	awaitSameOutcome(t, asked.Form, view.StatusAnswered, a.Host(), b.Host(), c.Host())
	for who, want := range map[*Agent]string{a.Host(): "c", b.Host(): "c", c.Host(): "SELF"} {
		if m := awaitMessage(t, who, asked.Form); m.Outcome == nil || m.Outcome.ByName != want {
			t.Errorf("outcome %+v; want by %s", m.Outcome, want)
		}
	}
}

// declineSoon declines a form, and does not wait for its home.
func declineSoon(a *Agent, form capabilities.ID) (view.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return a.Decline(ctx, capabilities.FormID(form), 0, "no")
}
