package persistence

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"parley"
	"parley/persistence/archive"
)

// archivedJournal returns an archived journal, its events and its archive.
func archivedJournal(t *testing.T) (Options, *Journal, writer, Archive) {
	t.Helper()
	o := testOptions(t)
	j, w := open(t, o), make(writer)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	a := w.archive(t, j)
	w.write(t, j, 4, 2)
	return o, j, w, a
}

func TestBackupOfArchivedJournal(t *testing.T) {
	_, j, w, a := archivedJournal(t)
	var whole, parted bytes.Buffer
	if err := j.Backup(t.Context(), &whole); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "parts")
	addPart := func() {
		t.Helper()
		_, err := AddPart(folder, testNode(1), func(after Mark, to io.Writer) error { return j.BackupAfter(t.Context(), after, to) })
		if err != nil {
			t.Fatal(err)
		}
	}
	addPart()
	w.write(t, j, 2, 2)
	addPart()
	parts, err := Parts(folder, testNode(1))
	if err != nil || len(parts) != 2 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	all, err := OpenParts(parts, testNode(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parted.ReadFrom(all); err != nil {
		t.Fatal(err)
	}
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*bytes.Buffer{"file": &whole, "folder": &parted} {
		w := maps.Clone(w)
		if name == "file" { // it was made before the second part
			w[2] -= 2
		}
		o := testOptions(t)
		for _, damage := range []int{100, 1000, b.Len() / 2, b.Len() - 30} {
			bad := bytes.Clone(b.Bytes())
			bad[damage] ^= 4
			wantCode(t, Restore(t.Context(), o, bytes.NewReader(bad)), parley.CorruptLog)
		}
		if err := Restore(t.Context(), o, bytes.NewReader(b.Bytes())); err != nil {
			t.Fatal(name, err)
		}
		for range 2 {
			r := open(t, o)
			w.checkArchived(t, r)
			if got := r.Archive(); got.End != a.End {
				t.Fatalf("%s: the archive ends with commit %d, want %d", name, got.End.Number, a.End.Number)
			}
			w.write(t, r, 4, 1)
			closeJournal(t, r)
		}
	}
}

func TestBackupWithoutASegment(t *testing.T) {
	_, j, w, a := archivedJournal(t)
	s := a.Segments[0]
	f, err := j.OpenSegment(s)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := j.Detach(t.Context(), s, ""); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := j.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	o := testOptions(t)
	if err := Restore(t.Context(), o, &b); err != nil {
		t.Fatal(err)
	}
	r := open(t, o)
	if _, err := r.Events(t.Context(), mailboxID(1), 0, 1); parley.CodeOf(err) != parley.Archived {
		t.Fatal(err)
	}
	if err := r.Attach(t.Context(), s, f); err != nil {
		t.Fatal(err)
	}
	w.checkArchived(t, r)
}

func TestDamagedArchive(t *testing.T) {
	o, j, w, a := archivedJournal(t)
	closeJournal(t, j)
	removeIndexSnapshot(t, o)
	folder := filepath.Join(o.Folder, archiveFolder)
	checkpoint := filepath.Join(folder, archive.CheckpointName(a.End.Number))
	segment := filepath.Join(folder, a.Segments[0].Name())
	damaged := func(t *testing.T, path string, change func(b []byte) []byte, check func(t *testing.T)) {
		t.Helper()
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string][]byte{"flip": change(bytes.Clone(good)), "cut": good[:len(good)-1], "empty": nil} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Run(name, check)
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flip := func(b []byte) []byte { b[len(b)/3] ^= 1; return b }
	damaged(t, filepath.Join(folder, "manifest"), flip, func(t *testing.T) {
		j := open(t, o)
		w.checkArchived(t, j)
		closeJournal(t, j)
	})
	damaged(t, checkpoint, flip, func(t *testing.T) {
		removeIndexSnapshot(t, o)
		j := open(t, o)
		l, err := j.Load(t.Context(), mailboxID(1))
		if err != nil || uint64(len(l.Events)) != w[1] {
			t.Fatalf("%d events, %v", len(l.Events), err)
		}
		_, err = j.Verify(t.Context())
		wantCode(t, err, parley.CorruptLog)
		if err := j.Err(); err != nil {
			t.Fatal(err)
		}
		closeJournal(t, j)
	})
	damaged(t, segment, func(b []byte) []byte { b[20] ^= 1; return b }, func(t *testing.T) {
		j := open(t, o)
		if _, err := j.Load(t.Context(), mailboxID(1)); err != nil {
			t.Fatal(err)
		}
		_, err := j.Events(t.Context(), mailboxID(1), 0, 1)
		wantCode(t, err, parley.CorruptLog)
		_, err = j.Verify(t.Context())
		wantCode(t, err, parley.CorruptLog)
		if err := await(t, j, j.Append(w.section(t, 4, 1))); err != nil {
			t.Fatal(err)
		}
		closeJournal(t, j)
	})
	w.checkArchived(t, open(t, o))
}

func TestLostManifest(t *testing.T) {
	o, j, _, _ := archivedJournal(t)
	closeJournal(t, j)
	if err := os.RemoveAll(filepath.Join(o.Folder, archiveFolder)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), o)
	wantCode(t, err, parley.CorruptLog)
}

func TestDamagedCheckpointIsMadeAgain(t *testing.T) {
	o, j, w, a := archivedJournal(t)
	path := filepath.Join(o.Folder, archiveFolder, archive.CheckpointName(a.End.Number))
	closeJournal(t, j)
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	j = open(t, o)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	w.archive(t, j)
	w.checkArchived(t, j)
}
