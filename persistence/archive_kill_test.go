package persistence

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"parley"
	"parley/events"
	"parley/internal/eventually"
	"parley/persistence/disktest"
)

// childArchiver has the folder of a child process that archives, and the step at which it stops to be killed.
const (
	childArchiver = "PARLEY_TEST_ARCHIVER_FOLDER"
	childStep     = "PARLEY_TEST_ARCHIVER_STEP"
)

// archiveAsChild archives a journal. At its step it prints a line and waits to be killed.
func archiveAsChild(folder, stop string) {
	j, err := Open(context.Background(), Options{Folder: folder, Node: testNode(1), maxBytes: smallJournal, archiveLeast: smallArchive, Failpoint: func(step string) error {
		if step == stop {
			fmt.Println(step)
			select {}
		}
		return nil
	}})
	if err != nil {
		panic(err)
	}
	a, err := j.PrepareArchive(context.Background(), later, foldState)
	if err != nil {
		panic(err)
	}
	r := a.Record()
	body, err := events.Append(nil, events.Recorded{At: 1, Event: &r})
	if err != nil {
		panic(err)
	}
	m, _ := j.Mailbox(mailboxID(recorder))
	done := make(chan error, 1)
	j.Release(j.Append(events.Section{Mailbox: mailboxID(recorder), First: m.Version + 1, Count: 1, Body: body}), func(err error) { done <- err })
	if err := <-done; err != nil {
		panic(err)
	}
	panic(fmt.Sprint("finished without the step: ", j.FinishArchive(context.Background(), a)))
}

func TestKilledArchiverLeavesAWholeLog(t *testing.T) {
	o := smallFiles(t)
	j, w := open(t, o), make(writer)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	closeJournal(t, j)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"after " + StepSegment, "before " + StepManifest, "before " + StepRecorded, "before " + StepCut, "after " + StepCut} {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childArchiver+"="+o.Folder, childStep+"="+step)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		reached := lines.Scan() && lines.Text() == step
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if !reached {
			t.Fatalf("the process did not reach %q: %s", step, lines.Text())
		}
		j := open(t, o)
		if m, ok := j.Mailbox(mailboxID(recorder)); ok {
			w[recorder] = m.Version
		}
		w.checkArchived(t, j)
		if step == "before "+StepCut { // this start has cut it
			w.fillBlock(t, j)
			w.padded(t, j, 1)
		}
		closeJournal(t, j)
	}
	j = open(t, o)
	if l, a := j.connection(), j.Archive(); a.End.Number == 0 || l.first.Load() != a.End.Number+1 {
		t.Fatalf("the journal begins with commit %d, the archive ends with %d", l.first.Load(), a.End.Number)
	}
}

// TestFullDiskWhileArchiving archives on a disk that is full after more and more bytes.
func TestFullDiskWhileArchiving(t *testing.T) {
	d := disktest.Mount(t)
	o := smallFiles(t)
	o.Folder = d.Path()
	j, w := open(t, o), make(writer)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	for _, room := range []int64{0, 300, 1200} {
		d.SetRoom(room)
		_, err := j.PrepareArchive(t.Context(), later, foldState)
		d.SetRoom(-1)
		wantCode(t, err, parley.ReadOnly)
		eventually.Holds(t, "the journal takes appends", func() bool { return j.Reopen(t.Context()) == nil })
		w.checkArchived(t, j)
	}
	a, err := j.PrepareArchive(t.Context(), later, foldState)
	if err != nil {
		t.Fatal(err)
	}
	w.record(t, j, a)
	d.SetRoom(0)
	err = j.FinishArchive(t.Context(), a)
	d.SetRoom(-1)
	if err == nil {
		t.Fatal("finished on a full disk")
	}
	eventually.Holds(t, "the journal takes appends", func() bool { return j.Reopen(t.Context()) == nil })
	w.checkArchived(t, j)
	if err := j.FinishArchive(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	w.checkArchived(t, j)
	closeJournal(t, j)
	w.checkArchived(t, open(t, o))
}

// BenchmarkArchive reports the bytes of a journal before and after it is archived, and those of the archive, for each
// event of small commits.
func BenchmarkArchive(b *testing.B) {
	const commits = 20_000
	o := testOptions(b)
	f := filler{writer: make(writer)}
	f.fill(b, o, commits, 10)
	j := openAgain(b, o)
	defer closeJournal(b, j)
	before := j.Stats()
	began := time.Now()
	a, err := j.PrepareArchive(b.Context(), later, foldState)
	if err != nil {
		b.Fatal(err)
	}
	prepared := time.Since(began)
	f.writer.record(b, j, a)
	began = time.Now()
	if err := j.FinishArchive(b.Context(), a); err != nil {
		b.Fatal(err)
	}
	size := a.CheckpointBytes
	for _, s := range a.Segments {
		size += s.Bytes
	}
	events := float64(before.Events)
	b.ReportMetric(float64(before.Bytes)/events, "journal-B/event")
	b.ReportMetric(float64(size)/events, "archive-B/event")
	b.ReportMetric(100*float64(j.Stats().Bytes)/float64(before.Bytes), "%-left")
	b.ReportMetric(prepared.Seconds(), "s/prepare")
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/cut")
}
