package client_test

import (
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
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
	form := api.RefTo(string(asked.Form))
	until := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	if err := api.Snooze.Run(ctx, host, api.SnoozeRequest{FormRef: form, Until: capabilities.At(until)}); err != nil {
		t.Fatal(err)
	}
	if got, err := api.MarkRead.Do(ctx, host, api.MarkReadRequest{}); err != nil || got.Unread != 0 {
		t.Fatalf("%d are unread, %v", got.Unread, err)
	}
	if err := api.SaveDraft.Run(ctx, host, api.SaveDraftRequest{FormRef: form, Texts: []events.FieldText{{Name: "many", Text: "a"}, {Name: "many", Text: "b"}}}); err != nil {
		t.Fatal(err)
	}
	m, err := host.Message(ctx, asked.Form)
	if err != nil || !m.SnoozedUntil.Std().Equal(until) || m.Unread || m.DraftAt == 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if d, err := api.FetchDraft.Do(ctx, host, api.FetchDraftRequest{FormRef: form}); err != nil || len(d.Texts) != 2 || d.Texts[1].Text != "b" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := api.FetchDraft.Do(ctx, fae, api.FetchDraftRequest{FormRef: form}); err != nil {
		t.Error(err) // it has none of its own
	}
	if err := api.SaveDraft.Run(ctx, fae, api.SaveDraftRequest{FormRef: form, Texts: []events.FieldText{{Name: "many", Text: "a"}}}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("the asker drafts an answer: %v", err)
	}
	for _, text := range []string{"half a message", ""} {
		if err := api.SaveDraft.Run(ctx, host, api.SaveDraftRequest{To: "fae", Text: &text}); err != nil {
			t.Fatal(err)
		}
		if d, err := api.FetchDraft.Do(ctx, host, api.FetchDraftRequest{To: "fae"}); err != nil || d.Text != text {
			t.Errorf("%+v, %v", d, err)
		}
		if err := api.SaveDraft.Run(ctx, host, api.SaveDraftRequest{FormRef: form, Text: &text}); err != nil {
			t.Fatal(err)
		}
		if d, err := api.FetchDraft.Do(ctx, host, api.FetchDraftRequest{FormRef: form, Reply: true}); err != nil || d.Text != text {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if c, err := api.CountMessages.Do(ctx, host, api.CountMessagesRequest{}); err != nil || c != (view.MessageCounts{Snoozed: 1, All: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
	move := api.MoveMessagesRequest{Do: "snooze", Until: capabilities.At(until.Add(time.Hour)), Messages: []api.FormRef{form, api.RefTo("99")}}
	if got, err := api.MoveMessages.Do(ctx, host, move); err != nil || len(got.Refused) != 1 || got.Refused[0].Number != "99" || got.Refused[0].Error.Code != parley.NoSuchMessage {
		t.Errorf("%+v, %v", got, err)
	}
	if err := api.Snooze.Run(ctx, host, api.SnoozeRequest{FormRef: form}); err != nil {
		t.Fatal(err)
	}
	if err := api.Dismiss.Run(ctx, host, api.MessageRequest{FormRef: form}); err != nil {
		t.Fatal(err)
	}
	if c, err := api.CountMessages.Do(ctx, host, api.CountMessagesRequest{}); err != nil || c != (view.MessageCounts{Done: 1, All: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
	if err := api.RestoreMessage.Run(ctx, host, api.MessageRequest{FormRef: form}); err != nil {
		t.Fatal(err)
	}
	if c, err := api.CountMessages.Do(ctx, host, api.CountMessagesRequest{}); err != nil || c != (view.MessageCounts{Pending: 1, Unread: 1, All: 1}) {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestRightIsHandedOn has the bearer of a right hand on a narrower one, which ends with it.
func TestRightIsHandedOn(t *testing.T) {
	_, host, fae := openTest(t)
	ctx := t.Context()
	ask := func() api.FormRef {
		asked, err := fae.Ask(ctx, client.Form{To: "HOST", Description: "which?", Fields: []client.Field{{Name: "port", Type: "number"}}})
		if err != nil {
			t.Fatal(err)
		}
		return api.RefTo(string(asked.Form))
	}
	form := ask()
	right, err := api.GrantAnswer.Do(ctx, host, api.GrantAnswerRequest{FormRef: form, Outcomes: []string{"answer"}, Uses: 2, Until: capabilities.At(time.Now().Add(time.Hour)), Name: "phone"})
	if err != nil || api.RefTo(right.Form.String()) != form || right.Uses != 2 || right.Until == 0 {
		t.Fatalf("%+v, %v", right, err)
	}
	child, err := api.GrantAnswer.Do(ctx, fae, api.GrantAnswerRequest{Secret: right.Secret, Uses: 1})
	if err != nil || api.RefTo(child.Form.String()) != form || child.Uses != 1 || child.Until != right.Until || len(child.Outcomes) != 1 {
		t.Fatalf("%+v, %v", child, err)
	}
	if _, err := api.GrantAnswer.Do(ctx, fae, api.GrantAnswerRequest{Secret: right.Secret, Outcomes: []string{"decline"}}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a wider right: %v", err)
	}
	use := api.AnswerWithRequest{Secret: child.Secret, Outcome: "answer", Texts: []events.FieldText{{Name: "port", Text: "443"}}}
	if o, err := api.AnswerWith.Do(ctx, host, use); err != nil || o.Status != "answered" {
		t.Errorf("%+v, %v", o, err)
	}
	if right, err = api.GrantAnswer.Do(ctx, host, api.GrantAnswerRequest{FormRef: ask()}); err != nil || len(right.Outcomes) != 2 {
		t.Fatalf("%+v, %v", right, err)
	}
	if child, err = api.GrantAnswer.Do(ctx, host, api.GrantAnswerRequest{Secret: right.Secret}); err != nil {
		t.Fatal(err)
	}
	if err := host.Call(ctx, "revoke", map[string]any{"grant": right.Grant}, nil); err != nil {
		t.Fatal(err)
	}
	use.Secret = child.Secret
	if _, err := api.AnswerWith.Do(ctx, host, use); parley.CodeOf(err) != parley.NotPermitted {
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
	if err := api.Acknowledge.Run(ctx, host, api.MessageRequest{FormRef: api.RefTo(string(sent.ID()))}); err != nil {
		t.Fatal(err)
	}
	if o, err := fae.AwaitState(ctx, sent.ID(), "shown", 0); err != nil || o.Status != "handled" || o.Note != "acknowledged" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := client.AwaitStateOfAll(ctx, fae, sent.ID(), "shown", 0); err != nil || o.Status != "handled" {
		t.Errorf("of one recipient: %+v, %v", o, err)
	}
	for _, until := range []client.State{"", api.UntilAsked} {
		if _, err := api.Await.Do(ctx, fae, api.AwaitRequest{FormRef: api.RefTo(string(sent.ID())), Until: until, All: true}); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("all of no state, until %q: %v", until, err)
		}
	}
}
