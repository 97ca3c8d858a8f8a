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
	if err != nil || !m.SnoozedUntil.Equal(until) || m.Unread || m.DraftAt.IsZero() {
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
