package actors

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
	"parley/mailbox/table"
)

// shed writes the snapshot of a mailbox, and lets the index go out of memory as far as it can. It returns the pages.
func shed(t *testing.T, a *Agent) []mailbox.Page {
	t.Helper()
	pages, err := inspect(t.Context(), a, func(b *mailboxActor) ([]mailbox.Page, error) {
		if err := b.awaitDurable(); err != nil {
			return nil, err
		}
		parts, err := b.parts(b.node.now() + 1)
		if err != nil {
			return nil, err
		}
		if err := b.node.snapshots.save(context.Background(), snapshot{b.reg, b.state.Version, parts}); err != nil {
			return nil, err
		}
		b.trimPages()
		b.state.Mail.TrimPages(0)
		return b.state.Mail.AbsentPages(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 2 {
		t.Fatalf("%d pages are out of memory, want two", len(pages))
	}
	return pages
}

// checkShed fails the test if messages of a mailbox whose index is not in memory are not found, or if the state is not
// that of the log.
func checkShed(t *testing.T, a *Agent, messages int) {
	t.Helper()
	m, err := a.Message(t.Context(), capabilities.FormNumber(7))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.Message(t.Context(), capabilities.FormID(m.MessageID)); err != nil || again.Number != 7 {
		t.Fatalf("message 7 is found by its ID as %d: %v", again.Number, err)
	}
	if in, err := a.Mail().Last(t.Context(), view.MessageFilter{All: true}, 50, 20); err != nil || len(in.Messages) != 20 || in.Messages[0].Number != 30 {
		t.Fatalf("%d messages before the 50th are listed: %v", len(in.Messages), err)
	}
	listed := 0
	for _, err := range a.Mail().All(t.Context(), view.MessageFilter{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		listed++
	}
	if listed != messages {
		t.Fatalf("%d messages are listed, want %d", listed, messages)
	}
	if c, err := a.Mail().Counts(t.Context()); err != nil || c.All != messages {
		t.Fatalf("%d messages are counted, want %d: %v", c.All, messages, err)
	}
	changed := 0
	for cursor := uint64(0); ; {
		in, err := a.Mail().Since(t.Context(), view.MessageFilter{All: true}, cursor)
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Messages) == 0 {
			break
		}
		changed, cursor = changed+len(in.Messages), in.Cursor
	}
	if changed != messages {
		t.Fatalf("%d messages changed since the beginning, want %d", changed, messages)
	}
	whole := func(s *mailbox.State, err error) (string, error) {
		if err != nil {
			return "", err
		}
		encoded, err := s.Snapshot()
		return string(encoded), err
	}
	same, err := inspect(t.Context(), a, func(b *mailboxActor) (bool, error) {
		live, err := recalled(b, func() (string, error) { return whole(b.state, nil) })
		if err != nil {
			return false, err
		}
		if err := b.awaitDurable(); err != nil {
			return false, err
		}
		replayed, err := whole(b.node.replayAll(t.Context(), b.reg.id))
		return live == replayed, err
	})
	if err != nil || !same {
		t.Fatalf("the state is that of the log: %t, %v", same, err)
	}
}

// TestLostPagesOnlyCostTime removes parts of a mailbox's snapshot while the mailbox is in use, and while the node is
// closed.
func TestLostPagesOnlyCostTime(t *testing.T) {
	const messages = 2100
	folder := t.TempDir()
	n := openNode(t, folder)
	fae := guest(t, n, "fae")
	sendMany(t, fae, "HOST", messages)
	lose := func(n *Node, pages []mailbox.Page) {
		for _, p := range pages {
			n.journal.RemoveSnapshotPart(t.Context(), n.host, p.Sum)
		}
	}

	shed(t, n.Host())
	checkShed(t, n.Host(), messages)
	lose(n, shed(t, n.Host()))
	checkShed(t, n.Host(), messages)

	pages := shed(t, n.Host())
	if err := n.Host().Dismiss(t.Context(), capabilities.FormNumber(3)); err != nil {
		t.Fatal(err)
	}
	checkShed(t, n.Host(), messages)
	lose(n, pages[1:])
	closeNode(t, n)
	n = openNode(t, folder)
	checkShed(t, n.Host(), messages)
	if m, err := n.Host().Message(t.Context(), capabilities.FormNumber(3)); err != nil || !m.Dismissed {
		t.Errorf("message 3 is dismissed: %t, %v", m.Dismissed, err)
	}
}

// TestPartsLeftBehindAreRemoved stores parts to which no snapshot refers, as a process does that is killed before it
// stores the snapshot. The first snapshot after a start removes them, and no others.
func TestPartsLeftBehindAreRemoved(t *testing.T) {
	const messages = 2100
	folder := t.TempDir()
	n := openNode(t, folder)
	sendMany(t, guest(t, n, "fae"), "HOST", messages)
	pages := shed(t, n.Host())
	left := sha256.Sum256([]byte("left"))
	if err := n.journal.SaveSnapshotPart(t.Context(), n.host, left, []byte("left")); err != nil {
		t.Fatal(err)
	}
	shed(t, n.Host())
	if _, err := n.journal.SnapshotPart(t.Context(), n.host, left); err != nil {
		t.Fatal(err) // a snapshot may be on its way to it
	}
	closeNode(t, n)
	n = openNode(t, folder)
	shed(t, n.Host())
	if part, err := n.journal.SnapshotPart(t.Context(), n.host, left); err == nil {
		t.Errorf("%q is there still", part)
	}
	for _, p := range pages {
		if _, err := n.journal.SnapshotPart(t.Context(), n.host, p.Sum); err != nil {
			t.Error(err)
		}
	}
	checkShed(t, n.Host(), messages)
}

// shedNames stores a mailbox, and lets its pages of names go out of memory. It returns these.
func shedNames(t *testing.T, a *Agent) []table.Sum {
	t.Helper()
	pages, err := inspect(t.Context(), a, func(b *mailboxActor) ([]table.Sum, error) {
		if err := b.awaitDurable(); err != nil {
			return nil, err
		}
		parts, err := b.state.Part(0, 0)
		if err == nil {
			err = b.node.snapshots.save(context.Background(), snapshot{b.reg, b.state.Version, parts})
		}
		b.trimPages()
		b.state.Names.TrimPages(0)
		return b.state.Names.Absent(), err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 2 {
		t.Fatalf("%d pages of names are out of memory, want some of each table", len(pages))
	}
	return pages
}

// TestNamesOutOfMemoryAreRead uses the names of a host whose pages are out of memory, are lost, and are read after a start.
func TestNamesOutOfMemoryAreRead(t *testing.T) {
	const agents = 30
	folder := t.TempDir()
	n := openNode(t, folder)
	_, err := inspect(t.Context(), n.Host(), func(b *mailboxActor) (none, error) {
		b.state.Names.SetPageLength(8)
		return none{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range agents {
		guest(t, n, fmt.Sprint("agent-", i))
	}
	check := func() {
		t.Helper()
		list, err := n.Host().Agents().Page(t.Context(), view.AgentFilter{}, "", 100)
		if err != nil || len(list) != agents+1 {
			t.Fatalf("%d agents are listed: %v", len(list), err)
		}
		for i, s := range list[1:] {
			if want := fmt.Sprint("agent-", i); s.Name != want {
				t.Errorf("%s is listed as %q", want, s.Name)
			}
		}
		if names, err := n.Host().Names().List(t.Context(), ""); err != nil || len(names) != agents+2 {
			t.Errorf("%d names are listed: %v", len(names), err)
		}
		if a, err := n.ActAs(t.Context(), "agent-7"); err != nil || a.ID() != list[8].ID {
			t.Errorf("agent-7 is %v: %v", a, err)
		}
	}
	lose := func() {
		for _, sum := range shedNames(t, n.Host()) {
			n.journal.RemoveSnapshotPart(t.Context(), n.host, sum)
		}
	}

	shedNames(t, n.Host())
	check()
	shedNames(t, n.Host())
	if err := n.Host().Names().Rename(t.Context(), "agent-3", "other"); err != nil {
		t.Fatal(err)
	}
	shedNames(t, n.Host())
	if err := n.Host().Names().Rename(t.Context(), "other", "agent-3"); err != nil {
		t.Fatal(err)
	}
	check()
	lose()
	check()
	shedNames(t, n.Host())
	closeNode(t, n)
	n = openNode(t, folder)
	check()
	lose()
	closeNode(t, n)
	n = openNode(t, folder)
	check()
}
