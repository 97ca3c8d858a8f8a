package archive

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// OpenRegular opens a file that exists, with os.O_RDONLY or os.O_RDWR. Anything but a regular file is an error: a link,
// which could lead elsewhere, and a pipe, which would be waited for.
func OpenRegular(path string, flag int) (*os.File, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(named, opened) { // it was replaced in between
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadRegular reads a file as OpenRegular opens it.
func ReadRegular(path string) ([]byte, error) {
	f, err := OpenRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// CreateRegular creates an empty file of mode 0600 to write to. It replaces a file or a link of that name.
func CreateRegular(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

var errNotRegular = errors.New("it is not a regular file")
