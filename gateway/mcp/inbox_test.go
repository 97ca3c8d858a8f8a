package mcp

import (
	"slices"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

func TestInboxSaysHowFormCame(t *testing.T) {
	ops := capabilities.ID{ULID: [16]byte{15: 1}}
	m := &view.Message{Type: "form", Steps: []view.ForwardStep{
		{By: ops, ByName: "o\u202eps", Cause: events.Escalated, After: 14_400_000}, {By: ops, Cause: events.Absent, Until: 1_700_000_000_000}, {By: ops, ByName: "joe", Cause: events.Member},
	}}
	want := []string{
		`escalated from o\u{202e}ps after 4h`, "forwarded by " + ops.String() + " (away until 2023-11-14T22:13:20.000Z)", "forwarded to you as a member of joe",
	}
	if e := entryOf(m); !slices.Equal(e.Came, want) {
		t.Errorf("got %q", e.Came)
	}
	m.Outcome = &view.Outcome{}
	if e := entryOf(m); len(e.Came) != 3 {
		t.Errorf("of a form that has ended: %q", e.Came)
	}
}
