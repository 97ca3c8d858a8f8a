package mailbox_test

import (
	"slices"
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
		return mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d", Fields: []events.Field{{Name: "text"}}, Origin: &events.Origin{Dialect: "run", Run: "r", Agent: "a", ID: "1", Turn: turn}}}
	}
	v.Must("fae", input(1))
	v.Must("fae", input(2))
	v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d", Fields: []events.Field{{Name: "text"}}, Origin: &events.Origin{Dialect: "run", Run: "r", Agent: "b"}}})
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
	if all := v.States["fae"].Mail.Origins.Of(&events.Origin{Dialect: "run"}); !slices.Equal(all, []uint64{0, 1, 2}) {
		t.Errorf("a dialect has the forms %v", all)
	}
	if none := v.States["fae"].Mail.Origins.Of(&events.Origin{Dialect: "ask"}); len(none) != 0 {
		t.Errorf("another has %v", none)
	}
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

func TestOriginsAreBounded(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	for _, o := range []*events.Origin{{ID: "no dialect"}, {Dialect: "ask", ID: strings.Repeat("x", mailbox.MaxOrigin)}} {
		c := mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d", Fields: []events.Field{{Name: "f"}}, Origin: o}}
		if _, err := v.Decide("fae", c); err == nil {
			t.Errorf("an origin of %d bytes in dialect %q is accepted", len(o.ID), o.Dialect)
		}
	}
}
