package persistence

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
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
