package persistence

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/events"
	"parley/internal/regular"
)

// wantNewer checks a refusal of what a newer program has written. It names the format, and what to do.
func wantNewer(t *testing.T, err error, format int) {
	t.Helper()
	if e := wantCode(t, err, parley.NewerLog); !strings.Contains(e.Message, fmt.Sprintf("format %d", format)) && !strings.Contains(e.Message, fmt.Sprintf("format is %d", format)) ||
		!strings.Contains(e.Message, "knows formats ") || !strings.Contains(e.Hint, "newer") {
		t.Errorf("%s (%s)", e.Message, e.Hint)
	}
}

// addNewer appends a commit of a later format to a closed journal.
func addNewer(t *testing.T, o Options, format uint16) {
	t.Helper()
	f := &frame{}
	j := open(t, o)
	f.Number, f.Prev, f.Node, f.At = j.lastCommit().Number+1, j.lastCommit().Hash, o.Node, j.lastCommit().at
	var err error
	if f.bytes, _, err = f.Encode(nil); err != nil {
		t.Fatal(err)
	}
	body := f.bytes[:len(f.bytes)-sha256.Size]
	binary.BigEndian.PutUint16(body[7:], format) // behind the magic number, and the codes of the head and of a number of two bytes
	f.bytes, _, f.hash, _ = events.Seal(body)    // it knows no such format
	if err := j.connection().publish(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
}

// TestNewerLogIsRefused opens what a newer program has written: nothing is said to be damaged, and no byte changes.
func TestNewerLogIsRefused(t *testing.T) {
	base := filled(t, smallFiles(t), 300, 3)
	addNewer(t, base, 65000)
	for _, state := range []string{"closed", "killed"} {
		o := copyJournal(t, base)
		if state == "killed" {
			killed(t, &o)
		}
		was := everyByte(t, o.Folder)
		wantNewer(t, lookAt(t, o), 65000)
		for range 2 {
			_, err := Open(t.Context(), o)
			wantNewer(t, err, 65000)
			wantBytes(t, o.Folder, was)
		}
	}
}

func TestNewerArchiveIsRefused(t *testing.T) {
	o, j, _, _ := archivedJournal(t)
	closeJournal(t, j)
	raise := func(b []byte) {
		copy(b[len(b)-sha256.Size:], func() []byte { s := sha256.Sum256(b[:len(b)-sha256.Size]); return s[:] }())
	}
	for _, name := range []string{"manifest", "manifest.copy"} {
		rewrite(t, filepath.Join(o.Folder, archiveFolder, name), func(b []byte) []byte { b[7] = 9; raise(b); return b })
	}
	was := everyByte(t, o.Folder)
	_, err := Open(t.Context(), o)
	wantNewer(t, err, 9)
	wantBytes(t, o.Folder, was)
}

func TestNewerBackupIsRefused(t *testing.T) {
	j := open(t, testOptions(t))
	make(writer).write(t, j, 1, 5)
	var backup bytes.Buffer
	if err := j.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	backup.Bytes()[7] = 9
	wantNewer(t, Restore(t.Context(), testOptions(t), &backup), 9)
	folder := t.TempDir()
	p, err := AddPart(folder, testNode(1), func(after Mark, w io.Writer) error { return j.BackupAfter(t.Context(), after, w) })
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, p.Path, func(b []byte) []byte { b[7] = 9; return b })
	_, err = Parts(folder, testNode(1))
	wantNewer(t, err, 9)
}

// TestBackupOpensOnlyItsOwnFiles puts links and other things into the folder of a backup, in the place of its files.
func TestBackupOpensOnlyItsOwnFiles(t *testing.T) {
	j := open(t, testOptions(t))
	make(writer).write(t, j, 1, 5)
	for _, name := range []string{partsLock, unfinishedPart, PartName(Mark{}, Mark{Number: 9})} {
		folder, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
		if err := os.Symlink(elsewhere, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
		_, err := AddPart(folder, testNode(1), func(after Mark, w io.Writer) error { return j.BackupAfter(t.Context(), after, w) })
		if name != unfinishedPart { // which is replaced
			wantCode(t, err, parley.InvalidArgument)
		} else if err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(elsewhere); err == nil {
			t.Errorf("the link %s was followed", name)
		}
	}
	if _, err := regular.Open(t.TempDir(), os.O_RDONLY); err == nil {
		t.Error("a folder was opened as a file")
	}
}
