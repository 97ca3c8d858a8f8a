package mailbox

import (
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
)

func TestFormsOfAnOriginAreFoundUntilTheyAreOver(t *testing.T) {
	v := newHarness(t)
	v.add("host")
	v.add("fae")
	input := func(turn uint64) RequestForm {
		return RequestForm{To: "HOST", Description: "d", Fields: []events.Field{{Name: "text"}}, Origin: &events.Origin{Dialect: "run", Run: "r", Agent: "a", ID: "1", Turn: turn}}
	}
	v.must("fae", input(1))
	v.must("fae", input(2))
	v.must("fae", RequestForm{To: "HOST", Description: "d", Fields: []events.Field{{Name: "text"}}, Origin: &events.Origin{Dialect: "run", Run: "r", Agent: "b"}})
	v.deliver(false)
	count := func(who string, want int) {
		t.Helper()
		restored, err := Restore(v.states[who].ID, []byte(v.snapshot(who)))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*State{v.states[who], restored} {
			if n := len(s.Mail.FormsOf(events.Origin{Dialect: "run", Run: "r", Agent: "a"})); n != want {
				t.Errorf("%s finds %d forms, want %d", who, n, want)
			}
		}
	}
	count("fae", 2)
	count("host", 2)
	v.must("host", DismissMessage{Message: capabilities.FormNumber(0)})
	count("host", 2) // it is open
	v.must("fae", CancelForm{Form: capabilities.FormNumber(0)})
	v.deliver(false)
	count("fae", 2) // it is in view
	count("host", 1)
	v.must("fae", DismissMessage{Message: capabilities.FormNumber(0)})
	count("fae", 1)
	v.must("fae", DismissMessage{Message: capabilities.FormNumber(1)})
	v.must("fae", CancelForm{Form: capabilities.FormNumber(1)})
	count("fae", 0)
	if n := len(v.states["fae"].Mail.origins); n != 1 {
		t.Errorf("%d keys are left, want that of the other agent", n)
	}
	v.checkReplay()
}

// A form that was asked by an earlier program has its origin in the comment of its first field's pattern.
func TestOriginInACommentIsRead(t *testing.T) {
	v := newHarness(t)
	v.add("host")
	v.add("fae")
	ask := RequestForm{
		To: "HOST", Description: "d", Key: "k",
		Fields: []events.Field{{Name: "f", Pattern: []byte(`{"$comment":"parley:{\"dialect\":\"question\",\"id\":\"q\",\"session\":\"s\",\"bare\":true}"}`)}},
	}
	v.must("fae", ask)
	v.deliver(false)
	want := events.Origin{Dialect: "question", ID: "q", Session: "s", Bare: true}
	for _, who := range []string{"fae", "host"} {
		found := v.states[who].Mail.FormsOf(want)
		if len(found) != 1 || *found[0].Form.AskedIn() != want {
			t.Errorf("%s: %v", who, found)
		}
	}
	again := ask
	again.Fields, again.Origin = []events.Field{{Name: "f"}}, &want
	if known, ok, err := again.FindExisting(v.states["fae"]); err != nil || !ok || known.Message.Number != 0 {
		t.Errorf("asked again with the field: %v %v %v", known, ok, err)
	}
	other := again
	other.Origin = &events.Origin{Dialect: "question", ID: "q", Session: "t"}
	if _, _, err := other.FindExisting(v.states["fae"]); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("the key of another session: %v", err)
	}
	v.checkReplay()
}

func TestOriginsAreBounded(t *testing.T) {
	v := newHarness(t)
	v.add("host")
	v.add("fae")
	for _, o := range []*events.Origin{{ID: "no dialect"}, {Dialect: "ask", ID: strings.Repeat("x", maxOrigin)}} {
		c := RequestForm{To: "HOST", Description: "d", Fields: []events.Field{{Name: "f"}}, Origin: o}
		if _, err := v.decide("fae", c); err == nil {
			t.Errorf("an origin of %d bytes in dialect %q is taken", len(o.ID), o.Dialect)
		}
	}
}
