package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"parley/internal/regular"
	"parley/persistence/archive"
)

// folder is a store in a folder, which is made when it is needed.
type folder string

// String implements Store.
func (f folder) String() string { return string(f) }

func (f folder) path(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", fs.ErrInvalid
	}
	return filepath.Join(string(f), filepath.FromSlash(name)), nil
}

// partial begins the names of files that are being written.
const partial = ".partial-"

// Put implements Store. The file and its name are on disk when it returns.
func (f folder) Put(ctx context.Context, name string, content io.ReaderAt, size int64) error {
	to, err := f.path(name)
	if err != nil {
		return err
	}
	in := filepath.Dir(to)
	if err := os.MkdirAll(in, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(in, partial+"*")
	if err != nil {
		return err
	}
	err = bounded(ctx, temp, io.NewSectionReader(content, 0, size), size)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), to)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return err
	}
	for at := in; ; at = filepath.Dir(at) {
		if err := archive.SyncFolder(at); err != nil {
			return err
		}
		if at == string(f) || at == filepath.Dir(at) {
			return nil
		}
	}
}

// Get implements Store.
func (f folder) Get(ctx context.Context, name string, limit int64, w io.Writer) error {
	from, err := f.path(name)
	if err != nil {
		return err
	}
	file, err := regular.Open(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return bounded(ctx, w, file, limit)
}

// Size implements Store.
func (f folder) Size(_ context.Context, name string) (int64, error) {
	at, err := f.path(name)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(at)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// List implements Store.
func (f folder) List(ctx context.Context, under string) ([]string, error) {
	at, err := f.path(under)
	if err != nil {
		return nil, err
	}
	list, err := os.ReadDir(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range list {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), partial) {
			names = append(names, path.Join(under, e.Name()))
		}
	}
	return names, ctx.Err()
}
