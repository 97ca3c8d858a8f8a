package actors

import (
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// TestUnknownEventQuarantinesOneMailbox stores an event of a kind that this program does not know.
func TestUnknownEventQuarantinesOneMailbox(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	ask(t, bob, parley.Form{})
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
	watch := n.Host().Agents().Watch(view.AgentFilter{}, capabilities.ID{}, func() {})
	defer watch.Stop()
	if _, err := watch.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Agent{node: n, id: fae.id}).Mail().Inbox(t.Context(), view.MessageFilter{}); parley.CodeOf(err) != parley.CorruptLog {
		t.Errorf("the mailbox itself: %v", err)
	}
	checkPutAside(t, n, watch, fae.id)
	if _, err := n.Host().Answer(t.Context(), capabilities.FormNumber(0), parley.Answer{Values: text("a", "x")}); err != nil {
		t.Errorf("the others: %v", err)
	}
	if _, err := n.Verify(t.Context()); parley.CodeOf(err) != parley.CorruptLog {
		t.Errorf("verify: %v", err)
	}
}

// checkPutAside checks that all that lists agents says of one that its mailbox is put aside, and of no other.
func checkPutAside(t *testing.T, n *Node, watch *AgentWatch, id capabilities.ID) {
	t.Helper()
	for name, f := range map[string]view.AgentFilter{"all": {}, "those in error": {Statuses: []string{mailbox.Failed}}, "the idle": {Statuses: []string{mailbox.Idle}}} {
		all, err := n.Host().Agents().List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		listed := false
		for _, s := range all {
			if s.ID == id {
				listed = true
			}
			if isBad := s.Status == mailbox.Failed && strings.Contains(s.Error, "unknown"); isBad != (s.ID == id) {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if listed != (name != "the idle") {
			t.Errorf("%s: %t", name, listed)
		}
	}
	changes, err := watch.Next(t.Context())
	if err != nil || len(changes) != 1 || changes[0].Status.ID != id || changes[0].Status.Status != mailbox.Failed || changes[0].Status.Name != "fae" {
		t.Errorf("the watch: %+v, %v", changes, err)
	}
	if p := PutAside(n); p == nil || p.Code != parley.CorruptLog || !strings.Contains(p.Message, id.String()) {
		t.Errorf("the node: %v", p)
	}
}
