package client_test

import (
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/client"
)

// TestMessagesAreSentLaterAndFound schedules messages, with a key twice, and searches for one that was sent.
func TestMessagesAreSentLaterAndFound(t *testing.T) {
	t.Parallel()
	_, host, fae := openTest(t)
	ctx := t.Context()
	p := client.Post{Text: "the harbour is open", Key: "harbour"}
	for range 2 {
		if s, err := api.Schedule.Do(ctx, fae, api.ScheduleRequest{Recipient: "HOST", Post: p, At: capabilities.At(time.Now().Add(time.Hour))}); err == nil && s.Number == 1 {
			p = client.Post{Text: p.Text, Key: p.Key}
		} else if parley.CodeOf(err) != parley.InvalidArgument { // another time under the same key
			t.Fatal(s, err)
		}
	}
	if _, err := api.Schedule.Do(ctx, fae, api.ScheduleRequest{Recipient: "HOST", Post: client.Post{Text: "every day"}, Every: "@daily"}); err != nil {
		t.Fatal(err)
	}
	if err := api.EndSchedule.Run(ctx, fae, api.EndScheduleRequest{Schedule: 1}); err != nil {
		t.Fatal(err)
	}
	list, err := api.ListSchedules.Do(ctx, fae, api.ListSchedulesRequest{})
	all := list.Schedules
	if err != nil || len(all) != 1 || all[0].Number != 2 || all[0].Every != "@daily" || all[0].Next.Std().Before(time.Now()) {
		t.Fatalf("%+v, %v", all, err)
	}
	if _, err := fae.Send(ctx, "HOST", p); err != nil {
		t.Fatal(err)
	}
	s := api.SearchRequest{From: "fae"}
	s.Text = "HARBOUR"
	found, err := api.Search.Do(ctx, host, s)
	if err != nil || len(found.Messages) != 1 || found.Messages[0].Text != p.Text || found.Next > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
