package keys

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"parley"
)

func TestReadableFolderOrKeyIsRefused(t *testing.T) {
	open := func(folder string) error {
		_, err := LoadOrCreate(folder)
		return err
	}
	mode := func(path string) os.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	chmod := func(path string, to os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, to); err != nil {
			t.Fatal(err)
		}
	}
	made := filepath.Join(t.TempDir(), "made", "state")
	empty, other := t.TempDir(), t.TempDir()
	chmod(empty, 0o755)
	if err := errors.Join(open(made), open(empty)); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(empty, FileName)
	if got := []os.FileMode{mode(made), mode(empty), mode(key)}; got[0] != 0o700 || got[1] != 0o700 || got[2] != 0o600 {
		t.Errorf("the modes are %o", got)
	}
	for _, m := range []os.FileMode{0o755, 0o750, 0o711, 0o701} {
		chmod(empty, m)
		if err := open(empty); parley.CodeOf(err) != parley.NotPermitted || parley.AsError(err).Hint == "" {
			t.Errorf("a folder of mode %o: %v", m, err)
		}
	}
	chmod(empty, 0o700)
	for _, m := range []os.FileMode{0o644, 0o640, 0o604} {
		chmod(key, m)
		if err := open(empty); parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("a key of mode %o: %v", m, err)
		}
	}
	chmod(key, 0o600)
	if err := open(empty); err != nil {
		t.Error(err)
	}
	chmod(other, 0o755) // a folder with other files keeps its mode
	if err := os.WriteFile(filepath.Join(other, "notes.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := open(other); parley.CodeOf(err) != parley.NotPermitted || mode(other) != 0o755 {
		t.Errorf("a folder of somebody's: %v, mode %o", err, mode(other))
	}
}
