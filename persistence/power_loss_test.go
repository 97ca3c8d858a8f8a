package persistence

import (
	"bytes"
	"path/filepath"
	"testing"

	"parley/capabilities"
	"parley/events"
	"parley/persistence/disktest"
)

// TestAcknowledgedCommitsSurvivePowerLoss cuts the power after each of a new journal's first commits, and after each new
// block. The disk keeps the name of a new file only if its folder was flushed.
func TestAcknowledgedCommitsSurvivePowerLoss(t *testing.T) {
	d := disktest.Mount(t)
	o := testOptions(t)
	o.Folder = filepath.Join(d.Path(), "above", "state")
	if err := MakeFolder(o.Folder); err != nil {
		t.Fatal(err)
	}
	j := open(t, o)
	blocks, cuts := 0, 0
	for version := uint64(1); blocks < 3; version++ {
		if err := await(t, j, j.Append(largeSection(t, version))); err != nil {
			t.Fatal(err)
		}
		all, err := filepath.Glob(filepath.Join(blockFolder(&j.o), "*.blk"))
		if err != nil {
			t.Fatal(err)
		}
		if version > 3 && len(all) == blocks {
			continue
		}
		blocks = len(all)
		cuts++
		checkAfterPowerLoss(t, d, o, version)
	}
	closeJournal(t, j)
	if cuts < 5 {
		t.Errorf("only %d cuts", cuts)
	}
}

// largeSection makes a section of mailbox 1 of 600 KiB.
func largeSection(t *testing.T, version uint64) events.Section {
	t.Helper()
	body, err := events.Append(nil, events.Recorded{At: 1, Event: &events.NameBound{Name: "n", Value: capabilities.Bytes(make([]byte, 600<<10))}})
	if err != nil {
		t.Fatal(err)
	}
	return events.Section{Mailbox: mailboxID(1), First: version, Count: 1, Body: body}
}

// checkAfterPowerLoss opens the journal as the disk has it after a power loss, and checks the last version.
func checkAfterPowerLoss(t *testing.T, d *disktest.Disk, o Options, version uint64) {
	t.Helper()
	under, err := filepath.Rel(d.Path(), o.Folder)
	if err != nil {
		t.Fatal(err)
	}
	left := t.TempDir()
	if err := d.Cut(left); err != nil {
		t.Fatal(err)
	}
	o.Folder = filepath.Join(left, under)
	j, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("after commit %d and a cut: %v", version, err)
	}
	defer closeJournal(t, j)
	if m, _ := j.Mailbox(mailboxID(1)); m.Version != version {
		t.Errorf("after commit %d and a cut the version is %d", version, m.Version)
	}
}

// TestRestoredJournalSurvivesPowerLoss cuts the power after a restore has returned.
func TestRestoredJournalSurvivesPowerLoss(t *testing.T) {
	from := open(t, testOptions(t))
	make(writer).write(t, from, 1, 5)
	var backup bytes.Buffer
	if err := from.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	d := disktest.Mount(t)
	o := testOptions(t)
	o.Folder = filepath.Join(d.Path(), "state")
	if err := MakeFolder(o.Folder); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), o, &backup); err != nil {
		t.Fatal(err)
	}
	checkAfterPowerLoss(t, d, o, 5)
}

// TestOutputSurvivesPowerLoss cuts the power after output was stored.
func TestOutputSurvivesPowerLoss(t *testing.T) {
	d := disktest.Mount(t)
	o := testOptions(t)
	o.Folder = filepath.Join(d.Path(), "state")
	if err := MakeFolder(o.Folder); err != nil {
		t.Fatal(err)
	}
	j := open(t, o)
	pieces := 0
	put := func(n int) {
		for range n {
			if _, err := j.AppendOutput(t.Context(), mailboxID(1), make([]byte, MaxOutputPiece)); err != nil {
				t.Fatal(err)
			}
			pieces++
		}
	}
	for _, n := range []int{1, 80} { // 80 pieces begin another block
		put(n)
		left := t.TempDir()
		if err := d.Cut(left); err != nil {
			t.Fatal(err)
		}
		cut := o
		cut.Folder = filepath.Join(left, "state")
		k := open(t, cut)
		all, err := k.Output(t.Context(), mailboxID(1), 0, 1000)
		if err != nil || len(all) != pieces {
			t.Errorf("after %d pieces and a cut there are %d, %v", pieces, len(all), err)
		}
		closeJournal(t, k)
	}
}
