package persistence

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley"
)

// places is the number of places of each file that TestDamageOfEveryFile damages, each by a flip and by a cut.
var places = flag.Int("places", 1, "places of each file that TestDamageOfEveryFile damages; 0 is every 16th byte")

// derived matches the files that are made again from others, and those of output. Their damage is harmless.
var derived = regexp.MustCompile(`^groups/|/OBJ_|/PARLEY_OUT_|^index$|^outputs$|/index\.db$|stopped$|^archive/manifest`)

// TestDamageOfEveryFile flips a bit and cuts off the end of every file in a state folder, one at a time, of a journal that
// was closed in order and of one that was killed. The journal opens in bounded time with all its events, or it reports
// CORRUPT_LOG: at its start, or when it is verified. A look at a copy changes no byte, and neither does a start that is
// refused: with the damage undone, all is there.
func TestDamageOfEveryFile(t *testing.T) {
	for _, end := range []string{"closed", "killed"} {
		t.Run(end, func(t *testing.T) { damageEveryFile(t, end == "killed") })
	}
}

func damageEveryFile(t *testing.T, wasKilled bool) {
	base := smallFiles(t)
	j, w := open(t, base), make(writer)
	w.fillBlock(t, j)
	w.padded(t, j, 1)
	archived := w.archive(t, j).End.Number
	w.write(t, j, 4, 5)
	if err := j.SaveSnapshot(t.Context(), mailboxID(4), w[4], binary.BigEndian.AppendUint64(nil, w[4])); err != nil {
		t.Fatal(err)
	}
	if _, err := j.AppendOutput(t.Context(), mailboxID(4), []byte("output")); err != nil {
		t.Fatal(err)
	}
	if left := t.TempDir(); wasKilled {
		if err := errors.Join(j.writeMark(), os.CopyFS(left, os.DirFS(base.Folder))); err != nil {
			t.Fatal(err)
		}
		closeJournal(t, j)
		base.Folder = left
	}
	closeJournal(t, j)
	files, done := 0, 0
	err := fs.WalkDir(os.DirFS(base.Folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		whole, err := os.ReadFile(filepath.Join(base.Folder, name))
		if err != nil || len(whole) == 0 {
			return err
		}
		files++
		step := 16
		if *places > 0 {
			step = len(whole)/(*places) + 1
		}
		for at := step / 3; at < len(whole); at += step {
			for i, how := range []string{"flip", "cut"} {
				if *places == 1 && files%2 == i {
					continue // a sample
				}
				bad := append([]byte(nil), whole...)
				if bad[at] ^= 0x10; how == "cut" {
					bad = bad[:at]
				}
				o := copyJournal(t, base)
				if err := os.WriteFile(filepath.Join(o.Folder, name), bad, 0o600); err != nil {
					return err
				}
				was := everyByte(t, o.Folder)
				looked := lookAt(t, o)
				wantBytes(t, o.Folder, was)
				err := checkDamaged(t, o, w)
				if looked == nil && err != nil || looked != nil && err == nil {
					t.Errorf("the copy is %v, the journal is %v", looked, err)
				}
				if !strings.HasPrefix(fmt.Sprint(err), "verify") && err != nil { // the start was refused
					wantBytes(t, o.Folder, was)
					if err := os.WriteFile(filepath.Join(o.Folder, name), whole, 0o600); err != nil {
						return err
					}
					if err := checkDamaged(t, o, w); err != nil {
						t.Errorf("with the damage undone: %v", err)
					}
				}
				if err != nil && (derived.MatchString(name) || parley.CodeOf(err) != parley.CorruptLog) {
					t.Errorf("%s of %s at %d of %d: %v", how, name, at, len(whole), err)
				}
				if place := placeOf(name, whole, at, archived); err != nil && !strings.Contains(err.Error(), place) {
					t.Errorf("%s of %s at %d of %d: %v: it does not name %s", how, name, at, len(whole), err, place)
				}
				if t.Failed() {
					t.Fatalf("%s of %s at %d of %d", how, name, at, len(whole))
				}
				if err := os.RemoveAll(o.Folder); err != nil {
					return err
				}
				done++
			}
		}
		return nil
	})
	if err != nil || files < 11 {
		t.Errorf("%d files, %v", files, err)
	}
	t.Logf("%d damages of %d files", done, files)
}

// placeOf returns the words of a report that name the damage at a byte of a file: the file, or the commit whose record in a
// block has the byte. If the commit is archived, its record is one that the server has not taken out of the block yet. The
// report is of the first commit behind it that is not archived.
func placeOf(name string, whole []byte, at int, archived uint64) string {
	base := path.Base(name)
	switch path.Ext(base) {
	case ".segment", ".checkpoint":
		return strings.TrimPrefix(path.Ext(base), ".")
	case ".inf", ".sum":
		return "meta.inf"
	case ".blk":
		for from := 0; ; {
			length := int(binary.LittleEndian.Uint32(whole[from:]) & recordLength)
			if at < from+length {
				return fmt.Sprintf("commit %d:", max(archived+1, binary.LittleEndian.Uint64(whole[from+4:])&^removedRecord))
			}
			from += length
		}
	}
	return "high-water"
}

// checkDamaged opens a journal with damage, twice. It returns the damage that is reported. Without a report all events
// have to be there.
func checkDamaged(t *testing.T, o Options, w writer) error {
	t.Helper()
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		j, err := Open(ctx, o)
		cancel()
		if err != nil {
			return err
		}
		_, err = j.Verify(t.Context())
		if err == nil {
			w.checkArchived(t, j)
			_, _ = j.Output(t.Context(), mailboxID(4), 0, 10) // what is lost is reported to the reader
		}
		closeJournal(t, j)
		if err != nil {
			return err
		}
	}
	return nil
}

// lookAt verifies a copy of a journal.
func lookAt(t *testing.T, o Options) error {
	t.Helper()
	j, remove, err := OpenCopy(t.Context(), o)
	if err != nil {
		return err
	}
	_, err = j.Verify(t.Context())
	closeJournal(t, j)
	if err := remove(); err != nil {
		t.Error(err)
	}
	return err
}

// everyByte returns the contents of the files below a folder, by their paths.
func everyByte(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(folder, name))
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantBytes checks that the files below a folder are as they were.
func wantBytes(t *testing.T, folder string, was map[string]string) {
	t.Helper()
	now := everyByte(t, folder)
	for name, b := range was {
		switch is, ok := now[name]; {
		case !ok:
			t.Errorf("%s is gone", name)
		case is != b:
			t.Errorf("%s had %d bytes, and has %d others", name, len(b), len(is))
		}
	}
	for name := range now {
		if _, ok := was[name]; !ok {
			t.Errorf("%s is new", name)
		}
	}
}
