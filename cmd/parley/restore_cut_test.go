//go:build unix

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"parley/actors"
	"parley/actors/keys"
	"parley/actors/view"
	"parley/persistence/disktest"
)

// restoreCuts is the number of power failures that TestPowerCutsOfARestore makes.
var restoreCuts = flag.Int("cuts", 12, "power failures of TestPowerCutsOfARestore")

// TestPowerCutsOfARestore restores a backup on a disk that records each operation. What a power failure leaves is no node,
// and is refused or empty, or is the whole node with its programs held. Once the restore has ended it is the node.
func TestPowerCutsOfARestore(t *testing.T) {
	from := t.TempDir()
	n, err := actors.Open(t.Context(), actors.Options{Folder: from})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := n.Host().Send(t.Context(), "@self", fmt.Sprint("note ", i)); err != nil {
			t.Fatal(err)
		}
	}
	id := n.ID()
	var journal bytes.Buffer
	err = n.Backup(t.Context(), &journal)
	if err := errors.Join(err, n.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	seed, err := os.ReadFile(filepath.Join(from, keys.FileName))
	if err != nil {
		t.Fatal(err)
	}
	d := disktest.Mount(t)
	d.Record()
	folder := filepath.Join(d.Path(), "state")
	if err := keys.SecureFolder(folder); err != nil { // as the command does
		t.Fatal(err)
	}
	env := &environment{options: options{state: stateFolder(folder)}}
	if err := restoreOffline(t.Context(), env, seed, &journal); err != nil {
		t.Fatal(err)
	}
	acknowledged := d.Position()
	if err := os.WriteFile(filepath.Join(d.Path(), "after"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	record := d.Recorded()
	whole := 0
	for nth := range *restoreCuts {
		random := rand.New(rand.NewPCG(23, uint64(nth)))
		at := random.IntN(record.Len() + 1)
		if nth%4 == 0 { // at the end, where the key appears
			at = record.Len() - nth%12
		}
		left := filepath.Join(t.TempDir(), "cut")
		how, err := record.Cut(at, random, left)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(left, "state")
		_, err = os.Stat(filepath.Join(folder, keys.FileName))
		switch {
		case errors.Is(err, fs.ErrNotExist) && at >= acknowledged:
			t.Errorf("cut %d, %s: the restored node is gone", nth, how)
		case errors.Is(err, fs.ErrNotExist): // no node
		case err != nil:
			t.Fatal(err)
		default:
			whole++
			if err := checkRestored(t, folder, id.String()); err != nil {
				t.Errorf("cut %d, %s: %v", nth, how, err)
			}
		}
		if err := os.RemoveAll(left); err != nil {
			t.Fatal(err)
		}
	}
	if whole == 0 {
		t.Error("no cut has left a node")
	}
	t.Logf("%d of %d cuts of %d operations have left a node", whole, *restoreCuts, record.Len())
}

// checkRestored checks that a folder has the whole node, which starts no programs.
func checkRestored(t *testing.T, folder, id string) error {
	t.Helper()
	if err := os.Chmod(folder, 0o700); err != nil {
		return err
	}
	n, err := actors.Open(t.Context(), actors.Options{Folder: folder})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer n.Close(t.Context()) //nolint:errcheck // the folder is removed
	if n.ID().String() != id {
		return fmt.Errorf("it is %s", n.ID())
	}
	if _, err := n.Verify(t.Context()); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "programs-held")); err != nil {
		return fmt.Errorf("its programs are not held: %w", err)
	}
	in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{All: true})
	if err == nil && len(in.Messages) < 5 {
		err = fmt.Errorf("it has %d messages", len(in.Messages))
	}
	return err
}
