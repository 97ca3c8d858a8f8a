package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a file that exists, with os.O_RDONLY or os.O_RDWR. Anything but a regular file is an error, a link too.
func Open(path string, flag int) (*os.File, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	return open(path, flag, named)
}

func open(path string, flag int, named fs.FileInfo) (*os.File, error) {
	if !named.Mode().IsRegular() {
		return nil, notRegular(path)
	}
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(named, opened) { // it was replaced in between
		err = notRegular(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenOrCreate opens a file to read and to write, as Open does, and creates one of mode 0600 where there is nothing.
func OpenOrCreate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // follows no link
	if errors.Is(err, fs.ErrExist) {
		return Open(path, os.O_RDWR)
	}
	return f, err
}

// Read reads a file as Open opens it.
func Read(path string) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return readAll(f)
}

// ReadLinked reads a file that may be a link to one, such as one of a person's settings.
func ReadLinked(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f, err := open(path, os.O_RDONLY, info)
	if err != nil {
		return nil, err
	}
	return readAll(f)
}

func readAll(f *os.File) ([]byte, error) {
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// Create creates an empty file of mode 0600 to write to. It replaces a file or a link of that name.
func Create(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// ErrNot says that there is something else than a file.
var ErrNot = errors.New("it is not a regular file")

func notRegular(path string) error { return &fs.PathError{Op: "open", Path: path, Err: ErrNot} }
