package mailbox_test

import (
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

func TestFormsOfOriginAreIndexed(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	input := func(turn uint64) mailbox.RequestForm {
		return mailbox.RequestForm{To: "HOST", Description: "d", Fields: []events.Field{{Name: "text"}}, Origin: &events.Origin{Dialect: "run", Run: "r", Agent: "a", ID: "1", Turn: turn}}
	}
	v.Must("fae", input(1))
	v.Must("fae", input(2))
	v.Must("fae", mailbox.RequestForm{To: "HOST", Description: "d", Fields: []events.Field{{Name: "text"}}, Origin: &events.Origin{Dialect: "run", Run: "r", Agent: "b"}})
	v.Deliver(false)
	count := func(who string, want int) {
		t.Helper()
		restored, err := mailbox.Restore(v.States[who].ID, []byte(v.Snapshot(who)))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*mailbox.State{v.States[who], restored} {
			if n := len(s.Mail.Origins.Of(&events.Origin{Dialect: "run", Run: "r", Agent: "a"})); n != want {
				t.Errorf("%s finds %d forms, want %d", who, n, want)
			}
		}
	}
	count("fae", 2)
	count("host", 2)
	v.Must("host", mailbox.DismissMessage{Message: capabilities.FormNumber(0)})
	count("host", 2) // it is open
	v.Must("fae", mailbox.CancelForm{Form: capabilities.FormNumber(0)})
	v.Deliver(false)
	count("fae", 2) // it is in view
	count("host", 1)
	v.Must("fae", mailbox.DismissMessage{Message: capabilities.FormNumber(0)})
	count("fae", 1)
	v.Must("fae", mailbox.DismissMessage{Message: capabilities.FormNumber(1)})
	v.Must("fae", mailbox.CancelForm{Form: capabilities.FormNumber(1)})
	count("fae", 0)
	if n := v.States["fae"].Mail.OriginKeys(); n != 1 {
		t.Errorf("%d keys remain, want 1 of the other agent", n)
	}
	v.CheckReplay()
}

// TestOriginInCommentIsRead finds forms of earlier versions, whose origin is in the comment of a pattern.
func TestOriginInCommentIsRead(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	ask := mailbox.RequestForm{
		To: "HOST", Description: "d", Key: "k",
		Fields: []events.Field{{Name: "f", Pattern: []byte(`{"$comment":"parley:{\"dialect\":\"question\",\"id\":\"q\",\"session\":\"s\",\"bare\":true}"}`)}},
	}
	v.Must("fae", ask)
	v.Deliver(false)
	want := events.Origin{Dialect: "question", ID: "q", Session: "s", Bare: true}
	for _, who := range []string{"fae", "host"} {
		found := v.States[who].Mail.Origins.Of(&want)
		if len(found) != 1 || *v.Messages(who)[found[0]].Form.AskedIn() != want {
			t.Errorf("%s: %v", who, found)
		}
	}
	again := ask
	again.Fields, again.Origin = []events.Field{{Name: "f"}}, &want
	if known, ok, err := again.FindExisting(v.States["fae"]); err != nil || !ok || known.Message.Number != 0 {
		t.Errorf("asked again with Origin: %v %v %v", known, ok, err)
	}
	other := again
	other.Origin = &events.Origin{Dialect: "question", ID: "q", Session: "t"}
	if _, _, err := other.FindExisting(v.States["fae"]); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("the key of another session: %v", err)
	}
	v.CheckReplay()
}

func TestOriginsAreBounded(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	for _, o := range []*events.Origin{{ID: "no dialect"}, {Dialect: "ask", ID: strings.Repeat("x", mailbox.MaxOrigin)}} {
		c := mailbox.RequestForm{To: "HOST", Description: "d", Fields: []events.Field{{Name: "f"}}, Origin: o}
		if _, err := v.Decide("fae", c); err == nil {
			t.Errorf("an origin of %d bytes in dialect %q is accepted", len(o.ID), o.Dialect)
		}
	}
}
