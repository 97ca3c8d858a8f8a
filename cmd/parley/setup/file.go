package setup

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"parley"
	"parley/cmd/parley/terminal"
	"parley/persistence"
)

// File is a file of a coding agent's settings, with the part that is entered.
type File struct {
	Path    string `json:"path"`
	Entered string `json:"entered"` // the part that is Parley's
	Changed bool   `json:"changed"` // that part is new, or differs

	before, after []byte
	there         bool
	problem       error // that keeps anything from being entered
}

// BackupSuffix ends the name of the copy that is kept of a file before it is changed.
const BackupSuffix = ".before-parley"

const maxFile = 16 << 20

// readSettings reads a file that may not exist yet. It follows a link, which stays a link.
func readSettings(path string) (File, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	file := File{Path: path}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	if err != nil {
		return file, parley.Refuse(parley.InvalidArgument, "cannot read %s: %v", path, terminal.Reason(err))
	}
	defer f.Close() //nolint:errcheck // only read from
	file.there = true
	file.before, err = terminal.Read(f, path, maxFile)
	return file, err
}

// write replaces the file as a whole, and keeps the former one beside it.
func (f File) write() error {
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
		if err := WriteFile(f.Path+BackupSuffix, f.before, mode); err != nil {
			return unwritableSettings(f.Path, err)
		}
	}
	if err := WriteFile(f.Path, f.after, mode); err != nil {
		return unwritableSettings(f.Path, err)
	}
	return nil
}

func unwritableSettings(path string, err error) error {
	return parley.Refuse(parley.InvalidArgument, "cannot write %s: %v", path, terminal.Reason(err)).WithHint("--print shows what to enter")
}

// WriteFile writes a file beside its place and moves it there: readers find the old file or the whole new one.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
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
