package persistence

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"parley"
)

func addPart(t *testing.T, j *Journal, folder string) Part {
	t.Helper()
	p, err := AddPart(folder, j.o.Node, func(after Mark, w io.Writer) error { return j.BackupAfter(t.Context(), after, w) })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func restoreParts(ctx context.Context, o Options, folder string) error {
	parts, err := Parts(folder, o.Node)
	if err != nil {
		return err
	}
	in, err := OpenParts(parts, o.Node)
	if err != nil {
		return err
	}
	return errors.Join(Restore(ctx, o, in), in.Close())
}

// TestRestoredPartsEqualJournal adds several parts to a backup. Each part has the new commits, and all together restore the
// journal.
func TestRestoredPartsEqualJournal(t *testing.T) {
	j := open(t, testOptions(t))
	folder := filepath.Join(t.TempDir(), "backup")
	w := make(writer)
	for range 3 {
		for nth := range 4 {
			w.write(t, j, nth, 5)
		}
		before := addPart(t, j, folder)
		if before.Path == "" || before.Last.Number != j.lastCommit().Number {
			t.Fatalf("%+v", before)
		}
		if again := addPart(t, j, folder); again.Path != "" || again.Last != before.Last {
			t.Errorf("with nothing new: %+v", again)
		}
	}
	parts, err := Parts(folder, j.o.Node)
	if err != nil || len(parts) != 3 || parts[1].Bytes > 2*parts[0].Bytes {
		t.Fatalf("%+v, %v", parts, err)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 4 { // and the lock
		t.Errorf("%v, %v", files, err)
	}
	o := testOptions(t)
	if err := restoreParts(t.Context(), o, folder); err != nil {
		t.Fatal(err)
	}
	again := open(t, o)
	w.check(t, again)
	if _, err := again.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.write(t, again, 1, 3)
	addPart(t, again, folder) // the restored node continues the same backup
	closeJournal(t, again)
	w.write(t, j, 2, 1) // the first journal has diverged
	_, err = AddPart(folder, j.o.Node, func(after Mark, w io.Writer) error { return j.BackupAfter(t.Context(), after, w) })
	wantCode(t, err, parley.InvalidArgument)
}

// TestPartIsWrittenAtomically fails while a part is written, and damages parts.
func TestPartIsWrittenAtomically(t *testing.T) {
	j := open(t, testOptions(t))
	folder := t.TempDir()
	w := make(writer)
	w.write(t, j, 1, 5)
	first := addPart(t, j, folder)
	w.write(t, j, 2, 5)
	full := errors.New("no space left on device, for the test")
	_, err := AddPart(folder, j.o.Node, func(after Mark, w io.Writer) error {
		_, err := io.WriteString(w, partMagic)
		return errors.Join(err, full)
	})
	if !errors.Is(err, full) {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, unfinishedPart), []byte("of a process that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := addPart(t, j, folder)
	whole := map[string][]byte{}
	for _, p := range []Part{first, second} {
		if whole[p.Path], err = os.ReadFile(p.Path); err != nil {
			t.Fatal(err)
		}
	}
	restoreWith := func(path string, text []byte) error {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		err := restoreParts(t.Context(), testOptions(t), folder)
		if put := os.WriteFile(path, whole[path], 0o600); put != nil {
			t.Fatal(put)
		}
		return err
	}
	for path, text := range whole {
		for _, at := range []int{2, partHeader - 1, partHeader + 3, len(text) / 2, len(text) - 45, len(text) - 1} {
			bad := bytes.Clone(text)
			bad[at] ^= 4
			wantCode(t, restoreWith(path, bad), parley.CorruptLog)
		}
		wantCode(t, restoreWith(path, text[:len(text)-1]), parley.CorruptLog)
		wantCode(t, restoreWith(path, append(bytes.Clone(text), 0)), parley.CorruptLog)
	}
	if err := os.Rename(first.Path, first.Path+".moved"); err != nil {
		t.Fatal(err)
	}
	_, err = Parts(folder, j.o.Node)
	wantCode(t, err, parley.CorruptLog)
	if err := os.Rename(first.Path+".moved", first.Path); err != nil {
		t.Fatal(err)
	}
	_, err = Parts(folder, testNode(2))
	wantCode(t, err, parley.InvalidArgument)
	if err := restoreParts(t.Context(), testOptions(t), folder); err != nil {
		t.Fatal(err)
	}
}

func FuzzParseMark(f *testing.F) {
	f.Add("")
	f.Add(Mark{Number: 7}.String())
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMark(s)
		if err != nil {
			return
		}
		if again, err := ParseMark(m.String()); err != nil || again != m {
			t.Errorf("%q: %v, %v", s, again, err)
		}
	})
}
