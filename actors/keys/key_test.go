package keys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"parley"
)

func TestKeyOfFolderIsKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	if _, err := Load(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before there is a key: %v", err)
	}
	made, err := LoadOrCreate(folder)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadOrCreate(folder)
	if err != nil {
		t.Fatal(err)
	}
	first, err := NodeOf(made)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := NodeOf(again); err != nil || second != first {
		t.Errorf("node %v became %v, %v", first, second, err)
	}
}

func TestJournalWithoutKeyIsRefused(t *testing.T) {
	folder := t.TempDir()
	if err := errors.Join(os.Chmod(folder, 0o700), os.Mkdir(filepath.Join(folder, "journal"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadOrCreate(folder); parley.CodeOf(err) != parley.CorruptLog {
		t.Errorf("a journal without its key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, FileName), []byte("SAAA"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(folder); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("a key that is none: %v", err)
	}
}
