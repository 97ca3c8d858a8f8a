package client_test

import (
	"testing"
	"time"

	"parley"
	"parley/gateway/client"
)

// TestInboxIsSnoozedMarkedAndDrafted uses each operation on the lists of an inbox once.
func TestInboxIsSnoozedMarkedAndDrafted(t *testing.T) {
	_, host, fae := openTest(t)
	ctx := t.Context()
	asked, err := fae.Ask(ctx, client.Form{To: "HOST", Description: "which?", Fields: []client.Field{{Name: "many", Type: "multiselect", Options: []client.Option{{Value: "a"}, {Value: "b"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	if err := host.Snooze(ctx, asked.Form, until); err != nil {
		t.Fatal(err)
	}
	if left, err := host.MarkRead(ctx, false); err != nil || left != 0 {
		t.Fatalf("%d are unread, %v", left, err)
	}
	if err := host.SaveDraft(ctx, asked.Form, map[string][]string{"many": {"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	m, err := host.Message(ctx, asked.Form)
	if err != nil || !m.SnoozedUntil.Std().Equal(until) || m.Unread || m.DraftAt == 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if d, err := host.Draft(ctx, asked.Form); err != nil || len(d.Texts) != 2 || d.Texts[1].Text != "b" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := fae.Draft(ctx, asked.Form); err != nil {
		t.Error(err) // it has none of its own
	}
	if err := fae.SaveDraft(ctx, asked.Form, map[string][]string{"many": {"a"}}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("the asker drafts an answer: %v", err)
	}
	for _, text := range []string{"half a message", ""} {
		if err := host.SaveMessageDraft(ctx, "fae", "", text); err != nil {
			t.Fatal(err)
		}
		if d, err := host.MessageDraft(ctx, "fae", ""); err != nil || d.Text != text {
			t.Errorf("%+v, %v", d, err)
		}
		if err := host.SaveMessageDraft(ctx, "", asked.Form, text); err != nil {
			t.Fatal(err)
		}
		if d, err := host.MessageDraft(ctx, "", asked.Form); err != nil || d.Text != text {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if c, err := host.Counts(ctx); err != nil || c != (client.Counts{Snoozed: 1, All: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
	if refused, err := host.MoveMessages(ctx, "snooze", until.Add(time.Hour), asked.Form, client.Number(99)); err != nil || len(refused) != 1 || refused[0].Number != "99" || refused[0].Error.Code != parley.NoSuchMessage {
		t.Errorf("%+v, %v", refused, err)
	}
	if err := host.Snooze(ctx, asked.Form, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := host.Dismiss(ctx, asked.Form); err != nil {
		t.Fatal(err)
	}
	if c, err := host.Counts(ctx); err != nil || c != (client.Counts{Done: 1, All: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
	if err := host.Restore(ctx, asked.Form); err != nil {
		t.Fatal(err)
	}
	if c, err := host.Counts(ctx); err != nil || c != (client.Counts{Pending: 1, Unread: 1, All: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestRightIsHandedOn has the bearer of a right hand on a narrower one, which ends with it.
func TestRightIsHandedOn(t *testing.T) {
	_, host, fae := openTest(t)
	ctx := t.Context()
	ask := func() client.ID {
		asked, err := fae.Ask(ctx, client.Form{To: "HOST", Description: "which?", Fields: []client.Field{{Name: "port", Type: "number"}}})
		if err != nil {
			t.Fatal(err)
		}
		return asked.Form
	}
	form := ask()
	right, err := host.GrantAnswer(ctx, form, client.NewRight{Outcomes: []string{"answer"}, Uses: 2, Until: time.Now().Add(time.Hour), Name: "phone"})
	if err != nil || client.ID(right.Form.String()) != form || right.Uses != 2 || right.Until == 0 {
		t.Fatalf("%+v, %v", right, err)
	}
	child, err := fae.NarrowRight(ctx, right.Secret, client.NewRight{Uses: 1})
	if err != nil || client.ID(child.Form.String()) != form || child.Uses != 1 || child.Until != right.Until || len(child.Outcomes) != 1 {
		t.Fatalf("%+v, %v", child, err)
	}
	if _, err := fae.NarrowRight(ctx, right.Secret, client.NewRight{Outcomes: []string{"decline"}}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a wider right: %v", err)
	}
	use := client.RightUse{Outcome: "answer", Texts: map[string][]string{"port": {"443"}}}
	if o, err := host.AnswerWith(ctx, child.Secret, use); err != nil || o.Status != "answered" {
		t.Errorf("%+v, %v", o, err)
	}
	if right, err = host.GrantAnswer(ctx, ask(), client.NewRight{}); err != nil || len(right.Outcomes) != 2 {
		t.Fatalf("%+v, %v", right, err)
	}
	if child, err = host.NarrowRight(ctx, right.Secret, client.NewRight{}); err != nil {
		t.Fatal(err)
	}
	if err := host.Call(ctx, "revoke", map[string]any{"grant": right.Grant}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := host.AnswerWith(ctx, child.Secret, use); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a right made of a revoked one: %v", err)
	}
}

// TestSenderAwaitsStates waits for how far a message has come, which its recipient acknowledges.
func TestSenderAwaitsStates(t *testing.T) {
	_, host, fae := openTest(t)
	ctx := t.Context()
	sent, err := fae.Send(ctx, "HOST", client.Post{Text: "mind the gap"})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := fae.AwaitState(ctx, sent.ID(), "delivered", time.Minute); err != nil || o.Status != "delivered" {
		t.Fatalf("%+v, %v", o, err)
	}
	if _, err := fae.AwaitState(ctx, sent.ID(), "shown", time.Millisecond); parley.CodeOf(err) != parley.Timeout {
		t.Errorf("it was not shown: %v", err)
	}
	if err := host.Acknowledge(ctx, sent.ID()); err != nil {
		t.Fatal(err)
	}
	if o, err := fae.AwaitState(ctx, sent.ID(), "shown", 0); err != nil || o.Status != "handled" || o.Note != "acknowledged" {
		t.Errorf("%+v, %v", o, err)
	}
}
