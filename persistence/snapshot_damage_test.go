package persistence

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestJournalOpensWithDamagedSnapshots damages the snapshot store in many places. The journal still opens with all its events,
// stores new snapshots, and opens quickly the next time.
func TestJournalOpensWithDamagedSnapshots(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	for nth := range 3 {
		w.write(t, j, nth, 5)
		if err := j.SaveSnapshot(t.Context(), mailboxID(nth), 4, make([]byte, 300_000)); err != nil {
			t.Fatal(err)
		}
	}
	closeJournal(t, j)
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	const blocks = "1.blk"
	damages := map[string]func(t *testing.T, folder string){
		"emptied": func(t *testing.T, folder string) {
			rewrite(t, filepath.Join(folder, blocks), func([]byte) []byte { return nil })
		},
		"removed": func(t *testing.T, folder string) {
			if err := os.Remove(filepath.Join(folder, blocks)); err != nil {
				t.Fatal(err)
			}
		},
		"a number changed": func(t *testing.T, folder string) {
			rewrite(t, filepath.Join(folder, blocks), func(b []byte) []byte { b[4+5] ^= 0x55; return b })
		},
		"description emptied": func(t *testing.T, folder string) {
			rewrite(t, filepath.Join(folder, "..", "meta.inf"), func([]byte) []byte { return nil })
		},
	}
	for name, share := range map[string]float64{"cut early": 0.2, "cut in the middle": 0.5, "cut late": 0.8, "cut at the end": 0.999} {
		damages[name] = func(t *testing.T, folder string) {
			rewrite(t, filepath.Join(folder, blocks), func(b []byte) []byte { return b[:int(float64(len(b))*share)] })
		}
		damages["flipped as "+name] = func(t *testing.T, folder string) {
			rewrite(t, filepath.Join(folder, blocks), func(b []byte) []byte { b[int(float64(len(b))*share)] ^= 1; return b })
		}
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			d := copyJournal(t, o)
			damage(t, blockFolderOf(&d, "OBJ_"+d.bucketName()))
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				began := time.Now()
				j, err := Open(ctx, d)
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > 2*listing {
					t.Errorf("opening took %s", took)
				}
				w.check(t, j)
				if err := j.SaveSnapshot(t.Context(), mailboxID(1), 5, []byte("state")); err != nil {
					t.Error(err)
				}
				closeJournal(t, j)
			}
		})
	}
}

// TestListingEndsWithoutAnAnswer lists the snapshots of a server that never answers, as one with a damaged store may do.
func TestListingEndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	server, err := natsserver.NewServer(&natsserver.Options{DontListen: true, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	defer server.Shutdown()
	conn, err := nats.Connect("", nats.InProcessServer(server))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	asked, err := conn.SubscribeSync("$JS.API.>") // without it the server says at once that nobody answers
	if err != nil {
		t.Fatal(err)
	}
	l := &link{o: &Options{listWithin: 20 * time.Millisecond}}
	if l.js, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if subjects, err := l.listSubjects(ctx, "bucket"); err == nil || ctx.Err() != nil {
		t.Errorf("the listing has %v, and ends with %v only with the start", subjects, err)
	}
	if n, _, err := asked.Pending(); err != nil || n == 0 {
		t.Errorf("the server was asked %d times, %v", n, err)
	}
}

// TestDamagedIndexOnlyCostsTime damages the file of the index. The journal opens with all that is in it, and has stored
// an index that can be used at its next close.
func TestDamagedIndexOnlyCostsTime(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	for nth := range 3 {
		s := w.section(t, nth, 2)
		s.Note = "a note"
		if err := await(t, j, j.Append(s)); err != nil {
			t.Fatal(err)
		}
	}
	closeJournal(t, j)
	path := func(folder string) string { return filepath.Join(folder, indexFile) }
	whole, err := os.ReadFile(path(o.Folder))
	if err != nil {
		t.Fatal(err)
	}
	younger := copyJournal(t, o)
	j = open(t, younger)
	w2 := maps.Clone(w)
	w2.write(t, j, 1, 1)
	closeJournal(t, j)
	newer, err := os.ReadFile(path(younger.Folder))
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(path string) error{
		"removed": os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"cut":     func(path string) error { return os.Truncate(path, int64(len(whole)/2)) },
		"flipped": func(path string) error {
			b := bytes.Clone(whole)
			b[len(b)/2] ^= 1
			return os.WriteFile(path, b, 0o600)
		},
		"newer than the log": func(path string) error { return os.WriteFile(path, newer, 0o600) },
		"of another version": func(path string) error { return os.WriteFile(path, []byte("PLYINDX\x01"), 0o600) },
		"a folder":           func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			d := copyJournal(t, o)
			if err := damage(path(d.Folder)); err != nil {
				t.Fatal(err)
			}
			j := open(t, d)
			w.check(t, j)
			if m, _ := j.Mailbox(mailboxID(1)); m.Note != "a note" {
				t.Errorf("the note is %q", m.Note)
			}
			closeJournal(t, j)
			j = open(t, d)
			w.check(t, j)
			if n := j.DiscardedSnapshots(); n != 0 && name != "a folder" {
				t.Errorf("%d were discarded", n)
			}
		})
	}
}

// TestIndexOfSnapshotsIsUsedAfterAStop holds that the server reads the store of snapshots anew only after a kill or damage. It takes
// seconds once many snapshots were replaced.
func TestIndexOfSnapshotsIsUsedAfterAStop(t *testing.T) {
	o := testOptions(t)
	j := open(t, o)
	w := make(writer)
	w.write(t, j, 1, 5)
	for range 3 {
		if err := j.SaveSnapshot(t.Context(), mailboxID(1), 4, make([]byte, 300_000)); err != nil {
			t.Fatal(err)
		}
	}
	closeJournal(t, j)
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		damage func(o *Options, folder string)
		kept   bool
	}{
		"stopped": {func(*Options, string) {}, true},
		"killed":  {func(o *Options, _ string) { killed(t, o) }, false},
		"cut": {func(_ *Options, folder string) {
			rewrite(t, filepath.Join(folder, "1.blk"), func(b []byte) []byte { return b[:len(b)-9] })
		}, false},
		"a far jump": {func(_ *Options, folder string) {
			rewrite(t, filepath.Join(folder, "1.blk"), func(b []byte) []byte { b[4+5] ^= 0x55; return b })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := copyJournal(t, o)
			folder := blockFolderOf(&d, streamOf(d.bucketName()))
			x.damage(&d, folder)
			if _, err := lookFirst(t.Context(), d, Mark{}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(folder, serverState)); (err == nil) != x.kept {
				t.Errorf("the index: %v", err)
			}
		})
	}
}
