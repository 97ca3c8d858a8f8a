package persistence

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"parley"
	"parley/persistence/archive"
)

// archivedJournal returns an archived journal, its events and its archive.
func archivedJournal(t *testing.T) (Options, *Journal, writer, Archive) {
	t.Helper()
	o := smallFiles(t)
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
		o := smallFiles(t)
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

// TestPartsGoOnOverAnArchiving backs up to a folder before and after archivings. Each part has only what is new, and what
// is restored is whole.
func TestPartsGoOnOverAnArchiving(t *testing.T) {
	for name, archives := range map[string]bool{"before the first": false, "before the second": true} {
		t.Run(name, func(t *testing.T) {
			o := smallFiles(t)
			j, w := open(t, o), make(writer)
			w.fillBlock(t, j)
			w.padded(t, j, 1)
			if archives {
				w.archive(t, j)
			}
			folder := filepath.Join(t.TempDir(), "parts")
			addPart := func() int64 {
				t.Helper()
				p, err := AddPart(folder, o.Node, func(after Mark, to io.Writer) error { return j.BackupAfter(t.Context(), after, to) })
				if err != nil {
					t.Fatal(err)
				}
				info, err := os.Stat(p.Path)
				if err != nil {
					t.Fatal(err)
				}
				return info.Size()
			}
			addPart()
			w.fillBlock(t, j)
			w.padded(t, j, 1)
			addPart()
			w.archive(t, j)
			if size := addPart(); size > 1<<20 { // without the block
				t.Errorf("the third part has %d bytes", size)
			}
			w.fillBlock(t, j)
			w.padded(t, j, 1)
			w.archive(t, j)
			w.write(t, j, 2, 1)
			addPart()
			parts, err := Parts(folder, o.Node)
			if err != nil {
				t.Fatal(err)
			}
			all, err := OpenParts(parts, o.Node)
			if err != nil {
				t.Fatal(err)
			}
			to := smallFiles(t)
			if err := errors.Join(Restore(t.Context(), to, all), all.Close()); err != nil {
				t.Fatal(err)
			}
			for again := range 2 {
				r := open(t, to)
				w.checkArchived(t, r)
				if again == 0 {
					w.archive(t, r)
					w.checkArchived(t, r)
				}
				closeJournal(t, r)
			}
		})
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
	o := smallFiles(t)
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

func TestLostArchive(t *testing.T) {
	o, j, _, _ := archivedJournal(t)
	closeJournal(t, j)
	if err := os.RemoveAll(filepath.Join(o.Folder, archiveFolder)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), o)
	wantCode(t, err, parley.CorruptLog)
}

// TestManifestIsMadeAgain loses the manifest of a journal that was archived twice, with all segments here, without the
// newest, without the oldest, and with damage.
func TestManifestIsMadeAgain(t *testing.T) {
	o, j, w, _ := archivedJournal(t)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	a := w.archive(t, j)
	closeJournal(t, j)
	folder := filepath.Join(o.Folder, archiveFolder)
	was, err := archive.ReadManifest(folder)
	if err != nil || len(was.Segments) < 2 || was.After.Number == 0 {
		t.Fatalf("%+v, %v", was, err)
	}
	lose := func(t *testing.T) {
		t.Helper()
		for i, name := range []string{"manifest", "manifest.copy"} {
			path := filepath.Join(folder, name)
			err := os.Remove(path)
			if err == nil && i == 1 {
				err = os.WriteFile(path, []byte("no manifest"), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	newest, oldest := was.Segments[len(was.Segments)-1], was.Segments[0]
	for name, away := range map[string]string{"nothing else": "", "the newest segment": newest.Name(), "the oldest segment": oldest.Name()} {
		t.Run(name, func(t *testing.T) {
			lose(t)
			path := filepath.Join(folder, away)
			if away != "" {
				if err := os.Rename(path, path+".away"); err != nil {
					t.Fatal(err)
				}
			}
			j := open(t, o)
			if got := j.archived.current(); !reflect.DeepEqual(got, was) {
				t.Errorf("the manifest is %+v, was %+v", got, was)
			}
			if away == "" {
				w.checkArchived(t, j)
			}
			lose(t)
			if r, err := j.Verify(t.Context()); err != nil || r.Archived != a.End.Number || (len(r.Elsewhere) > 0) != (away != "") {
				t.Errorf("verify: %+v, %v", r, err)
			}
			if there, err := archive.ReadManifest(folder); !errors.Is(err, archive.ErrDamaged) {
				t.Errorf("verify has written %+v, %v", there, err)
			}
			closeJournal(t, j)
			closeJournal(t, open(t, o))
			if again, err := archive.ReadManifest(folder); err != nil || !reflect.DeepEqual(again, was) || !archive.IsKept(folder, was) {
				t.Errorf("the next start has written %+v, %v", again, err)
			}
			if away != "" {
				if err := os.Rename(path+".away", path); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	lose(t)
	for _, s := range was.Segments {
		if err := os.Remove(filepath.Join(folder, s.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if j, err := Open(t.Context(), o); err == nil { // all records are in the journal
		closeJournal(t, j)
	} else {
		wantCode(t, err, parley.CorruptLog)
	}
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
