package mailbox_test

import (
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// draftTwoAnswers returns a Harness in which one agent has drafted two answers to a form of another node. Each has its own
// ID, and the first has a reference to bob.
func draftTwoAnswers(t *testing.T) (v *mailboxtest.Harness, asked capabilities.ID, first, second mailbox.SettleForm) {
	t.Helper()
	v = mailboxtest.New(t)
	for _, name := range []string{"fae@A", "host@B", "bob@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("fae@A", "host@B")
	evs := v.Must("fae@A", mailbox.RequestForm{Form: parley.Form{To: "B", Description: "d", Fields: []events.Field{{Name: "f"}, {Name: "who", Type: events.Capability}}}})
	v.Deliver(false)
	draft := func(texts ...events.FieldText) mailbox.SettleForm {
		c, _, err := v.States["host@B"].DraftAnswer(mailbox.Reply{Form: capabilities.FormNumber(0), Answer: parley.Answer{Texts: texts}}, v.Now, v.IDsOf("host@B"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second = draft(events.FieldText{Name: "f", Text: "first"}, events.FieldText{Name: "who", Text: "bob"}), draft(events.FieldText{Name: "f", Text: "second"})
	if first.Answer.IsZero() || first.Answer == second.Answer {
		t.Fatalf("the answers have the IDs %s and %s", first.Answer, second.Answer)
	}
	return v, evs[0].(*events.FormRequested).ID, first, second
}

// settleRemotely decides a settlement at its home as an item of another node. It returns the error of a refusal.
func settleRemotely(v *mailboxtest.Harness, c mailbox.SettleForm) error {
	remote := v.ToRemote("host@B", mailbox.OutboxItem{Kind: events.OutboxAnswer}, c)
	_, err := v.Decide("fae@A", remote)
	return err
}

func TestLosingAnswerGrantsNothing(t *testing.T) {
	v, asked, first, _ := draftTwoAnswers(t)
	v.Must("host@B", mailbox.QueueAnswer{Answer: first})
	v.Must("fae@A", mailbox.CancelForm{Form: capabilities.FormID(asked)})
	v.OnRefusal = func(string, string, string) {}
	v.Deliver(false)
	m, err := v.States["host@B"].Mail.FindFormID(asked)
	if err != nil || m.Form.IsOpen() || m.Form.EndedBy(first.Answer) || m.Form.Queued().Answer != nil {
		t.Fatalf("the copy: %+v, %v", m.Form, err)
	}
	if g, ok := v.States["host@B"].Grants.Given(first.Grants[0].ID); !ok || g.Revoked == 0 {
		t.Errorf("the grant of the losing answer: %+v", g)
	}
	if _, err := v.Decide("host@B", mailbox.QueueAnswer{Answer: first}); parley.CodeOf(err) != parley.AlreadyCancelled {
		t.Errorf("queued after it has lost: %v", err)
	}
}

func TestRepeatedAnswerIsRecognizedByID(t *testing.T) {
	v, asked, _, second := draftTwoAnswers(t)
	v.Must("host@B", mailbox.QueueAnswer{Answer: second})
	for range 2 { // the acknowledgement was lost
		if err := settleRemotely(v, second); err != nil {
			t.Fatal(err)
		}
	}
	other := second
	other.Answer = v.IDsOf("host@B")()
	if err := settleRemotely(v, other); parley.CodeOf(err) != parley.AlreadyAnswered {
		t.Errorf("an equal answer with another ID: %v", err)
	}
	v.Deliver(false)
	if evs := v.Must("host@B", mailbox.QueueAnswer{Answer: second}); len(evs) != 0 {
		t.Errorf("it is queued although it has arrived: %v", evs)
	}
	if m, err := v.States["host@B"].Mail.FindFormID(asked); err != nil || !m.Form.EndedBy(second.Answer) {
		t.Errorf("the copy: %+v, %v", m, err)
	}
}
