//go:build !linux

package acp

import (
	"io/fs"
	"os"
	"path/filepath"
)

// placeOf returns the path of an open file: that to which its name leads now, if it is the file that is open.
func placeOf(f *os.File, name string) (string, error) {
	place, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	now, err := os.Lstat(place)
	if err != nil {
		return "", err
	}
	if open, err := f.Stat(); err != nil || !os.SameFile(now, open) {
		return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return place, nil
}
