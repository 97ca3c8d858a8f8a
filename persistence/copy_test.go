package persistence

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/persistence/disktest"
)

// interrupted is a journal that was killed, on a disk that records a start of it.
type interrupted struct {
	o      Options
	w      writer
	was    map[string]string
	block  string // its newest block, below the folder
	whole  []byte // that block, without damage
	bad    bool   // whether it is damaged
	record *disktest.Record
	begin  int // the first operation of the start
}

// interrupt kills a journal with several blocks, damages its newest block, and starts it on a disk.
func interrupt(t *testing.T, damage func(block []byte) []byte, bad bool) *interrupted {
	t.Helper()
	x := &interrupted{o: smallFiles(t), w: make(writer), bad: bad}
	j := open(t, x.o)
	x.w.fillBlock(t, j)
	x.w.fillBlock(t, j)
	x.w.padded(t, j, 1)
	x.w.write(t, j, 2, 5)
	left := t.TempDir()
	if err := errors.Join(j.writeMark(), os.CopyFS(left, os.DirFS(x.o.Folder))); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	blocks, err := blocksIn(blockFolder(&Options{Folder: left, Node: x.o.Node}))
	if err != nil || len(blocks) < 3 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	newest := blocks[len(blocks)-1]
	if x.block, err = filepath.Rel(left, newest); err == nil {
		x.whole, err = os.ReadFile(newest)
	}
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, newest, damage)
	x.was = everyByte(t, left)
	disk := disktest.Mount(t)
	disk.Record()
	x.o.Folder = filepath.Join(disk.Path(), "state")
	if err := errors.Join(os.CopyFS(x.o.Folder, os.DirFS(left)), flushTree(disk.Path())); err != nil {
		t.Fatal(err)
	}
	x.begin = disk.Position()
	j, err = Open(t.Context(), x.o)
	if err == nil {
		closeJournal(t, j)
	}
	if (err != nil) != bad {
		t.Fatal(err)
	}
	if bad {
		wantCode(t, err, parley.CorruptLog)
		wantBytes(t, x.o.Folder, x.was)
	}
	x.record = disk.Recorded()
	return x
}

// check starts what a kill or a power cut behind some operation has left: again and again, until the damage is undone.
func (x *interrupted) check(t *testing.T, how, left string, again int) {
	t.Helper()
	failed := t.Failed()
	defer func() {
		if t.Failed() && !failed {
			t.Log("the first failure is of ", how)
		}
	}()
	o := x.o
	o.Folder = filepath.Join(left, "state")
	found := everyByte(t, o.Folder)
	for name := range found {
		if strings.HasPrefix(name, "journal/"+copyFolder) {
			delete(found, name) // of the start
		}
	}
	if err := lookAt(t, o); (err != nil) != x.bad {
		t.Fatalf("the copy: %v", err)
	}
	wantBytes(t, o.Folder, found)
	if x.bad {
		for range again {
			_, err := Open(t.Context(), o)
			wantCode(t, err, parley.CorruptLog)
			wantBytes(t, o.Folder, x.was)
		}
		if err := os.WriteFile(filepath.Join(o.Folder, x.block), x.whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	x.w.checkArchived(t, j)
	closeJournal(t, j)
	if strays := inJournal(t, o); len(strays) > 0 {
		t.Errorf("%q are left", strays)
	}
}

// inJournal returns the names in a journal's folder that are none of the journal's.
func inJournal(t *testing.T, o Options) (strays []string) {
	t.Helper()
	there, err := os.ReadDir(journalFolder(o.Folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range there {
		if e.Name() != serverFolder && e.Name() != stoppedWell {
			strays = append(strays, e.Name())
		}
	}
	return strays
}

// TestStrayFilesAreNotUsed puts things beside the server's files: what looks like a copy, or like a part of one. They change
// nothing about a start of a log that is whole, or damaged, and stay as they are.
func TestStrayFilesAreNotUsed(t *testing.T) {
	base := filled(t, smallFiles(t), 300, 3)
	killed(t, &base)
	put := func(name, text string) func(folder string) error {
		return func(folder string) error {
			path := filepath.Join(folder, name)
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
		}
	}
	part := func(to string) func(folder string) error {
		return func(folder string) error {
			copied := filepath.Join(folder, to)
			if err := os.CopyFS(copied, os.DirFS(filepath.Join(folder, serverFolder))); err != nil {
				return err
			}
			blocks, err := filepath.Glob(filepath.Join(copied, "*", "streams", "*", "msgs", "*"+blockSuffix))
			for _, b := range blocks {
				err = errors.Join(err, os.Truncate(b, 100))
			}
			return err
		}
	}
	for name, stray := range map[string]func(folder string) error{
		"an empty folder": func(folder string) error { return os.Mkdir(filepath.Join(folder, "aside"), 0o700) },
		"a folder":        put("aside/x", "of a person"),
		"a copy":          part("aside"),
		"part of a copy":  put("aside/"+serverFolder+"/1.blk", "cut"),
		"no mark":         put(copyFolder+"1/x", "of a person"),
		"no mark, a copy": part(copyFolder + "1/journal/" + serverFolder),
		"a file":          put(copyFolder+"1", "of a person"),
		"a link": func(folder string) error {
			return os.Symlink("../"+HighWaterFile, filepath.Join(folder, copyFolder+"1"))
		},
	} {
		for _, damaged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, damaged %v", name, damaged), func(t *testing.T) {
				o := copyJournal(t, base)
				var told strings.Builder
				o.Log = slog.New(slog.NewTextHandler(&told, nil))
				blocks, err := blocksIn(blockFolder(&o))
				if err == nil {
					err = stray(journalFolder(o.Folder))
				}
				if err != nil {
					t.Fatal(err)
				}
				newest := blocks[len(blocks)-1]
				flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
				if damaged {
					rewrite(t, newest, flip)
				}
				before, strays := everyByte(t, o.Folder), inJournal(t, o)
				if err := lookAt(t, o); (err != nil) != damaged {
					t.Error(err)
				}
				wantBytes(t, o.Folder, before)
				if damaged {
					for range 2 {
						_, err := Open(t.Context(), o)
						wantCode(t, err, parley.CorruptLog)
						wantBytes(t, o.Folder, before)
					}
					rewrite(t, newest, flip)
				}
				j, err := Open(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if r, err := j.Verify(t.Context()); err != nil || r.Commits != 300 {
					t.Errorf("%+v, %v", r, err)
				}
				closeJournal(t, j)
				if now := inJournal(t, o); !slices.Equal(now, strays) {
					t.Errorf("%q were there, and are %q", strays, now)
				}
				if !strings.Contains(told.String(), strays[0]) {
					t.Errorf("nothing is said of %q: %s", strays, told.String())
				}
			})
		}
	}
}

// TestKilledWhileCopied kills a start behind operations of its disk, and cuts the power there. The next start finds the
// log as it was before: it is refused again and changes no byte, or it has all that was acknowledged.
func TestKilledWhileCopied(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(block []byte) []byte
		bad    bool
	}{
		"damaged": {func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, true},
		"torn":    {func(b []byte) []byte { return append(b, b[:100]...) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := interrupt(t, c.damage, c.bad)
			random := rand.New(rand.NewPCG(7, 7))
			length := x.record.Len() - x.begin
			for n := range *cuts {
				at := x.begin + length*n / *cuts + random.IntN(length / *cuts + 1)
				left, err := os.MkdirTemp(t.TempDir(), "left")
				if err != nil {
					t.Fatal(err)
				}
				how := fmt.Sprintf("a kill behind operation %d of %d", at-x.begin, length)
				if err = x.record.Kill(at, left); n%2 == 1 {
					if err = os.RemoveAll(left); err == nil {
						how, err = x.record.Cut(at, random, left)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				x.check(t, how, left, n%4/2*2) // also undone before any other start
				if err := os.RemoveAll(left); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%d operations", length)
		})
	}
}

// TestStrayBlockIsRefused puts files into the stream's folder that the server would take for a block of it.
func TestStrayBlockIsRefused(t *testing.T) {
	base := filled(t, smallFiles(t), 300, 3) // three blocks
	for _, name := range []string{"03.blk", "+3.blk", "3.blk.blk", "x.blk", "-1.blk", "99999999999999999999.blk", "9.blk/"} {
		for _, state := range []string{"kept", "derived"} {
			t.Run(name+" "+state, func(t *testing.T) {
				o := copyJournal(t, base)
				if state == "derived" {
					killed(t, &o)
				}
				path := filepath.Join(blockFolder(&o), name)
				var err error
				if strings.HasSuffix(name, "/") {
					err = os.Mkdir(path, 0o700)
				} else {
					err = os.WriteFile(path, []byte("a block"), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				was := everyByte(t, o.Folder)
				_, err = Open(t.Context(), o)
				if e := wantCode(t, err, parley.CorruptLog); !strings.Contains(e.Message, strings.Trim(name, "/")) || e.Hint == "" {
					t.Errorf("%s (%s)", e.Message, e.Hint)
				}
				wantBytes(t, o.Folder, was)
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if n := open(t, o).Stats().Commits; n != 300 {
					t.Errorf("%d commits", n)
				}
			})
		}
	}
}

// TestLostDescriptionIsMadeAgain loses one of the files that describe the stream, or damages one.
func TestLostDescriptionIsMadeAgain(t *testing.T) {
	base := filled(t, smallFiles(t), 300, 3)
	for name, lose := range map[string]func(path string) error{
		"meta.inf is missing": os.Remove, "meta.sum is missing": os.Remove,
		"meta.inf and meta.sum are not of each other": func(path string) error { return os.Truncate(path, 20) },
	} {
		for _, mark := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, mark %v", name, mark), func(t *testing.T) {
				o := copyJournal(t, base)
				file, _, _ := strings.Cut(name, " ")
				if err := lose(filepath.Join(filepath.Dir(blockFolder(&o)), file)); err != nil {
					t.Fatal(err)
				}
				if mark {
					for range 2 {
						j := open(t, o)
						if r, err := j.Verify(t.Context()); err != nil || r.Commits != 300 {
							t.Errorf("%+v, %v", r, err)
						}
						closeJournal(t, j)
					}
					return
				}
				if err := os.Remove(filepath.Join(o.Folder, HighWaterFile)); err != nil {
					t.Fatal(err)
				}
				_, err := Open(t.Context(), o)
				if e := wantCode(t, err, parley.CorruptLog); !strings.Contains(e.Message, name) {
					t.Error(e.Message)
				}
			})
		}
	}
}
