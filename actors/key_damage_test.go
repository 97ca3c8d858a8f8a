package actors

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/actors/keys"
	"parley/capabilities"
	"parley/persistence"
)

// places is the number of places of each file that TestDamageOfKeyAndBackup damages, each by a flip and by a cut.
var places = flag.Int("places", 4, "places of each file that TestDamageOfKeyAndBackup damages; 0 is every byte")

// eachDamage calls fn with a file flipped and cut at several places, and puts the file back.
func eachDamage(t *testing.T, path string, fn func(what string)) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	step := 1
	if *places > 0 {
		step = len(whole)/(*places) + 1
	}
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for at := step / 3; at < len(whole); at += step {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x10
		write(bad)
		fn(fmt.Sprintf("a flip at %d of %d", at, len(whole)))
		write(whole[:at])
		fn(fmt.Sprintf("a cut at %d of %d", at, len(whole)))
	}
	write(whole)
}

// TestDamageOfKeyAndBackup flips and cuts the key of a node and the parts of its backup. A node with a damaged key does not
// start as another. A damaged part is named, and nothing of it is restored.
func TestDamageOfKeyAndBackup(t *testing.T) {
	o := Options{Folder: t.TempDir()}
	backup := filepath.Join(t.TempDir(), "backup")
	var parts []persistence.Part
	var id capabilities.NodeID
	for i := range 2 {
		n, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		id = n.ID()
		send(t, n.Host(), "@self", fmt.Sprint("note ", i))
		part, err := persistence.AddPart(backup, id, func(after persistence.Mark, to io.Writer) error { return n.BackupAfter(t.Context(), after, to) })
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
		closeNode(t, n)
	}
	eachDamage(t, filepath.Join(o.Folder, keys.FileName), func(what string) {
		n, err := Open(t.Context(), o)
		if err == nil {
			if n.ID() != id {
				t.Errorf("the key with %s: it is another node", what)
			}
			closeNode(t, n)
		} else if code := parley.CodeOf(err); code != parley.InvalidArgument && code != parley.NotPermitted || !strings.Contains(err.Error(), keys.FileName) {
			t.Errorf("the key with %s: %v", what, err)
		}
	})
	for i, part := range parts {
		eachDamage(t, part.Path, func(what string) {
			err := restoreParts(t, backup, id)
			if code := parley.CodeOf(err); code != parley.CorruptLog && code != parley.InvalidArgument || !names(err, part) {
				t.Errorf("part %d with %s: %v", i+1, what, err)
			}
		})
	}
	if err := restoreParts(t, backup, id); err != nil {
		t.Errorf("the whole backup: %v", err)
	}
}

// names reports whether an error has the file of a part, or one of its commits.
func names(err error, part persistence.Part) bool {
	found := strings.Contains(err.Error(), filepath.Base(part.Path))
	for n := part.After.Number; n <= part.Last.Number+1; n++ { // or a neighbour of them
		found = found || strings.Contains(err.Error(), fmt.Sprint("commit ", n))
	}
	return found
}

// restoreParts restores the parts in a folder into a new one.
func restoreParts(t *testing.T, backup string, id capabilities.NodeID) error {
	t.Helper()
	parts, err := persistence.Parts(backup, id)
	if err != nil {
		return err
	}
	journal, err := persistence.OpenParts(parts, id)
	if err != nil {
		return err
	}
	err = persistence.Restore(context.Background(), persistence.Options{Folder: t.TempDir(), Node: id}, journal)
	return errors.Join(err, journal.Close())
}
