package setup

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parley"
	"parley/cmd/parley/terminal"
	"parley/persistence"
)

// File is a file of a coding agent's settings, with the part that is entered, or taken out.
type File struct {
	Path    string `json:"path"`
	Entered string `json:"entered,omitempty"` // the part that is Parley's; "" where it is taken out
	Changed bool   `json:"changed"`           // that part is new, differs, or is taken out
	Gone    bool   `json:"gone,omitempty"`    // nothing else was in the file, which is removed

	before, after []byte // after it the mark of bom
	bom           []byte // the byte order mark that the file begins with
	there         bool
	keep          bool  // before has nothing of Parley's, and is kept beside the file
	restored      bool  // after is the text that was kept
	problem       error // that keeps anything from being entered
}

// BackupSuffix ends the name of the copy that is kept of a file as it was before the first entry.
const BackupSuffix = ".before-parley"

const (
	maxFile  = 16 << 20
	maxLinks = 20 // from a path to a file
)

var byteOrderMark = []byte("\ufeff")

// settingsFile reads a file of settings, which may not exist yet. It follows a link, which stays a link; a project's has to
// stay in the project. One that cannot be read has a problem where entries are taken out: they leave the others.
func (s settings) settingsFile(path string) (File, error) {
	f, err := s.readFile(path)
	if err != nil && s.Remove {
		f.problem, err = err, nil
	}
	return f, err
}

func (s settings) readFile(path string) (File, error) {
	real := resolve(path, maxLinks)
	if s.Project {
		root := resolve(s.root(), maxLinks)
		if inside, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(inside) {
			return File{Path: path}, parley.Refuse(parley.InvalidArgument, "%s is left alone: it leads out of this project, to %s", path, real).
				WithHint("remove the link, or enter it for all folders with --user")
		}
	}
	return readSettings(real)
}

// resolve returns where a path leads, also where the file, or a link's target, does not exist yet.
func resolve(path string, links int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if target, err := os.Readlink(path); err == nil && links > 0 {
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		return resolve(target, links-1)
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolve(parent, links), filepath.Base(path))
	}
	return path
}

func readSettings(path string) (File, error) {
	file := File{Path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file, nil
	case err == nil && !info.Mode().IsRegular(): // to open a pipe would wait
		return file, parley.Refuse(parley.InvalidArgument, "cannot read %s: it is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return file, parley.Refuse(parley.InvalidArgument, "cannot read %s: %v", path, terminal.Reason(err))
	}
	defer f.Close() //nolint:errcheck // only read from
	file.there = true
	file.before, err = terminal.Read(f, path, maxFile)
	if text, marked := bytes.CutPrefix(file.before, byteOrderMark); marked {
		file.before, file.bom = text, byteOrderMark
	}
	return file, err
}

// becomes sets the text of the file, which was that without anything of Parley's before if plain is true.
func (f *File) becomes(after []byte, plain bool) {
	f.after, f.keep = after, plain
	f.Changed = !f.there || !bytes.Equal(f.before, after)
}

// withoutEntries sets the text of the file from which the entries are taken out. same reports whether a text that was kept
// differs from it in the entries only: it then comes back to the byte. A file that setup has made, with nothing else in
// it, is removed.
func (f *File) withoutEntries(after []byte, empty bool, same func(kept []byte) bool) {
	f.after, f.Changed = after, f.there && !bytes.Equal(f.before, after)
	if !f.Changed {
		return
	}
	kept, isKept := f.kept()
	switch {
	case isKept && same(kept.before):
		f.after, f.bom, f.restored = kept.before, kept.bom, true
	case empty && !isKept:
		f.Gone = true
	}
}

// kept returns the text that was kept before the first entry.
func (f File) kept() (File, bool) {
	path := f.Path + BackupSuffix
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return File{}, false
	}
	kept, err := readSettings(path)
	return kept, err == nil
}

// write replaces the file as a whole, and keeps the one from before the first entry beside it.
func (f File) write() error {
	if !f.Changed {
		return nil
	}
	if f.Gone {
		return f.remove()
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(f.Path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil { //nolint:gosec // as the agents make them
		return unwritableSettings(f.Path, err)
	}
	if f.there && f.keep {
		if err := WriteFile(f.Path+BackupSuffix, append(bytes.Clone(f.bom), f.before...), mode); err != nil {
			return unwritableSettings(f.Path, err)
		}
	}
	if err := writeFile(f.Path, append(bytes.Clone(f.bom), f.after...), mode, f.unchanged); err != nil {
		if parley.CodeOf(err) != parley.Internal {
			return err
		}
		return unwritableSettings(f.Path, err)
	}
	if f.restored {
		_ = os.Remove(f.Path + BackupSuffix) // it is the file itself now
	}
	return nil
}

// remove removes the file, and the folder if setup left nothing else in it.
func (f File) remove() error {
	if err := f.unchanged(); err != nil {
		return err
	}
	if err := os.Remove(f.Path); err != nil {
		return unwritableSettings(f.Path, err)
	}
	if folder := filepath.Dir(f.Path); strings.HasPrefix(filepath.Base(folder), ".") {
		_ = os.Remove(folder) // it stays if anything is in it
	}
	return nil
}

// unchanged refuses a file that differs from the one that was read.
func (f File) unchanged() error {
	now, err := readSettings(f.Path)
	if err == nil && (now.there != f.there || !bytes.Equal(now.before, f.before)) {
		err = parley.Refuse(parley.InvalidArgument, "%s was changed by somebody else meanwhile", f.Path).WithHint("try again")
	}
	return err
}

func unwritableSettings(path string, err error) error {
	return parley.Refuse(parley.InvalidArgument, "cannot write %s: %v", path, terminal.Reason(err)).WithHint("--print shows what to enter")
}

// WriteFile writes a file beside its place and moves it there: readers find the old file or the whole new one.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	return writeFile(path, text, mode, func() error { return nil })
}

// writeFile writes a file as WriteFile does, unless the check at the last moment fails.
func writeFile(path string, text []byte, mode fs.FileMode, check func() error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".parley-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is gone if all went well
	_, err = f.Write(text)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	return errors.Join(os.Rename(f.Name(), path), persistence.SyncFolder(filepath.Dir(path)))
}
