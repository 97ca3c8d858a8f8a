package persistence

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// recorder is the mailbox with the records of archives.
const recorder = 99

// padding is the size of an event that fills a file of the journal soon.
const padding = 4 << 10

// blockOf is the number of large events that fill a file of the journal.
const blockOf = 7

// fillBlock appends large events until the journal has another file, and small ones of other mailboxes between them.
func (w writer) fillBlock(t testing.TB, j *Journal) {
	t.Helper()
	for n := range blockOf {
		w.write(t, j, 2+n%3, 1)
		w.padded(t, j, 1)
	}
}

// padded appends one large event to a mailbox.
func (w writer) padded(t testing.TB, j *Journal, nth int) {
	t.Helper()
	version := w[nth] + 1
	name := strings.Repeat("padding ", padding/8)
	body, err := events.Append(nil, events.Recorded{At: 1, Event: &events.NameBound{Name: name, Value: capabilities.Int(int64(version))}})
	if err != nil {
		t.Fatal(err)
	}
	w[nth] = version
	pos := j.Append(events.Section{Mailbox: mailboxID(nth), First: version, Count: 1, Body: body, Summary: events.Summary{Open: uint32(version)}})
	if err := await(t, j, pos); err != nil {
		t.Fatal(err)
	}
}

// foldState is a Checkpointer. The state is the version and a digest of all events.
func foldState(_ context.Context, _ capabilities.ID, before []byte, batches iter.Seq2[[]Entry, error]) ([]byte, error) {
	h := sha256.New()
	h.Write(before)
	last := uint64(0)
	for evs, err := range batches {
		if err != nil {
			return nil, err
		}
		for _, e := range evs {
			b, err := events.Append(nil, e.Recorded)
			if err != nil {
				return nil, err
			}
			h.Write(b)
			last = e.Version
		}
	}
	return h.Sum(binary.BigEndian.AppendUint64(nil, last)), nil
}

// checkArchived checks that a journal has the events of w, and that those that were archived can be read.
func (w writer) checkArchived(t testing.TB, j *Journal) {
	t.Helper()
	for nth, version := range w {
		l, err := j.Load(t.Context(), mailboxID(nth))
		if err != nil {
			t.Fatal(err)
		}
		if uint64(len(l.Events)) != version-l.SnapshotVersion {
			t.Fatalf("mailbox %d has %d events after version %d, want up to %d", nth, len(l.Events), l.SnapshotVersion, version)
		}
		if l.SnapshotVersion > 0 && binary.BigEndian.Uint64(l.Snapshot) != l.SnapshotVersion {
			t.Fatalf("mailbox %d: the state is of version %d, not %d", nth, binary.BigEndian.Uint64(l.Snapshot), l.SnapshotVersion)
		}
		evs, err := j.Events(t.Context(), mailboxID(nth), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range evs {
			if bound, ok := e.Event.(*events.NameBound); ok {
				if v, _ := bound.Value.AsInt(); e.Version != uint64(i+1) || v != int64(i+1) {
					t.Fatalf("mailbox %d: event %d is version %d", nth, i+1, e.Version)
				}
			}
		}
		if m, _ := j.Mailbox(mailboxID(nth)); uint64(len(evs)) != version || m.Version != version {
			t.Fatalf("mailbox %d has %d events, want %d", nth, len(evs), version)
		}
	}
	if r, err := j.Verify(t.Context()); err != nil || r.Mailboxes != len(w) {
		t.Fatalf("verify: %+v, %v; want %d mailboxes", r, err, len(w))
	}
}

// later is a time after all commits.
const later = capabilities.Time(1 << 60)

// record appends the record of an archive.
func (w writer) record(t testing.TB, j *Journal, a Archive) {
	t.Helper()
	r := a.Record()
	body, err := events.Append(nil, events.Recorded{At: 1, Event: &r})
	if err != nil {
		t.Fatal(err)
	}
	w[recorder]++
	pos := j.Append(events.Section{Mailbox: mailboxID(recorder), First: w[recorder], Count: 1, Body: body})
	if err := await(t, j, pos); err != nil {
		t.Fatal(err)
	}
}

// archive archives what can go.
func (w writer) archive(t testing.TB, j *Journal) Archive {
	t.Helper()
	a, err := j.PrepareArchive(t.Context(), later, foldState)
	if err != nil || a.End.Number == 0 {
		t.Fatalf("prepare: %+v, %v", a.End, err)
	}
	w.record(t, j, a)
	if err := j.FinishArchive(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestArchivingTakesSomeAtATime(t *testing.T) {
	o := smallFiles(t)
	o.archiveAtOnce = 1
	j, w := open(t, o), make(writer)
	for range 3 {
		w.fillBlock(t, j)
	}
	var last Archive
	for rounds := 0; ; rounds++ {
		a, err := j.PrepareArchive(t.Context(), later, foldState)
		if err != nil {
			t.Fatal(err)
		}
		if a.End.Number == 0 {
			if rounds < 3 {
				t.Errorf("all went in %d rounds", rounds)
			}
			break
		}
		if a.After != last.End || len(a.Segments) != len(last.Segments)+1 {
			t.Fatalf("commits after %d in %d segments follow an archive up to %d", a.After.Number, len(a.Segments), last.End.Number)
		}
		w.record(t, j, a)
		if err := j.FinishArchive(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		last = a
	}
	w.checkArchived(t, j)
	if _, err := j.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(o.Folder, archiveFolder, unnamed+"*")); len(left) > 0 || err != nil {
		t.Errorf("%v are left, %v", left, err)
	}
}

func TestArchivedPartLeavesTheJournal(t *testing.T) {
	o := smallFiles(t)
	j, w := open(t, o), make(writer)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	before := j.Stats()
	a := w.archive(t, j)
	if s := j.Stats(); s.Bytes > before.Bytes/4*3 || s.Commits != before.Commits+1 {
		t.Fatalf("%d of %d bytes are left, %d commits of %d", s.Bytes, before.Bytes, s.Commits, before.Commits)
	}
	w.checkArchived(t, j)
	if again, err := j.PrepareArchive(t.Context(), later, foldState); err != nil || again.End.Number != 0 {
		t.Fatalf("archived again: %+v, %v", again.End, err)
	}
	for range 2 { // with the index, and without
		closeJournal(t, j)
		j = open(t, o)
		w.checkArchived(t, j)
		w.write(t, j, 4, 3)
		if got := j.Archive(); got.End != a.End || len(got.Segments) != len(a.Segments) {
			t.Fatalf("the archive is %+v", got)
		}
		closeJournal(t, j)
		removeIndexSnapshot(t, o)
		j = open(t, o)
		w.checkArchived(t, j)
	}
	w.fillBlock(t, j)
	b := w.archive(t, j)
	if b.After != a.End || b.End.Number <= a.End.Number {
		t.Fatalf("the second archive is %d to %d, the first to %d", b.After.Number, b.End.Number, a.End.Number)
	}
	w.checkArchived(t, j)
	closeJournal(t, j)
	full, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	killed(t, &full)
	w.checkArchived(t, open(t, o))
}

func TestAppendsAndReadsGoOnDuringACut(t *testing.T) {
	o := smallFiles(t)
	j, w := open(t, o), make(writer)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	a, err := j.PrepareArchive(t.Context(), later, foldState)
	if err != nil {
		t.Fatal(err)
	}
	w.record(t, j, a)
	ctx, stop := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	run := func(fn func() error) {
		tasks.Go(func() {
			for ctx.Err() == nil {
				if err := fn(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	own, appends := make(writer), 0
	run(func() error {
		if appends++; appends > 150 { // archiving gives way to who writes, and the small journal would be full
			<-ctx.Done()
			return nil
		}
		done := make(chan error, 1)
		j.Release(j.Append(own.section(t, 50, 1)), func(err error) { done <- err })
		return <-done
	})
	run(func() error {
		_, err := j.Events(t.Context(), mailboxID(2), 0, 0)
		return err
	})
	run(func() error { return j.Backup(t.Context(), discard{}) })
	run(func() error {
		_, err := j.AppendOutput(t.Context(), mailboxID(2), []byte("out"))
		return err
	})
	run(func() error {
		j.grouped.forget()
		_, err := j.Load(t.Context(), mailboxID(1))
		return err
	})
	for range 3 {
		if err := j.FinishArchive(t.Context(), a); err != nil {
			t.Error(err)
		}
		w.fillBlock(t, j)
		w.padded(t, j, 1)
		if a, err = j.PrepareArchive(t.Context(), later, foldState); err != nil || a.End.Number == 0 {
			t.Errorf("%+v, %v", a.End, err)
			break
		}
		w.record(t, j, a)
	}
	stop()
	tasks.Wait()
	closeJournal(t, j)
	w[50] = own[50]
	w.checkArchived(t, open(t, o))
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// TestArchivingSurvivesAKillAtEachStep copies the folder at each step, as a kill leaves it, and goes on with the copy.
func TestArchivingSurvivesAKillAtEachStep(t *testing.T) {
	o := smallFiles(t)
	var copies []string
	wants := map[string]writer{}
	j, w := (*Journal)(nil), make(writer)
	armed, done := false, map[string]bool{}
	o.Failpoint = func(step string) error {
		if strings.HasPrefix(step, "after archive") && step != "after "+StepSweep && armed && !done[step] { // on the goroutine of the test
			done[step] = true
			to := filepath.Join(t.TempDir(), fmt.Sprint(len(copies), " ", step))
			if err := os.CopyFS(to, os.DirFS(o.Folder)); err != nil {
				return err
			}
			copies = append(copies, to)
			want := make(writer)
			for nth, version := range w {
				want[nth] = version
			}
			wants[to] = want
		}
		return nil
	}
	j = open(t, o)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	w.archive(t, j)
	w.fillBlock(t, j)
	w.fillBlock(t, j)
	armed = true
	w.archive(t, j)
	closeJournal(t, j)
	if len(copies) < 5 {
		t.Fatalf("only %d steps", len(copies))
	}
	for _, folder := range copies {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			o := smallFiles(t)
			o.Folder = folder
			j, w := open(t, o), wants[folder]
			if _, err := j.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
			a, err := j.PrepareArchive(t.Context(), later, foldState)
			if err != nil {
				t.Fatal(err)
			}
			if a.End.Number > 0 {
				w.record(t, j, a)
				if err := j.FinishArchive(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			}
			if l := j.connection(); l.first.Load() != j.Archive().End.Number+1 {
				t.Fatalf("the journal begins with commit %d, the archive ends with %d", l.first.Load(), j.Archive().End.Number)
			}
			w.checkArchived(t, j)
		})
	}
}

func TestFailedArchivingLeavesTheJournalWhole(t *testing.T) {
	o := smallFiles(t)
	var fail atomic.Value // the step that fails once
	fail.Store("")
	o.Failpoint = func(step string) error {
		if fail.CompareAndSwap(step, "") {
			return errors.New("the disk is full")
		}
		return nil
	}
	j, w := open(t, o), make(writer)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	for _, step := range []string{StepSegment, StepCheckpoint, StepManifest} {
		for _, when := range []string{"before ", "after "} {
			fail.Store(when + step)
			if a, err := j.PrepareArchive(t.Context(), later, foldState); err == nil {
				t.Fatalf("%s%s: archived to %d", when, step, a.End.Number)
			}
			if fail.Load() != "" {
				t.Fatalf("no step %q", fail.Load())
			}
		}
	}
	w.checkArchived(t, j)
	a, err := j.PrepareArchive(t.Context(), later, foldState)
	if err != nil {
		t.Fatal(err)
	}
	w.record(t, j, a)
	for _, step := range []string{"before " + StepRecorded, "after " + StepRecorded, "before " + StepCut, "after " + StepCut} {
		fail.Store(step)
		if err := j.FinishArchive(t.Context(), a); err == nil {
			t.Fatalf("%s: finished", step)
		}
		if _, err := j.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.FinishArchive(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	w.checkArchived(t, j)
}

func TestSegmentElsewhereIsArchived(t *testing.T) {
	o := smallFiles(t)
	j, w := open(t, o), make(writer)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	a := w.archive(t, j)
	s := a.Segments[0]
	f, err := j.OpenSegment(s)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := j.Detach(t.Context(), s, ""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		j.grouped.forget()
		if _, err := j.EventsAt(t.Context(), mailboxID(1), []uint64{1}); parley.CodeOf(err) != parley.Archived {
			t.Fatalf("an event that is elsewhere: %v", err)
		}
		if _, err := j.Load(t.Context(), mailboxID(1)); err != nil {
			t.Fatal(err)
		}
		if r, err := j.Verify(t.Context()); err != nil || len(r.Elsewhere) != 1 || r.Archived != a.End.Number {
			t.Fatalf("verify: %+v, %v", r, err)
		}
		w.write(t, j, 2, 1)
		closeJournal(t, j)
		removeIndexSnapshot(t, o)
		j = open(t, o)
	}
	if err := j.Attach(t.Context(), s, strings.NewReader("another file")); parley.CodeOf(err) != parley.CorruptLog || j.HasSegment(s) {
		t.Fatalf("another file was attached: %v", err)
	}
	if err := j.Attach(t.Context(), s, f); err != nil {
		t.Fatal(err)
	}
	w.checkArchived(t, j)
}
