package keys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"parley"
	"parley/persistence"
)

// othersMay are the permissions of a file's group and of everybody else.
const othersMay fs.FileMode = 0o077

// OpenToOthers reports whether a file's mode lets others than its owner use it. On Windows it reports false: access
// lists decide there, which are not checked.
func OpenToOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&othersMay != 0
}

// SecureFolder creates the state folder if it does not exist, readable by its owner alone. A folder with nothing of a
// node in it but a lock or a log is made so too. Any other that others can read, or a key that they can read, is
// refused with NOT_PERMITTED: it may have been read already.
func SecureFolder(folder string) error {
	if err := persistence.MakeFolder(folder); err != nil {
		return err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if OpenToOthers(info) {
		isNew, err := isNewFolder(folder)
		if err != nil {
			return err
		}
		if !isNew {
			return openToOthers("the state folder "+folder, info.Mode().Perm(), "chmod 700 "+folder)
		}
		if err := os.Chmod(folder, 0o700); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, FileName)
	info, err = os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case OpenToOthers(info):
		return openToOthers("the node's key "+path, info.Mode().Perm(), "chmod 600 "+path)
	}
	return nil
}

// isNewFolder reports whether a folder has no files but those that exist before a node's key does.
func isNewFolder(folder string) (bool, error) {
	there, err := os.ReadDir(folder)
	if err != nil {
		return false, err
	}
	for _, e := range there {
		if !strings.HasPrefix(e.Name(), "parley.") {
			return false, nil
		}
	}
	return true, nil
}

func openToOthers(what string, mode fs.FileMode, remedy string) error {
	return parley.Refuse(parley.NotPermitted, "%s has mode %04o: others on this machine can read it, and be this node", what, mode).
		WithHint("%s; if others may have used that: a new folder, which is a new node", remedy)
}
