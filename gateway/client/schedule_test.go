package client_test

import (
	"testing"
	"time"

	"parley"
	"parley/gateway/client"
)

// TestMessagesAreSentLaterAndFound schedules messages, with a key twice, and searches for one that was sent.
func TestMessagesAreSentLaterAndFound(t *testing.T) {
	t.Parallel()
	_, host, fae := openTest(t)
	ctx := t.Context()
	p := client.Post{Text: "the harbour is open", Key: "harbour"}
	for range 2 {
		if s, err := fae.Schedules().At(ctx, "HOST", p, time.Now().Add(time.Hour)); err == nil && s.Number == 1 {
			p = client.Post{Text: p.Text, Key: p.Key}
		} else if parley.CodeOf(err) != parley.InvalidArgument { // another time under the same key
			t.Fatal(s, err)
		}
	}
	if _, err := fae.Schedules().Every(ctx, "HOST", client.Post{Text: "every day"}, "@daily", ""); err != nil {
		t.Fatal(err)
	}
	if err := fae.Schedules().End(ctx, 1); err != nil {
		t.Fatal(err)
	}
	all, err := fae.Schedules().List(ctx)
	if err != nil || len(all) != 1 || all[0].Number != 2 || all[0].Every != "@daily" || all[0].Next.Std().Before(time.Now()) {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := fae.Send(ctx, "HOST", p); err != nil {
		t.Fatal(err)
	}
	s := client.Search{From: "fae"}
	s.Text = "HARBOUR"
	found, err := host.Search(ctx, s)
	if err != nil || len(found.Messages) != 1 || found.Messages[0].Text != p.Text || found.Next > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
