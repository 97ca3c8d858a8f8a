package actors

import (
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// TestUnknownEventQuarantinesOneMailbox stores an event of a kind that this program does not know.
func TestUnknownEventQuarantinesOneMailbox(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	ask(t, bob, Ask{})
	body, err := events.Append(nil, events.Recorded{At: n.now(), Event: &events.NameBound{Name: "x", Value: capabilities.Null()}})
	if err != nil {
		t.Fatal(err)
	}
	body[0] = 99 // a kind of a later version
	m, ok := n.journal.Mailbox(fae.id)
	if !ok {
		t.Fatal("no mailbox")
	}
	stored := make(chan error, 1)
	pos := n.journal.Append(events.Section{Mailbox: fae.id, First: m.Version + 1, Count: 1, Body: body})
	n.journal.Release(pos, func(err error) { stored <- err })
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	closeNode(t, n)

	n = openNode(t, folder)
	if _, err := (&Agent{node: n, id: fae.id}).Mail().Inbox(t.Context(), view.MessageFilter{}); parley.CodeOf(err) != parley.CorruptLog {
		t.Errorf("the mailbox itself: %v", err)
	}
	if _, err := n.Host().Answer(t.Context(), Answer{Form: capabilities.FormNumber(0), Values: text("a", "x")}); err != nil {
		t.Errorf("the others: %v", err)
	}
	if _, err := n.Verify(t.Context()); parley.CodeOf(err) != parley.CorruptLog {
		t.Errorf("verify: %v", err)
	}
}
