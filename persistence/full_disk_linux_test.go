package persistence

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"parley"
)

func TestFullDiskMakesJournalReadOnly(t *testing.T) {
	o := testOptions(t)
	o.Folder = filepath.Join(o.Folder, "small")
	if err := os.Mkdir(o.Folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", o.Folder, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("NOT TESTED: cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(o.Folder, syscall.MNT_DETACH) })
	j := open(t, o)
	w := make(writer)
	w.write(t, j, 1, 20)
	filler := filepath.Join(o.Folder, "filler")
	for round := range 3 {
		fill(t, filler)
		start := time.Now()
		var failed error
		for failed == nil {
			failed = await(t, j, j.Append(w.section(t, 1, 5)))
		}
		wantCode(t, failed, parley.ReadOnly)
		t.Logf("round %d: %v after %v", round, failed, time.Since(start))
		m, _ := j.Mailbox(mailboxID(1))
		if w[1]-m.Version != 5 {
			t.Fatalf("log has %d, appended %d", m.Version, w[1])
		}
		for err := error(nil); parley.CodeOf(err) != parley.ReadOnly; { // the failed write may have left room for a few commits
			if err = j.Reopen(t.Context()); err == nil {
				w[1] = m.Version
				err = await(t, j, j.Append(w.section(t, 1, 5)))
				m, _ = j.Mailbox(mailboxID(1))
			}
		}
		if _, err := j.Load(t.Context(), mailboxID(1)); err != nil {
			t.Logf("while full: %v", err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		reopen(t, j)
		m, _ = j.Mailbox(mailboxID(1))
		w[1] = m.Version
		w.write(t, j, 1, 20)
		w.check(t, j)
	}
	closeJournal(t, j)
	w.check(t, open(t, o))
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
