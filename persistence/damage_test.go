package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/events"
	"parley/internal/eventually"
)

// newClosedJournal makes a journal of 300 commits and closes it. It calls do with its options and its first block.
func newClosedJournal(t *testing.T, do func(o *Options, block string)) Options {
	t.Helper()
	o := testOptions(t)
	j, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	w := make(writer)
	var last Position
	for i := range 300 {
		last = j.Append(w.section(t, i%5, 1))
		if i%3 == 0 {
			if err := await(t, j, last); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := await(t, j, last); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
	o, err = o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	do(&o, filepath.Join(blockFolder(&o), "1.blk"))
	return o
}

// copyJournal copies a closed journal to a new folder.
func copyJournal(t *testing.T, base Options) Options {
	t.Helper()
	o, err := base.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	o.Folder = t.TempDir()
	if err := os.CopyFS(o.Folder, os.DirFS(base.Folder)); err != nil {
		t.Fatal(err)
	}
	return o
}

func rewrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// removeServerIndex removes the server's index of the stream, so that the server reads the blocks.
func removeServerIndex(t *testing.T, o *Options) {
	t.Helper()
	if err := os.Remove(filepath.Join(blockFolder(o), "index.db")); err != nil {
		t.Fatal(err)
	}
}

// killed has a closed journal look as if its process had been killed.
func killed(t testing.TB, o *Options) {
	t.Helper()
	for _, name := range []string{filepath.Join(journalFolder(o.Folder), stoppedWell), filepath.Join(blockFolder(o), serverState)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func TestDamageIsDetectedAtOpen(t *testing.T) {
	flip := func(share float64) func(*testing.T, string) {
		return func(t *testing.T, block string) {
			rewrite(t, block, func(b []byte) []byte { b[int(float64(len(b)-1)*share)] ^= 0x10; return b })
		}
	}
	cut := func(share float64) func(*testing.T, string) {
		return func(t *testing.T, block string) {
			rewrite(t, block, func(b []byte) []byte { return b[:int(float64(len(b))*share)] })
		}
	}
	cases := map[string]func(t *testing.T, block string){
		"flipped at the start":  flip(0),
		"flipped early":         flip(0.1),
		"flipped in the middle": flip(0.5),
		"flipped late":          flip(0.97),
		"flipped at the end":    flip(1),
		"cut in half":           cut(0.5),
		"cut near the end":      cut(0.995),
		"emptied":               cut(0),
		"removed": func(t *testing.T, block string) {
			if err := os.Remove(block); err != nil {
				t.Fatal(err)
			}
		},
		"one commit cut out": func(t *testing.T, block string) {
			rewrite(t, block, func(b []byte) []byte {
				second := bytes.Index(b[200:], []byte("PARLEY.")) + 200 - 22
				third := bytes.Index(b[second+100:], []byte("PARLEY.")) + second + 100 - 22
				return append(b[:second:second], b[third:]...)
			})
		},
	}
	base := newClosedJournal(t, func(*Options, string) {})
	for name, do := range cases {
		for _, state := range []string{"kept", "lost", "derived"} {
			t.Run(name+", state "+state, func(t *testing.T) {
				o := copyJournal(t, base)
				do(t, filepath.Join(blockFolder(&o), "1.blk"))
				switch state {
				case "lost":
					removeServerIndex(t, &o)
				case "derived":
					killed(t, &o)
				}
				j, err := Open(t.Context(), o)
				if err == nil {
					closeJournal(t, j)
				}
				if e := wantCode(t, err, parley.CorruptLog); !regexp.MustCompile(`commit \d+: `).MatchString(e.Message) || e.Hint == "" {
					t.Fatalf("%s (%s) names no commit", e.Message, e.Hint)
				}
			})
		}
	}
}

func TestMissingDescriptionIsDamage(t *testing.T) {
	o := newClosedJournal(t, func(o *Options, block string) {
		if err := os.Remove(filepath.Join(filepath.Dir(filepath.Dir(block)), "meta.inf")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(o.Folder, "high-water")); err != nil {
			t.Fatal(err)
		}
	})
	_, err := Open(t.Context(), o)
	wantCode(t, err, parley.CorruptLog)
}

func TestHighWaterMarkDetectsLostTail(t *testing.T) {
	o := newClosedJournal(t, func(o *Options, block string) {
		mark, err := os.ReadFile(filepath.Join(o.Folder, "high-water"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(journalFolder(o.Folder)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(o.Folder, "high-water")); err != nil {
			t.Fatal(err)
		}
		j := open(t, *o) // an earlier state of the log
		make(writer).write(t, j, 1, 2)
		closeJournal(t, j)
		if err := os.WriteFile(filepath.Join(o.Folder, "high-water"), mark, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	_, err := Open(t.Context(), o)
	if e := wantCode(t, err, parley.CorruptLog); !strings.Contains(e.Message, "commit 3: it") {
		t.Fatal(e.Message)
	}
}

func TestHighWaterMarkSurvivesTornWrite(t *testing.T) {
	folder := t.TempDir()
	for n := uint64(1); n <= 3; n++ {
		h, err := openHighWater(folder, testNode(1))
		if err != nil {
			t.Fatal(err)
		}
		if h.last.Number != n-1 {
			t.Fatalf("mark is %d, want %d", h.last.Number, n-1)
		}
		if err := h.write(Mark{Number: n}); err != nil {
			t.Fatal(err)
		}
		if err := h.close(); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(folder, "high-water")
	corrupt := func(at int) { rewrite(t, path, func(b []byte) []byte { b[at] ^= 1; return b }) }
	corrupt(20) // slot 0 has mark 3
	h, err := openHighWater(folder, testNode(1))
	if err != nil || h.last.Number != 2 {
		t.Fatalf("%+v, %v", h, err)
	}
	if err := h.close(); err != nil {
		t.Fatal(err)
	}
	corrupt(slotStride + 20)
	_, err = openHighWater(folder, testNode(1))
	wantCode(t, err, parley.CorruptLog)
}

func TestBackgroundCheckDetectsDamage(t *testing.T) {
	o := testOptions(t)
	o.freshCommits = 500
	filled(t, o, 1_000, 1)
	j := open(t, o)
	eventually.Holds(t, "the background check ends", func() bool { return j.Err() == nil }) // it finds no damage
	closeJournal(t, j)
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, filepath.Join(blockFolder(&o), "1.blk"), func(b []byte) []byte { b[len(b)/50] ^= 1; return b })
	j, err = Open(t.Context(), o)
	if err == nil {
		defer closeJournal(t, j)
		eventually.Holds(t, "damage is found", func() bool { return parley.CodeOf(j.Err()) == parley.CorruptLog })
		_, err = j.Verify(t.Context())
		wantCode(t, j.Reopen(t.Context()), parley.CorruptLog)
	}
	wantCode(t, err, parley.CorruptLog)
}

func TestDamageInAnyBlockIsDetected(t *testing.T) {
	base := filled(t, smallFiles(t), 300, 3) // three blocks
	for _, block := range []string{"1", "2", "last"} {
		for _, state := range []string{"kept", "lost", "derived"} {
			for how, do := range map[string]func(path string) error{
				"removed": os.Remove,
				"flipped": func(path string) error {
					rewrite(t, path, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
					return nil
				},
				"cut": func(path string) error {
					rewrite(t, path, func(b []byte) []byte { return b[:len(b)/2] })
					return nil
				},
			} {
				t.Run(how+" "+block+", state "+state, func(t *testing.T) {
					o := copyJournal(t, base)
					all, err := filepath.Glob(filepath.Join(blockFolder(&o), "*.blk"))
					if err != nil || len(all) < 3 {
						t.Fatalf("%d blocks, %v", len(all), err)
					}
					name := block
					if name == "last" {
						name = strconv.Itoa(len(all))
					}
					if err := do(filepath.Join(blockFolder(&o), name+".blk")); err != nil {
						t.Fatal(err)
					}
					switch state {
					case "lost":
						removeServerIndex(t, &o)
					case "derived":
						killed(t, &o)
					}
					j, err := Open(t.Context(), o)
					if err == nil {
						closeJournal(t, j)
					}
					wantCode(t, err, parley.CorruptLog)
				})
			}
		}
	}
}

func TestUnreadableEventAffectsOneMailbox(t *testing.T) {
	j := open(t, testOptions(t))
	w := make(writer)
	w.write(t, j, 1, 2)
	bad := events.Section{Mailbox: mailboxID(2), First: 1, Count: 1, Body: []byte{200, 1, 2}}
	if err := await(t, j, j.Append(w.section(t, 1, 1), bad, w.section(t, 3, 1))); err != nil {
		t.Fatal(err)
	}
	_, err := j.Load(t.Context(), mailboxID(2))
	if e := wantCode(t, err, parley.CorruptLog); !strings.Contains(e.Message, "commit 3: an event of mailbox "+mailboxID(2).ULID.String()) {
		t.Fatal(e.Message)
	}
	for _, nth := range []int{1, 3} {
		if l, err := j.Load(t.Context(), mailboxID(nth)); err != nil || uint64(len(l.Events)) != w[nth] {
			t.Fatalf("mailbox %d: %d events, %v", nth, len(l.Events), err)
		}
	}
	_, err = j.Verify(t.Context())
	wantCode(t, err, parley.CorruptLog)
	if err := j.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestReaderDetectsDamageWhileRunning(t *testing.T) {
	o := filled(t, smallFiles(t), 300, 3)
	j := open(t, o)
	full, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, filepath.Join(blockFolder(&full), "1.blk"), func(b []byte) []byte { clear(b[1000:]); return b })
	eventually.Holds(t, "damage is found", func() bool { // once the server has dropped its copy of the block
		_, err := j.Verify(t.Context())
		return parley.CodeOf(err) == parley.CorruptLog
	})
	wantCode(t, j.Err(), parley.CorruptLog)
}

// TestUnfinishedStreamIsReplaced opens a folder with an empty block and a description without its checksum, which a
// process leaves that is killed while it creates its journal.
func TestUnfinishedStreamIsReplaced(t *testing.T) {
	o, err := testOptions(t).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(blockFolder(&o), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(blockFolder(&o), "1.blk"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(blockFolder(&o)), "meta.inf"), []byte("{}"), 0o600); err != nil { // without its checksum
		t.Fatal(err)
	}
	w := make(writer)
	for range 2 {
		j := open(t, o)
		w.write(t, j, 0, 1)
		w.check(t, j)
		closeJournal(t, j)
	}
}

// TestKilledJournalIsReadOnce opens journals after a kill. The server accepts the index that was made of the copy, and cuts
// a record that is not whole itself.
func TestKilledJournalIsReadOnce(t *testing.T) {
	base := filled(t, smallFiles(t), 300, 3) // three blocks
	for _, torn := range []bool{false, true} {
		o := copyJournal(t, base)
		killed(t, &o)
		blocks, err := blocksIn(blockFolder(&o))
		if err != nil {
			t.Fatal(err)
		}
		if torn {
			rewrite(t, blocks[len(blocks)-1], func(b []byte) []byte { return append(b, b[:100]...) })
		}
		var log bytes.Buffer
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		j := open(t, o)
		if n := j.Stats().Commits; n != 300 {
			t.Errorf("torn %v: %d commits", torn, n)
		}
		if _, err := j.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		w := writer{30_000: 0}
		w.write(t, j, 30_000, 3)
		closeJournal(t, j)
		if !torn && strings.Contains(log.String(), "ecover") {
			t.Error(log.String())
		}
		killed(t, &o)
		j = open(t, o)
		if n := j.Stats().Commits; n != 303 {
			t.Errorf("torn %v: %d commits in the end", torn, n)
		}
		closeJournal(t, j)
	}
}

// TestDamageInTheMiddleSaysWhatIsWhole flips one byte in the middle of the log's newest file. Whoever opens the log, and whoever looks at a
// copy, is told which commits are whole, that those behind the damage may be, and how all of them come back. They do with the byte.
func TestDamageInTheMiddleSaysWhatIsWhole(t *testing.T) {
	o := testOptions(t)
	j, w := open(t, o), make(writer)
	w.write(t, j, 1, 40)
	last := j.lastCommit().Number
	closeJournal(t, j)
	blocks, err := filepath.Glob(filepath.Join(journalFolder(o.Folder), "jetstream", "*", "streams", o.streamName(), "msgs", "*"+blockSuffix))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("the log's files are %v, %v", blocks, err)
	}
	was, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(was)
	flipped[len(was)/2] ^= 4
	if err := os.WriteFile(blocks[0], flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	opening := func(open func() (*Journal, error)) error {
		j, err := open()
		if err == nil {
			closeJournal(t, j)
		}
		return err
	}
	for name, open := range map[string]func() (*Journal, error){
		"a start": func() (*Journal, error) { return Open(t.Context(), o) },
		"a look": func() (*Journal, error) {
			j, remove, err := OpenCopy(t.Context(), o)
			if err == nil {
				t.Cleanup(func() { _ = remove() })
			}
			return j, err
		},
	} {
		err := opening(open)
		wantCode(t, err, parley.CorruptLog)
		var bad, to, whole uint64
		if _, failed := fmt.Sscanf(parley.AsError(err).Message[strings.Index(parley.AsError(err).Message, "commit "):], "commit %d: it is missing or damaged, and those behind it, to %d, cannot be read", &bad, &to); failed != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, failed := fmt.Sscanf(parley.AsError(err).Hint, "commits up to %d are whole, and those behind it may be:", &whole); failed != nil || whole != bad-1 || to != last || bad < 2 || bad >= last {
			t.Errorf("%s: %v, %s", name, err, parley.AsError(err).Hint)
		}
	}
	if err := os.WriteFile(blocks[0], was, 0o600); err != nil {
		t.Fatal(err)
	}
	w.check(t, openEventually(t, o))
}

// TestLogFileThatIsTakenFromARunningNodeIsNoticed removes the log's newest file while the journal is open, cuts it short, or puts a copy in
// its place. The server goes on to write to the file, where that ended, and acknowledges: the journal acknowledges nothing of that, and writes nothing in
// its place. With the file all is there again. It goes on through a file that the server itself has put there, and through a new one.
func TestLogFileThatIsTakenFromARunningNodeIsNoticed(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".aside") },
		"replaced by a copy": func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.Remove(path), os.WriteFile(path, text, 0o600))
		},
		"cut to half": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, info.Size()/2)
		},
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"with its folder, for a copy with its times that another node has gone on in": func(path string) error { // cp -a, mv, mv, parley start
			folder := filepath.Dir(path)
			info, err := os.Stat(folder)
			text, unread := os.ReadFile(path)
			if err = errors.Join(err, unread); err != nil {
				return err
			}
			return errors.Join(os.Rename(folder, folder+".aside"), os.CopyFS(folder, os.DirFS(folder+".aside")),
				os.WriteFile(path, append(text, text...), 0o600), os.Chtimes(folder, info.ModTime(), info.ModTime()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := smallFiles(t)
			j, w := open(t, o), make(writer)
			for range 3 {
				w.fillBlock(t, j)
			}
			w.archive(t, j)
			w.write(t, j, 1, 3)
			blocks, err := filepath.Glob(filepath.Join(blockFolder(&j.o), "*"+blockSuffix))
			if err != nil || len(blocks) == 0 {
				t.Fatalf("the log's files are %v, %v", blocks, err)
			}
			slices.SortFunc(blocks, func(a, b string) int {
				if isBehind(filepath.Base(a), filepath.Base(b)) {
					return -1
				}
				return 1
			})
			newest := blocks[len(blocks)-1]
			past := time.Now().Add(-time.Minute) // nothing that was changed within a step of the disk's time is still to be looked at
			if err := os.Chtimes(filepath.Dir(newest), past, past); err != nil {
				t.Fatal(err)
			}
			w.write(t, j, 1, 1)
			acknowledged := w[1]
			if err := take(newest); err != nil {
				t.Fatal(err)
			}
			wantCode(t, await(t, j, j.Append(w.section(t, 1, 1))), parley.ReadOnly) // it is not known: the file may come back
			eventually.Holds(t, "the journal stops for good", func() bool { return parley.CodeOf(j.Reopen(t.Context())) == parley.CorruptLog })
			if err := j.Err(); !strings.Contains(err.Error(), "the file "+filepath.Base(newest)+" of the log was removed, replaced or cut short while the node runs") {
				t.Errorf("the error is %v", err)
			}
			if name != "moved" {
				return
			}
			closeJournal(t, j)
			if err := os.Rename(newest+".aside", newest); err != nil {
				t.Fatal(err)
			}
			if m, _ := openEventually(t, o).Mailbox(mailboxID(1)); m.Version < acknowledged {
				t.Errorf("once the file is back the log has %d events, and %d were acknowledged", m.Version, acknowledged)
			}
		})
	}
}
