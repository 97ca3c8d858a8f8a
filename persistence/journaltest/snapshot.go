package journaltest

import (
	"bytes"
	"context"
	"crypto/sha256"

	"parley"
	"parley/capabilities"
	"parley/persistence"
)

// Snapshots are the methods of a Journal that keeps snapshots. The memory of a simulation keeps none.
type Snapshots interface {
	Load(ctx context.Context, mailbox capabilities.ID) (persistence.Loaded, error)
	SaveSnapshot(ctx context.Context, mailbox capabilities.ID, version uint64, state []byte) error
	SaveSnapshotParts(ctx context.Context, mailbox capabilities.ID, parts []persistence.SnapshotPart) error
	SnapshotPart(ctx context.Context, mailbox capabilities.ID, sum [sha256.Size]byte) ([]byte, error)
	RemoveSnapshotPart(ctx context.Context, mailbox capabilities.ID, sum [sha256.Size]byte)
	FoundParts(mailbox capabilities.ID, most int) [][sha256.Size]byte
}

// snapshots returns the journal as one with snapshots, or skips the test.
func (f *fixture) snapshots() Snapshots {
	f.t.Helper()
	s, ok := f.journal.(Snapshots)
	if !ok {
		f.t.Skip("the journal keeps no snapshots")
	}
	return s
}

// wantLoaded loads mailbox 1, and checks the snapshot and the events behind it.
func (f *fixture) wantLoaded(version uint64, state string) {
	f.t.Helper()
	l, err := f.snapshots().Load(f.t.Context(), mailbox(1))
	if err != nil || l.SnapshotVersion != version || string(l.Snapshot) != state || uint64(len(l.Events)) != f.versions[1]-version {
		f.t.Fatalf("version %d with %q, and %d events: %v", l.SnapshotVersion, l.Snapshot, len(l.Events), err)
	}
	for i, e := range l.Events {
		f.checkEntry(e, version+uint64(i)+1)
	}
}

// testSnapshots stores states of a mailbox. Load has the newest one, and the events behind it, also after the journal is
// opened again.
func (f *fixture) testSnapshots() {
	ctx := f.t.Context()
	f.write(1, 3, 2)
	f.wantLoaded(0, "")
	if err := f.snapshots().SaveSnapshot(ctx, mailbox(1), 4, []byte("four")); err != nil {
		f.t.Fatal(err)
	}
	f.wantLoaded(4, "four")
	f.write(1, 1, 1)
	f.wantLoaded(4, "four")
	f.close()
	f.open()
	f.wantLoaded(4, "four")
	if err := f.snapshots().SaveSnapshot(ctx, mailbox(1), 7, []byte("seven")); err != nil {
		f.t.Fatal(err)
	}
	f.wantLoaded(7, "seven")
	if err := f.snapshots().SaveSnapshot(ctx, mailbox(1), 8, []byte("eight")); err == nil {
		f.t.Error("a state of events that are not there was stored")
	}
	f.close()
	f.open()
	f.wantLoaded(7, "seven")
	if l, err := f.snapshots().Load(ctx, mailbox(9)); err != nil || l.Snapshot != nil || len(l.Events) > 0 {
		f.t.Errorf("a mailbox without events has %+v, %v", l, err)
	}
}

// partOf returns a part of a snapshot.
func partOf(data []byte) persistence.SnapshotPart {
	return persistence.SnapshotPart{Sum: sha256.Sum256(data), Data: data}
}

// testParts stores parts of a snapshot. Each is read as it was written. So it is by the journal that is opened next,
// which finds those that were not removed. A part of another mailbox, or under another digest, is not read.
func (f *fixture) testParts() {
	ctx := f.t.Context()
	f.write(1, 1, 1)
	f.write(2, 1, 1)
	var parts []persistence.SnapshotPart
	for i := range 40 { // more than are stored together
		parts = append(parts, partOf(bytes.Repeat([]byte{byte(i)}, i*100)))
	}
	if err := f.snapshots().SaveSnapshotParts(ctx, mailbox(1), parts); err != nil {
		f.t.Fatal(err)
	}
	if err := f.snapshots().SaveSnapshot(ctx, mailbox(1), 1, []byte("one")); err != nil {
		f.t.Fatal(err)
	}
	f.snapshots().RemoveSnapshotPart(ctx, mailbox(1), parts[0].Sum)
	forged := persistence.SnapshotPart{Sum: sha256.Sum256([]byte("what was stored")), Data: []byte("something else")}
	if err := f.snapshots().SaveSnapshotParts(ctx, mailbox(2), []persistence.SnapshotPart{forged}); err != nil {
		f.t.Fatal(err)
	}
	for range 2 {
		for _, p := range parts[1:] {
			if data, err := f.snapshots().SnapshotPart(ctx, mailbox(1), p.Sum); err != nil || !bytes.Equal(data, p.Data) {
				f.t.Fatalf("%d bytes of %d: %v", len(data), len(p.Data), err)
			}
		}
		for nth, sum := range map[byte][sha256.Size]byte{1: parts[0].Sum, 2: forged.Sum, 3: parts[1].Sum} {
			if data, err := f.snapshots().SnapshotPart(ctx, mailbox(nth), sum); err == nil {
				f.t.Errorf("mailbox %d has a part of %d bytes", nth, len(data))
			}
		}
		f.close()
		f.open()
	}
	found := map[[sha256.Size]byte]bool{}
	for some := f.snapshots().FoundParts(mailbox(1), 7); len(some) > 0; some = f.snapshots().FoundParts(mailbox(1), 7) {
		for _, sum := range some {
			if found[sum] || len(some) > 7 {
				f.t.Fatalf("%d parts are found at once, or one twice", len(some))
			}
			found[sum] = true
		}
	}
	for i, p := range parts {
		if found[p.Sum] != (i > 0) {
			f.t.Errorf("part %d is found: %v", i, found[p.Sum])
		}
	}
	f.wantLoaded(1, "one")
}

// testSnapshotInDoubt asks for a snapshot of events that are not durable. It is refused, and none is shown after the
// failure.
func (f *fixture) testSnapshotInDoubt() {
	f.write(1, 1, 1)
	s := f.snapshots()
	f.log.Set(InDoubt)
	f.wantLost(f.journal.Append(f.section(1, 1)))
	if err := s.SaveSnapshot(f.t.Context(), mailbox(1), 2, []byte("two")); err == nil || parley.CodeOf(err) == parley.CorruptLog {
		f.t.Errorf("a state of a commit in doubt: %v", err)
	}
	f.reopen()
	f.wantLoaded(0, "")
	if err := s.SaveSnapshot(f.t.Context(), mailbox(1), 2, []byte("two")); err != nil {
		f.t.Fatal(err)
	}
	f.wantLoaded(2, "two")
}
