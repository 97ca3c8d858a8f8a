package actors

import (
	"testing"
	"time"
)

// TestLongMailboxIsReadFromItsSnapshot has a mailbox pass the number of events at which a snapshot is due.
func TestLongMailboxIsReadFromItsSnapshot(t *testing.T) {
	folder := t.TempDir()
	n := openWith(t, Options{Folder: folder, Idle: time.Hour})
	fae := guest(t, n, "fae")
	asked := 0
	hasSnapshot := func() bool {
		m, ok := n.journal.Mailbox(fae.id)
		return ok && m.Snapshot >= snapshotEvents
	}
	for ; asked < snapshotEvents; asked++ {
		ask(t, fae, Ask{})
	}
	waitFor(t, "a snapshot is there", func() bool {
		if !hasSnapshot() {
			ask(t, fae, Ask{}) // whatever is due is done at a visit
			asked++
		}
		return hasSnapshot()
	})
	closeNode(t, n)
	n = openNode(t, folder)
	in, err := (&Agent{n, fae.id}).Inbox(t.Context(), View{All: true})
	if err != nil || len(in.Messages) != asked {
		t.Fatalf("%d of %d messages, %v", len(in.Messages), asked, err)
	}
	for i, e := range in.Messages {
		if e.Number != uint64(i) || !e.Delivered {
			t.Fatalf("message %d: %+v", i, e)
		}
	}
}
