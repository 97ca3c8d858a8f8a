package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"parley"
	"parley/persistence"
)

// settingsFile is a file of a coding agent's settings: what is entered, and what the file is with it.
type settingsFile struct {
	Path    string `json:"path"`
	Entered string `json:"entered"` // the part that is Parley's
	Changed bool   `json:"changed"` // it was not there yet, or another

	before, after []byte
	there         bool
	problem       error // why nothing can be entered
}

const (
	backupSuffix    = ".before-parley"
	maxSettingsFile = 16 << 20
)

// readSettings reads a file that may not be there yet. A link is followed: it stays one.
func readSettings(path string) (settingsFile, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	file := settingsFile{Path: path}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	if err != nil {
		return file, parley.Refuse(parley.InvalidArgument, "cannot read %s: %v", path, reason(err))
	}
	defer f.Close() //nolint:errcheck // only read from
	file.there = true
	file.before, err = readAtMost(f, path, maxSettingsFile)
	return file, err
}

// write puts the file in place as a whole, and keeps the one before.
func (f settingsFile) write() error {
	if !f.Changed {
		return nil
	}
	now, err := readSettings(f.Path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now.before, f.before) {
		return parley.Refuse(parley.InvalidArgument, "%s was changed by somebody else meanwhile", f.Path).WithHint("try again")
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(f.Path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil { //nolint:gosec // as the agents make them
		return unwritableSettings(f.Path, err)
	}
	if f.there {
		if err := putFile(f.Path+backupSuffix, f.before, mode); err != nil {
			return unwritableSettings(f.Path, err)
		}
	}
	if err := putFile(f.Path, f.after, mode); err != nil {
		return unwritableSettings(f.Path, err)
	}
	return nil
}

func unwritableSettings(path string, err error) error {
	return parley.Refuse(parley.InvalidArgument, "cannot write %s: %v", path, reason(err)).WithHint("--print shows what to enter")
}

// putFile writes a file beside its place and moves it there.
func putFile(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".parley-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is gone if all went well
	_, err = f.Write(text)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(f.Name(), path), persistence.SyncFolder(filepath.Dir(path)))
}
