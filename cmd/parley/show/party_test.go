package show

import (
	"strings"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/events"
)

// TestPartiesAreNamed shows whoever a message speaks of by what it is called, and where nobody calls it anything by the end of its ID.
func TestPartiesAreNamed(t *testing.T) {
	asker, other := capabilities.ID{ULID: [16]byte{1, 2, 3}}, capabilities.ID{ULID: [16]byte{4, 5, 6}}
	whole := func(text string) bool {
		return strings.Contains(text, asker.ULID.String()) || strings.Contains(text, other.ULID.String())
	}
	e := view.Message{From: asker, FromSaid: "fae", Type: "form", Title: "Port?"}
	for _, status := range []view.FormStatus{view.StatusCancelled, view.StatusSuperseded} {
		e.Outcome = &view.Outcome{Status: status, By: asker}
		if got := Settled(e, terminal.Screen{}); whole(got) || !strings.Contains(got, string(status)+" by “fae” (as it calls itself)") {
			t.Errorf("%s: %s", status, got)
		}
	}
	e.Outcome = &view.Outcome{Status: view.StatusCancelled, By: other}
	if got := Settled(e, terminal.Screen{}); whole(got) || !strings.Contains(got, "cancelled by "+view.ShortID(other)) {
		t.Errorf("by another: %s", got)
	}
	e.Outcome, e.AnswerNeeded = nil, true
	e.Claim = &view.Claim{By: other, Until: 1, Was: &view.Party{ID: asker}}
	e.Recipients = []view.Recipient{{Party: view.Party{ID: other}, Said: "bob"}}
	e.Steps = []view.ForwardStep{{By: other, Cause: events.Member}}
	e.Review = &view.Review{By: other, How: events.ReviewHandedOn}
	got := Message(e, terminal.Screen{})
	for _, words := range []string{"“bob” (as it calls itself) is on it", "taken over from “fae” (as it calls itself)", "as a member of “bob” (as it calls itself)", "reviewer “bob” (as it calls itself) leaves it to you"} {
		if !strings.Contains(got, words) {
			t.Errorf("without %q: %s", words, got)
		}
	}
	if whole(got) {
		t.Errorf("whole IDs: %s", got)
	}
	e.Sent = true
	if got := Message(e, terminal.Screen{}); strings.Contains(got, "leaves it to you") || !strings.Contains(got, "leaves it to the host") {
		t.Errorf("the asker reads %s", got)
	}
}
