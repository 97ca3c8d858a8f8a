package persistence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"parley"
	"parley/internal/eventually"
)

func TestLoadBeginsWithNewestSnapshot(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	w.write(t, j, 1, 10)
	w.write(t, j, 2, 2)
	big := bytes.Repeat([]byte("state"), 100_000)
	for _, version := range []uint64{4, 7} {
		if err := j.SaveSnapshot(t.Context(), mailboxID(1), version, big[:version*50_000]); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, j.SaveSnapshot(t.Context(), mailboxID(1), 11, nil), parley.InvalidArgument)
	for range 2 {
		l, err := j.Load(t.Context(), mailboxID(1))
		if err != nil || l.SnapshotVersion != 7 || !bytes.Equal(l.Snapshot, big[:350_000]) || len(l.Events) != 3 {
			t.Fatalf("version %d, %d bytes, %d events: %v", l.SnapshotVersion, len(l.Snapshot), len(l.Events), err)
		}
		if m, _ := j.Mailbox(mailboxID(1)); m.Snapshot != 7 {
			t.Fatalf("%+v", m)
		}
		w.check(t, j)
		closeJournal(t, j)
		j = open(t, o)
	}
	evs, err := j.Events(t.Context(), mailboxID(1), 2, 3)
	if err != nil || len(evs) != 3 || evs[0].Version != 3 || evs[2].Version != 5 {
		t.Fatalf("%+v, %v", evs, err)
	}
}

// TestInvalidSnapshotsAreDiscarded replaces snapshots by invalid ones.
func TestInvalidSnapshotsAreDiscarded(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	w.write(t, j, 1, 10)
	if err := j.SaveSnapshot(t.Context(), mailboxID(1), 7, []byte("state")); err != nil {
		t.Fatal(err)
	}
	good := sealSnapshot(7, Mark{Number: 7}, []byte("state"))
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for name, bad := range map[string][]byte{
		"empty": nil, "short": good[:50], "cut": good[:len(good)-1], "flipped": flipped,
		"of another log": good, "newer than the log": sealSnapshot(11, Mark{Number: 11}, []byte("state")),
	} {
		for _, object := range []string{mailboxID(1).ULID.String(), indexObject} {
			if err := j.connection().putObject(t.Context(), jetstream.ObjectMeta{Name: object}, bad); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(o.Folder, indexFile), bad, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if l, err := j.Load(t.Context(), mailboxID(1)); err != nil || l.Snapshot != nil || len(l.Events) != 10 {
			t.Fatalf("%s: %+v, %v", name, l, err)
		}
		if x, n, _ := j.indexes.loadIndex(t.Context(), 10); n != 0 || len(x.order) != 0 {
			t.Fatalf("%s: used as an index of %d commits", name, n)
		}
	}
	if n := j.DiscardedSnapshots(); n != 12 {
		t.Errorf("%d were discarded", n)
	}
	w.check(t, j)
}

// TestClosedConnectionIsNoUnreadableSnapshot reads snapshots over a connection that is closed, as it is while a journal is opened again.
// Nothing is wrong with them: they are not counted, and are used afterwards.
func TestClosedConnectionIsNoUnreadableSnapshot(t *testing.T) {
	j := open(t, testOptions(t))
	w := make(writer)
	w.write(t, j, 1, 10)
	if err := j.SaveSnapshot(t.Context(), mailboxID(1), 7, []byte("state")); err != nil {
		t.Fatal(err)
	}
	j.connection().conn.Close()
	if state, _ := j.snapshots.snapshot(t.Context(), mailboxID(1), 10); state != nil {
		t.Fatal("the snapshot was read")
	}
	if _, err := j.SnapshotPart(t.Context(), mailboxID(1), [32]byte{1}); err == nil {
		t.Fatal("a part was read")
	}
	if n := j.DiscardedSnapshots(); n != 0 {
		t.Errorf("%d were discarded", n)
	}
	j.fail(parley.Refuse(parley.ReadOnly, "the connection is closed"))
	reopen(t, j)
	if l, err := j.Load(t.Context(), mailboxID(1)); err != nil || string(l.Snapshot) != "state" {
		t.Errorf("afterwards: %+v, %v", l, err)
	}
}

func TestIndexSnapshotRoundTrip(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	for i := range 50 {
		if err := await(t, j, j.Append(w.section(t, i%7, 1+i%3), w.section(t, 3, 1), w.section(t, i%7, 1))); err != nil {
			t.Fatal(err)
		}
	}
	at, c := j.copyIndex()
	var b bytes.Buffer
	if err := c.write(&b, at.Mark); err != nil {
		t.Fatal(err)
	}
	x, m, err := decodeIndex(o.Node, b.Bytes())
	if err != nil || m != at.Mark || !reflect.DeepEqual(x.order, j.directory.index.order) || x.events != j.directory.index.events || x.open != j.directory.index.open {
		t.Fatalf("got %+v, %v; want %+v", x, err, j.directory.index)
	}
	for at := range b.Len() {
		damaged := bytes.Clone(b.Bytes())
		damaged[at] ^= 4
		if _, _, err := decodeIndex(o.Node, damaged); err == nil {
			t.Fatalf("a change of byte %d is not detected", at)
		}
	}
	w.check(t, j)
}

func TestLongMailboxLoadsQuickly(t *testing.T) {
	o := filledJournal(t, 3_000, 1)
	j := open(t, o)
	w := writer{3_001: 0}
	var last Position
	for range 1_000 {
		last = j.Append(w.section(t, 3_001, 1))
		if err := await(t, j, last); err != nil {
			t.Fatal(err)
		}
	}
	closeJournal(t, j)
	j = open(t, o)
	best := time.Hour
	for range 5 { // what else the machine does makes some of them longer
		start := time.Now()
		l, err := j.Load(context.Background(), mailboxID(3_001))
		if err != nil || len(l.Events) != 1_000 {
			t.Fatalf("%d events: %v", len(l.Events), err)
		}
		best = min(best, time.Since(start))
	}
	if t.Logf("1,000 events in %v", best); best > time.Second {
		t.Errorf("1,000 events take %v", best)
	}
}

// TestLeftoversInStoreAreFound stores what killed processes leave behind in the store of snapshots.
// After a start, pieces without a description are gone. Parts are found, and can be removed for good.
func TestLeftoversInStoreAreFound(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	w.write(t, j, 1, 10)
	mailbox, id := mailboxID(1), mailboxID(1).ULID
	if err := j.SaveSnapshot(t.Context(), mailbox, 7, []byte("state")); err != nil {
		t.Fatal(err)
	}
	var parts []SnapshotPart
	for i := range partsAtOnce + 8 {
		data := bytes.Repeat([]byte{byte(i)}, 10)
		parts = append(parts, SnapshotPart{sha256.Sum256(data), data})
	}
	parts[3].Data = make([]byte, maxPart+1)
	parts[3].Sum = sha256.Sum256(parts[3].Data)
	if err := j.SaveSnapshotParts(t.Context(), mailbox, parts); err != nil {
		t.Fatal(err)
	}
	earlier := SnapshotPart{sha256.Sum256([]byte("earlier")), []byte("earlier")}
	removed := SnapshotPart{sha256.Sum256([]byte("removed")), []byte("removed")}
	l := j.connection()
	for _, p := range []SnapshotPart{earlier, removed} {
		if err := l.putObject(t.Context(), jetstream.ObjectMeta{Name: partName(id, p.Sum)}, p.Data); err != nil {
			t.Fatal(err)
		}
	}
	b, err := l.bucket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), partName(id, removed.Sum)); err != nil {
		t.Fatal(err)
	}
	undescribed := []string{piecesIn(o.bucketName()) + "one", piecesIn(o.bucketName()) + "other"}
	for _, subject := range undescribed {
		if _, err := l.js.Publish(t.Context(), subject, []byte("piece")); err != nil {
			t.Fatal(err)
		}
	}
	closeJournal(t, j)
	subjects := func() map[string]uint64 {
		all, err := j.connection().listSubjects(t.Context(), o.bucketName())
		if err != nil {
			t.Fatal(err)
		}
		return all
	}

	j = open(t, o)
	eventually.Holds(t, "the undescribed pieces are gone", func() bool {
		all := subjects()
		return all[undescribed[0]]+all[undescribed[1]] == 0
	})
	for _, p := range append(parts, earlier) {
		if data, err := j.SnapshotPart(t.Context(), mailbox, p.Sum); err != nil || !bytes.Equal(data, p.Data) {
			t.Errorf("%d bytes, %v; want %d", len(data), err, len(p.Data))
		}
	}
	if l, err := j.Load(t.Context(), mailbox); err != nil || l.SnapshotVersion != 7 {
		t.Errorf("version %d, %v", l.SnapshotVersion, err)
	}
	if found := j.FoundParts(mailbox, 1000); len(found) != len(parts)+2 {
		t.Errorf("%d parts are found", len(found))
	} else {
		for _, sum := range found {
			j.RemoveSnapshotPart(t.Context(), mailbox, sum)
		}
	}
	if left := subjects(); len(left) != 2 { // the snapshot
		t.Errorf("left are %v", left)
	}
	w.check(t, j)
}
