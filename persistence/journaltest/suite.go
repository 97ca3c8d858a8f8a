package journaltest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/persistence"
)

// Journal is a journal under test: those methods of persistence.Journal that every journal has.
type Journal interface {
	Append(sections ...events.Section) persistence.Position
	AppendSince(failures uint64, sections ...events.Section) persistence.Position
	Release(pos persistence.Position, fn func(error))
	Durable(pos persistence.Position) bool
	Lost(pos persistence.Position) bool
	Failures() uint64
	Err() error
	Reopen(ctx context.Context) error
	Events(ctx context.Context, mailbox capabilities.ID, after uint64, limit int) ([]persistence.Entry, error)
	EventsAt(ctx context.Context, mailbox capabilities.ID, versions []uint64) ([]persistence.Entry, error)
	Close(ctx context.Context) error
}

// Mode is how the storage of a log behaves.
type Mode int

const (
	Works   Mode = iota
	Refuses      // stores nothing
	InDoubt      // stores the next commit, and does not say so
)

// Log is a log that can be opened again and again.
type Log interface {
	Open(ctx context.Context) (Journal, error)
	Set(m Mode)
}

// Rival is a Log of which a second journal can be opened. Either that is refused, or it fences the first.
type Rival interface {
	OpenRival(ctx context.Context) (Journal, error)
}

// Node is the node of the mailboxes in the tests.
func Node() capabilities.NodeID { return capabilities.NodeOf([32]byte{31: 1}) }

// mailbox returns the ID of a mailbox.
func mailbox(n byte) capabilities.ID { return capabilities.ID{ULID: ulid.ULID{15: n}, Node: Node()} }

// Run tests a journal. Make returns a new log.
func Run(t *testing.T, make func(t *testing.T) Log) {
	for name, test := range map[string]func(*fixture){
		"order": (*fixture).testOrder, "release of settled positions": (*fixture).testSettled, "reads at versions": (*fixture).testReads,
		"reopening": (*fixture).testReopening, "failure": (*fixture).testFailure, "commit in doubt": (*fixture).testInDoubt,
		"close": (*fixture).testClose, "second writer": (*fixture).testRival,
		"snapshots": (*fixture).testSnapshots, "parts of snapshots": (*fixture).testParts, "snapshot in doubt": (*fixture).testSnapshotInDoubt,
	} {
		t.Run(name, func(t *testing.T) {
			f := &fixture{t: t, log: make(t), versions: map[byte]uint64{}}
			f.open()
			test(f)
			f.close()
		})
	}
}

// fixture is a journal with the versions of its mailboxes.
type fixture struct {
	t        *testing.T
	log      Log
	journal  Journal
	versions map[byte]uint64
}

func (f *fixture) open() {
	f.t.Helper()
	j, err := f.log.Open(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.journal = j
}

// close closes the journal. Its error is of no account after a failure.
func (f *fixture) close() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if failed := f.journal.Err() != nil; f.journal.Close(ctx) != nil && !failed {
		f.t.Error("a working journal does not close")
	}
}

// section returns the next events of a mailbox.
func (f *fixture) section(nth byte, count int) events.Section {
	f.t.Helper()
	evs := make([]events.Recorded, count)
	for i := range evs {
		version := int64(f.versions[nth]) + int64(i) + 1
		evs[i] = events.Recorded{At: 1, Event: &events.NameBound{Name: fmt.Sprint("n", version), Value: capabilities.Int(version)}}
	}
	body, err := events.Append(nil, evs...)
	if err != nil {
		f.t.Fatal(err)
	}
	s := events.Section{Mailbox: mailbox(nth), First: f.versions[nth] + 1, Count: uint32(count), Body: body}
	f.versions[nth] += uint64(count)
	return s
}

// await blocks until a position is released, and returns the result.
func (f *fixture) await(pos persistence.Position) error {
	f.t.Helper()
	done := make(chan error, 2)
	f.journal.Release(pos, func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		f.t.Fatalf("position %d is never released", pos)
		return nil
	}
}

// write stores sections, each durable before the next.
func (f *fixture) write(nth byte, commits, events int) {
	f.t.Helper()
	for range commits {
		pos := f.journal.Append(f.section(nth, events))
		if err := f.await(pos); err != nil {
			f.t.Fatal(err)
		}
		if !f.journal.Durable(pos) || f.journal.Lost(pos) {
			f.t.Fatalf("position %d was released and is not durable", pos)
		}
	}
}

// check checks that the log has all events of the mailboxes.
func (f *fixture) check() {
	f.t.Helper()
	for nth, version := range f.versions {
		all, err := f.journal.Events(f.t.Context(), mailbox(nth), 0, 0)
		if err != nil {
			f.t.Fatal(err)
		}
		if uint64(len(all)) != version {
			f.t.Fatalf("mailbox %d has %d events, want %d", nth, len(all), version)
		}
		for i, e := range all {
			f.checkEntry(e, uint64(i)+1)
		}
	}
}

func (f *fixture) checkEntry(e persistence.Entry, version uint64) {
	f.t.Helper()
	if v, _ := e.Event.(*events.NameBound).Value.AsInt(); e.Version != version || uint64(v) != version {
		f.t.Fatalf("event %d is %+v", version, e)
	}
}

// testOrder appends to several mailboxes without waiting. All is released in the order of the appends, once.
func (f *fixture) testOrder() {
	const n = 60
	var released []persistence.Position
	done := make(chan error, n+1)
	last := persistence.Position(0)
	for i := range n {
		pos := f.journal.Append(f.section(byte(i%3+1), i%2+1))
		if pos <= last {
			f.t.Fatalf("position %d follows position %d", pos, last)
		}
		last = pos
		f.journal.Release(pos, func(err error) {
			if err == nil && !f.journal.Durable(pos) {
				err = fmt.Errorf("position %d is released before it is durable", pos)
			}
			released = append(released, pos)
			done <- err
		})
	}
	for range n {
		if err := <-done; err != nil {
			f.t.Fatal(err)
		}
	}
	if err := f.await(last); err != nil {
		f.t.Fatal(err)
	}
	if len(released) != n || !slices.IsSorted(released) {
		f.t.Fatalf("released: %v", released)
	}
	f.check()
}

// testSettled releases what was durable before.
func (f *fixture) testSettled() {
	first := f.journal.Append(f.section(1, 1))
	last := f.journal.Append(f.section(1, 1))
	for _, pos := range []persistence.Position{last, first, 0} {
		if err := f.await(pos); err != nil {
			f.t.Fatalf("position %d: %v", pos, err)
		}
	}
}

func (f *fixture) testReads() {
	f.write(1, 3, 2)
	f.write(2, 1, 1)
	f.write(1, 2, 3)
	some, err := f.journal.EventsAt(f.t.Context(), mailbox(1), []uint64{1, 4, 7, 12})
	if err != nil || len(some) != 4 {
		f.t.Fatalf("%d events, %v", len(some), err)
	}
	for i, version := range []uint64{1, 4, 7, 12} {
		f.checkEntry(some[i], version)
	}
	for _, wrong := range [][]uint64{{13}, {2, 2}, {3, 1}} {
		if _, err := f.journal.EventsAt(f.t.Context(), mailbox(1), wrong); parley.CodeOf(err) != parley.InvalidArgument {
			f.t.Errorf("events at %v: %v", wrong, err)
		}
	}
	page, err := f.journal.Events(f.t.Context(), mailbox(1), 5, 4)
	if err != nil || len(page) != 4 {
		f.t.Fatalf("%d events, %v", len(page), err)
	}
	for i, e := range page {
		f.checkEntry(e, uint64(i)+6)
	}
	if none, err := f.journal.Events(f.t.Context(), mailbox(1), 12, 0); err != nil || len(none) != 0 {
		f.t.Errorf("after the last event are %d, %v", len(none), err)
	}
}

// testReopening closes the journal and opens it again. What was appended before the close is there.
func (f *fixture) testReopening() {
	f.write(1, 2, 2)
	f.write(2, 1, 1)
	f.journal.Append(f.section(1, 1))
	f.close()
	f.open()
	f.check()
	f.write(1, 1, 2)
	f.write(3, 1, 1)
	f.close()
	f.open()
	f.check()
}

// wantLost checks that a position is lost.
func (f *fixture) wantLost(pos persistence.Position) {
	f.t.Helper()
	if err := f.await(pos); parley.CodeOf(err) != parley.ReadOnly {
		f.t.Fatalf("position %d is released with %v, want READ_ONLY", pos, err)
	}
	if !f.journal.Lost(pos) || f.journal.Durable(pos) {
		f.t.Fatalf("position %d is not lost", pos)
	}
}

// reopen ends a failure.
func (f *fixture) reopen() {
	f.t.Helper()
	f.log.Set(Works)
	if err := f.journal.Reopen(f.t.Context()); err != nil || f.journal.Err() != nil {
		f.t.Fatalf("the journal stays failed: %v, %v", err, f.journal.Err())
	}
}

// testFailure makes the storage fail. Everything after the last durable commit is lost, and nothing else.
func (f *fixture) testFailure() {
	f.write(1, 2, 1)
	kept := f.journal.Append(f.section(2, 1))
	if err := f.await(kept); err != nil {
		f.t.Fatal(err)
	}
	before := f.journal.Failures()
	versions := map[byte]uint64{1: 2, 2: 1}
	f.log.Set(Refuses)
	first := f.journal.Append(f.section(1, 1))
	second := f.journal.Append(f.section(2, 1))
	f.wantLost(first)
	f.wantLost(second)
	if f.journal.Err() == nil || f.journal.Failures() != before+1 {
		f.t.Fatalf("the journal is at failure %d with %v", f.journal.Failures(), f.journal.Err())
	}
	third := f.journal.Append(f.section(3, 1))
	f.wantLost(third)
	f.versions = versions
	f.check() // reads go on
	f.reopen()
	for _, pos := range []persistence.Position{first, second, third} {
		f.wantLost(pos)
	}
	if f.journal.Lost(kept) {
		f.t.Error("a durable position is lost after a failure")
	}
	stale := f.journal.AppendSince(before, f.section(1, 1))
	f.wantLost(stale)
	f.versions[1]--
	f.write(1, 1, 1)
	f.write(3, 1, 2)
	f.check()
	f.close()
	f.open()
	f.check()
}

// testInDoubt stores a commit without saying so. Its position is lost, and its events are there after Reopen.
func (f *fixture) testInDoubt() {
	f.write(1, 1, 1)
	f.log.Set(InDoubt)
	lost := f.journal.Append(f.section(1, 1))
	f.wantLost(lost)
	if all, err := f.journal.Events(f.t.Context(), mailbox(1), 0, 0); err != nil || len(all) != 1 {
		f.t.Fatalf("a commit in doubt is shown: %d events, %v", len(all), err)
	}
	f.reopen()
	f.wantLost(lost)
	f.check()
	f.write(1, 1, 1)
	f.check()
}

// testClose appends to a closed journal.
func (f *fixture) testClose() {
	f.write(1, 1, 1)
	f.close()
	pos := f.journal.Append(f.section(1, 1))
	f.wantLost(pos)
	if parley.CodeOf(f.journal.Err()) != parley.ReadOnly || f.journal.Reopen(f.t.Context()) == nil {
		f.t.Errorf("a closed journal has %v, and reopens", f.journal.Err())
	}
	f.versions[1]--
	f.open()
	f.check()
}

// testRival opens a second journal of the log. It is refused, or fences the first.
func (f *fixture) testRival() {
	r, ok := f.log.(Rival)
	if !ok {
		f.t.Skip("the log has one journal at a time")
	}
	f.write(1, 2, 1)
	rival, err := r.OpenRival(f.t.Context())
	if err != nil {
		if parley.CodeOf(err) != parley.AlreadyRunning {
			f.t.Fatalf("a second journal: %v", err)
		}
		f.write(1, 1, 1)
		return
	}
	first := f.journal
	f.journal = rival
	f.write(1, 1, 1)
	f.journal = first
	fenced := f.section(1, 1)
	f.versions[1]--
	f.wantLost(first.Append(fenced))
	if first.Reopen(f.t.Context()) == nil {
		f.t.Error("a fenced journal reopens")
	}
	f.close()
	f.journal = rival
	f.write(1, 1, 1)
	f.check()
}
