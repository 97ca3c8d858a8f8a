package persistence

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// grouping returns options of a journal with small groups.
func grouping(t testing.TB) Options {
	o := testOptions(t)
	o.groupBytes = 20_000
	return o
}

// group has the journal write what is to be grouped.
func (w writer) group(t testing.TB, j *Journal) {
	t.Helper()
	for range 120 {
		if err := await(t, j, j.Append(w.section(t, 1, 1), w.section(t, 2, 2), w.section(t, 3, 1))); err != nil {
			t.Fatal(err)
		}
	}
	j.grouped.flush()
}

// flush writes groups while there are enough commits.
func (g *grouped) flush() {
	for g.write() {
	}
}

func groupFiles(t testing.TB, o Options) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(o.Folder, groupFolder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestMailboxesAreReadFromGroups reads mailboxes after a regular end and after a kill, and no commit for it.
func TestMailboxesAreReadFromGroups(t *testing.T) {
	o, w := grouping(t), make(writer)
	j := open(t, o)
	w.group(t, j)
	killed := copyJournal(t, o)
	closeJournal(t, j)
	if n := len(groupFiles(t, o)); n < 3 {
		t.Fatalf("%d groups", n)
	}
	for _, o := range []Options{o, killed} {
		j := open(t, o)
		read := j.reader.garbage.read.Load()
		for nth, version := range w {
			if l, err := j.Load(t.Context(), mailboxID(nth)); err != nil || uint64(len(l.Events)) != version {
				t.Fatalf("mailbox %d: %d events, %v; want %d", nth, len(l.Events), err, version)
			}
			if evs, err := j.EventsAt(t.Context(), mailboxID(nth), []uint64{2, 5, version}); err != nil || len(evs) != 3 || evs[2].Version != version {
				t.Fatalf("mailbox %d: %d events, %v", nth, len(evs), err)
			}
		}
		if now := j.reader.garbage.read.Load(); now != read {
			t.Errorf("%d bytes of whole commits were read", now-read)
		}
		w.check(t, j)
		w.write(t, j, 2, 3)
		w.check(t, j)
		w[2] -= 3 // for the next journal
		closeJournal(t, j)
	}
}

// TestDamagedGroupOnlyCostsTime damages each group, at its start, its table, its blocks and its end. The journal has all
// events, and the group that is of no use is gone, or made again.
func TestDamagedGroupOnlyCostsTime(t *testing.T) {
	base, w := grouping(t), make(writer)
	j := open(t, base)
	w.group(t, j)
	closeJournal(t, j)
	for i, file := range groupFiles(t, base) {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for part := range 4 {
			bad := bytes.Clone(whole)
			if at := min(len(bad)*part/3, len(bad)-1); (i+part)%2 == 0 {
				bad = bad[:at]
			} else {
				bad[at] ^= 1
			}
			o := copyJournal(t, base)
			name := filepath.Join(o.Folder, groupFolder, filepath.Base(file))
			if err := os.WriteFile(name, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			j := open(t, o)
			w.check(t, j)
			closeJournal(t, j)
			if left, err := os.ReadFile(name); err == nil && !bytes.Equal(left, whole) || err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("part %d of %s: %d bytes, %v", part, filepath.Base(file), len(left), err)
			}
		}
	}
}

// TestGroupOfAnotherLogIsNotUsed has a journal find groups with the right names that were made from another log.
func TestGroupOfAnotherLogIsNotUsed(t *testing.T) {
	first, second := grouping(t), grouping(t)
	for i, o := range []Options{first, second} {
		j, w := open(t, o), make(writer)
		if i == 1 {
			w[1] = 0
			w.write(t, j, 4, 1) // its commits differ from here on
		}
		w.group(t, j)
		closeJournal(t, j)
		if i == 1 {
			o := copyJournal(t, o)
			if err := os.RemoveAll(filepath.Join(o.Folder, groupFolder)); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(filepath.Join(o.Folder, groupFolder), os.DirFS(filepath.Join(first.Folder, groupFolder))); err != nil {
				t.Fatal(err)
			}
			j := open(t, o)
			w.check(t, j)
			if n := len(groupFiles(t, o)); n > 1 {
				t.Errorf("%d groups of another log are left", n)
			}
		}
	}
}

// TestOldGroupsAreRemoved writes more groups than are kept.
func TestOldGroupsAreRemoved(t *testing.T) {
	o, w := grouping(t), make(writer)
	o.groupBytes = 3000
	j := open(t, o)
	for range 6 {
		w.group(t, j)
	}
	if n := len(groupFiles(t, o)); n > maxGroups || n < maxGroups/2 {
		t.Errorf("%d groups", n)
	}
	w.check(t, j)
}
