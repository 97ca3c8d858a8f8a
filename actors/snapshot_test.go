package actors

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
	"parley/mailbox/table"
	"parley/persistence"
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
		b.old.trimPages()
		b.state.Mail.Index.PageOut(0)
		return b.state.Mail.Index.PagedOutPages(), nil
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
		live, err := recalled(b.old, func() (string, error) { return whole(b.state, nil) })
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
	t.Parallel()
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
	t.Parallel()
	const messages = 2100
	folder := t.TempDir()
	n := openNode(t, folder)
	sendMany(t, guest(t, n, "fae"), "HOST", messages)
	pages := shed(t, n.Host())
	left := sha256.Sum256([]byte("left"))
	if err := n.journal.SaveSnapshotParts(t.Context(), n.host, []persistence.SnapshotPart{{Sum: left, Data: []byte("left")}}); err != nil {
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

// shedTables stores a mailbox, and lets its pages of names and of keys go out of memory. It returns these.
func shedTables(t *testing.T, a *Agent) []table.Sum {
	t.Helper()
	pages, err := inspect(t.Context(), a, func(b *mailboxActor) ([]table.Sum, error) {
		if err := b.awaitDurable(); err != nil {
			return nil, err
		}
		parts, err := b.state.Part(0, 0)
		if err == nil {
			err = b.node.snapshots.save(context.Background(), snapshot{b.reg, b.state.Version, parts})
		}
		b.old.trimPages()
		b.state.Tables().PageOut(0)
		return b.state.Tables().PagedOut(), err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 2 {
		t.Fatalf("%d pages of tables are out of memory, want some of each", len(pages))
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
		if names, err := n.Host().Names().List(t.Context(), "", "", 0); err != nil || len(names) != agents+2 {
			t.Errorf("%d names are listed: %v", len(names), err)
		}
		if a, err := n.ActAs(t.Context(), "agent-7"); err != nil || a.ID() != list[8].ID {
			t.Errorf("agent-7 is %v: %v", a, err)
		}
	}
	lose := func() {
		for _, sum := range shedTables(t, n.Host()) {
			n.journal.RemoveSnapshotPart(t.Context(), n.host, sum)
		}
	}

	shedTables(t, n.Host())
	check()
	shedTables(t, n.Host())
	if err := n.Host().Names().Rename(t.Context(), "agent-3", "other"); err != nil {
		t.Fatal(err)
	}
	shedTables(t, n.Host())
	if err := n.Host().Names().Rename(t.Context(), "other", "agent-3"); err != nil {
		t.Fatal(err)
	}
	check()
	lose()
	check()
	shedTables(t, n.Host())
	closeNode(t, n)
	n = openNode(t, folder)
	check()
	lose()
	closeNode(t, n)
	n = openNode(t, folder)
	check()
}

// TestKeysOutOfMemoryAreRead asks again under keys whose pages are out of memory, are lost, and are read after a start.
func TestKeysOutOfMemoryAreRead(t *testing.T) {
	const forms = 40
	folder := t.TempDir()
	n := openNode(t, folder)
	fae := guest(t, n, "fae")
	_, err := inspect(t.Context(), fae, func(b *mailboxActor) (none, error) {
		b.state.Mail.SetPageLength(8)
		return none{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]view.Asked{}
	for i := range forms {
		key := fmt.Sprint("key ", i)
		asked[key] = ask(t, fae, parley.Form{Key: key})
	}
	check := func() {
		t.Helper()
		for key, want := range asked {
			if got := ask(t, fae, parley.Form{Key: key}); got != want {
				t.Errorf("%q is form %d, want %d", key, got.Number, want.Number)
			}
			if there, err := fae.Mail().HasAsked(t.Context(), key); err != nil || !there {
				t.Errorf("%q was asked: %t, %v", key, there, err)
			}
		}
		if there, err := fae.Mail().HasAsked(t.Context(), "another"); err != nil || there {
			t.Errorf("another key was asked: %t, %v", there, err)
		}
		if _, err := fae.Ask(t.Context(), parley.Form{To: "HOST", Description: "other", Fields: textField("a"), Key: "key 0"}); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("another form under the key: %v", err)
		}
	}
	again := func() {
		t.Helper()
		closeNode(t, n)
		n = openNode(t, folder)
		if fae, err = n.ActAs(t.Context(), "fae"); err != nil {
			t.Fatal(err)
		}
		check()
	}

	shedTables(t, fae)
	check()
	shedTables(t, fae)
	again()
	for _, sum := range shedTables(t, fae) {
		n.journal.RemoveSnapshotPart(t.Context(), fae.id, sum)
	}
	check()
	again()
}
