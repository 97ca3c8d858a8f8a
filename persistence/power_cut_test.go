package persistence

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"parley/events"
	"parley/persistence/disktest"
)

// cuts is the number of power failures that TestPowerCuts makes of one run.
var cuts = flag.Int("cuts", 12, "power failures of TestPowerCuts")

// promise is something that was acknowledged when so many operations of the disk had been done.
type promise struct {
	at      int
	mailbox int
	version uint64 // of the mailbox; 0 for output and backups
	pieces  int    // of the mailbox's output
	backup  uint64 // the last commit in the folder of the backup
}

// powerRun is a run of a journal on a disk that records.
type powerRun struct {
	disk *disktest.Disk
	o    Options

	mu        sync.Mutex
	promised  []promise
	archiving []int // positions at the steps of archiving
}

func (p *powerRun) promise(to promise) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to.at = p.disk.Position()
	p.promised = append(p.promised, to)
}

// append appends to several mailboxes at once, and notes what is acknowledged.
func (p *powerRun) append(t *testing.T, j *Journal, w writer, rounds int) {
	t.Helper()
	var done sync.WaitGroup
	for i := range rounds {
		for nth := 1; nth <= 3; nth++ {
			s := w.section(t, nth, 1+i%2)
			version := w[nth]
			done.Add(1)
			j.Release(j.Append(s), func(err error) {
				defer done.Done()
				if err != nil {
					t.Error(err)
					return
				}
				p.promise(promise{mailbox: nth, version: version})
			})
		}
		if i%3 == 2 {
			done.Wait()
		}
	}
	done.Wait()
}

// promiseAll notes the present versions of all mailboxes.
func (p *powerRun) promiseAll(w writer) {
	for nth, version := range w {
		p.promise(promise{mailbox: nth, version: version})
	}
}

// run does all that a journal writes: commits, snapshots, output, archives, backups, and opening it again.
func (p *powerRun) run(t *testing.T) {
	t.Helper()
	j, w, pieces := open(t, p.o), make(writer), 0
	work := func() {
		p.append(t, j, w, 4)
		if err := j.SaveSnapshot(t.Context(), mailboxID(1), w[1], bytes.Repeat([]byte("state"), 500)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := j.AppendOutput(t.Context(), mailboxID(2), []byte("some output")); err != nil {
				t.Fatal(err)
			}
			pieces++
			p.promise(promise{mailbox: 2, pieces: pieces})
		}
		part, err := AddPart(filepath.Join(p.disk.Path(), "backup"), p.o.Node, func(after Mark, to io.Writer) error {
			return j.BackupAfter(t.Context(), after, to)
		})
		if err != nil {
			t.Fatal(err)
		}
		p.promise(promise{backup: part.Last.Number})
	}
	work()
	closeJournal(t, j)
	j = open(t, p.o)
	work()
	for range 2 {
		w.fillBlock(t, j)
		w.fillBlock(t, j) // an archive of several files may be cut between them
		w.padded(t, j, 1)
		p.promiseAll(w)
		a, err := j.PrepareArchive(t.Context(), later, foldState)
		if err != nil || a.End.Number == 0 {
			t.Fatalf("prepare: %+v, %v", a.End, err)
		}
		w.record(t, j, a)
		p.promiseAll(w)
		if err := j.FinishArchive(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		work()
	}
	closeJournal(t, j)
}

// check opens what a cut has left, and checks that all is there that had been acknowledged before it.
func (p *powerRun) check(t *testing.T, cut string, at int, left string) {
	t.Helper()
	failed := t.Failed()
	defer func() {
		if t.Failed() && !failed {
			t.Log("the first failure is of ", cut)
		}
	}()
	want, pieces, backup := map[int]uint64{}, 0, uint64(0)
	for _, q := range p.promised {
		if q.at <= at {
			want[q.mailbox] = max(want[q.mailbox], q.version)
			pieces, backup = max(pieces, q.pieces), max(backup, q.backup)
		}
	}
	o := p.o
	o.Folder = filepath.Join(left, "state")
	if err := MakeFolder(o.Folder); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what the first start has mended is whole in the second
		j, err := Open(t.Context(), o)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		w := make(writer)
		for nth := range 6 {
			m, _ := j.Mailbox(mailboxID(nth))
			if m.Version < want[nth] {
				t.Errorf("mailbox %d has version %d, and %d was acknowledged", nth, m.Version, want[nth])
			}
			if m.Version > 0 {
				w[nth] = m.Version
			}
		}
		if m, ok := j.Mailbox(mailboxID(recorder)); ok {
			w[recorder] = m.Version
			if m.Version < want[recorder] {
				t.Errorf("%d archives are recorded, and %d were acknowledged", m.Version, want[recorder])
			}
		}
		p.checkLog(t, j, w)
		if got, err := j.Output(t.Context(), mailboxID(2), 0, 1000); err != nil || len(got) < pieces {
			t.Errorf("%d pieces of output, and %d were acknowledged: %v", len(got), pieces, err)
		}
		if err := await(t, j, j.Append(w.section(t, 5, 1))); err != nil {
			t.Errorf("append: %v", err)
		}
		closeJournal(t, j)
	}
	parts, err := Parts(filepath.Join(left, "backup"), o.Node)
	if err != nil || backup > 0 && (len(parts) == 0 || parts[len(parts)-1].Last.Number < backup) {
		t.Errorf("the backup has %d parts, want up to commit %d: %v", len(parts), backup, err)
	}
}

// checkLog checks that a journal has all events of w.
func (p *powerRun) checkLog(t *testing.T, j *Journal, w writer) {
	t.Helper()
	for nth, version := range w {
		if _, err := j.Load(t.Context(), mailboxID(nth)); err != nil {
			t.Errorf("load mailbox %d: %v", nth, err)
		}
		evs, err := j.Events(t.Context(), mailboxID(nth), 0, 0)
		if err != nil || uint64(len(evs)) != version {
			t.Errorf("mailbox %d has %d events, want %d: %v", nth, len(evs), version, err)
		}
		for i, e := range evs {
			if bound, ok := e.Event.(*events.NameBound); ok {
				if v, _ := bound.Value.AsInt(); e.Version != uint64(i+1) || v != int64(i+1) {
					t.Errorf("mailbox %d: event %d is version %d", nth, i+1, e.Version)
				}
			}
		}
	}
	if r, err := j.Verify(t.Context()); err != nil || r.Mailboxes != len(w) {
		t.Errorf("verify: %+v, %v; want %d mailboxes", r, err, len(w))
	}
}

// TestPowerCuts runs a journal on a disk that records each operation. Of the record it makes disks as power failures leave
// them: all that was flushed, and any part of the rest. Each opens, and has all that had been acknowledged. Each state in
// which a crash may leave an archive is among them.
func TestPowerCuts(t *testing.T) {
	p := &powerRun{disk: disktest.Mount(t), o: smallFiles(t)}
	p.o.Folder = filepath.Join(p.disk.Path(), "state")
	p.o.Failpoint = p.step
	p.disk.Record()
	if err := MakeFolder(p.o.Folder); err != nil {
		t.Fatal(err)
	}
	p.run(t)
	p.o.Failpoint = nil
	record := p.disk.Recorded()
	for n := range *cuts {
		random := rand.New(rand.NewPCG(13, uint64(n)))
		at := random.IntN(record.Len() + 1)
		left, err := os.MkdirTemp(t.TempDir(), "cut")
		if err != nil {
			t.Fatal(err)
		}
		how, err := record.Cut(at, random, left)
		if err != nil {
			t.Fatal(err)
		}
		p.check(t, fmt.Sprintf("cut %d, which keeps %s", n, how), at, left)
		if err := os.RemoveAll(left); err != nil {
			t.Fatal(err)
		}
	}
	p.cutArchives(t, record)
	t.Logf("%d cuts of %d operations, %d acknowledgements", *cuts, record.Len(), len(p.promised))
}
