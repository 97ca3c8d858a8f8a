package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parley"
	"parley/internal/regular"
)

// Store keeps files by their names. A name has parts between slashes. A file that is not there is fs.ErrNotExist.
type Store interface {
	// Put writes a file whole or not at all. It may replace a file of the name.
	Put(ctx context.Context, name string, content io.ReaderAt, size int64) error

	// Get writes the content of a file to w, and no more than limit bytes of it.
	Get(ctx context.Context, name string, limit int64, w io.Writer) error

	// Size returns the size of a file.
	Size(ctx context.Context, name string) (int64, error)

	// List returns the names that begin with a folder and a slash, sorted.
	List(ctx context.Context, folder string) ([]string, error)

	// String returns the destination that Open reads.
	String() string
}

// s3Scheme begins a destination in a bucket.
const s3Scheme = "s3://"

// Open returns the store at a destination: an absolute path of a folder, or s3://BUCKET/PREFIX. It does not reach for
// it.
func Open(destination string) (Store, error) {
	switch rest, isS3 := strings.CutPrefix(destination, s3Scheme); {
	case isS3:
		return openS3(rest)
	case strings.Contains(destination, "://"):
		return nil, parley.Refuse(parley.InvalidArgument, "%.200q is no place for an archive", destination).
			WithHint("give a folder, or s3://BUCKET/PREFIX")
	case !filepath.IsAbs(destination):
		return nil, parley.Refuse(parley.InvalidArgument, "the folder %.200q is not absolute", destination)
	}
	return folder(filepath.Clean(destination)), nil
}

// Copy copies a file to a store, reads it back and compares it. A file of the name that is equal is left as it is.
// Another one is refused with INVALID_ARGUMENT.
func Copy(ctx context.Context, to Store, name string, from io.ReaderAt, size int64) error {
	want, err := digest(from, size)
	if err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	switch same, err := has(ctx, to, name, size, want); {
	case same:
		return nil
	case err == nil:
		return parley.Refuse(parley.InvalidArgument, "%s has another file %s", to, name).
			WithHint("it is of another history of the node, or damaged: choose another place, or remove it")
	case !errors.Is(err, fs.ErrNotExist):
		return failed(ctx, to, err)
	}
	if err := to.Put(ctx, name, from, size); err != nil {
		return failed(ctx, to, err)
	}
	switch same, err := has(ctx, to, name, size, want); {
	case err != nil:
		return failed(ctx, to, err)
	case !same:
		return failed(ctx, to, fmt.Errorf("%s is not there as it was written", name))
	}
	return nil
}

// Fetch copies a file from a store to a new file at a path, and flushes it. It accepts at most limit bytes. It does not
// check the content.
func Fetch(ctx context.Context, from Store, name, path string, limit int64) error {
	f, err := regular.Create(path)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	out := &writer{Writer: f}
	err = from.Get(ctx, name, limit, out)
	switch {
	case out.err != nil:
		err = fmt.Errorf("fetch %s: %w", name, out.err)
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%s: %w", from, err)
	case err != nil:
		err = failed(ctx, from, err)
	default:
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// writer keeps the error of a writer, to tell it from one of the store.
type writer struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (w *writer) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.err = err
	return n, err
}

// failed returns the error of a store that could not be used.
func failed(ctx context.Context, s Store, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return parley.Refuse(parley.NodeUnreachable, "the archive at %s cannot be used: %.1000v", s, err)
}

// digest returns the SHA-256 of a file.
func digest(f io.ReaderAt, size int64) ([]byte, error) {
	h := sha256.New()
	if _, err := io.CopyN(h, io.NewSectionReader(f, 0, size), size); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// errTooLong reports a file that is longer than the reader accepts.
var errTooLong = errors.New("the file is longer than it should be")

// has reports whether a store has a file with a content. It is an error if it has no such file.
func has(ctx context.Context, s Store, name string, size int64, want []byte) (bool, error) {
	switch there, err := s.Size(ctx, name); {
	case err != nil:
		return false, err
	case there != size:
		return false, nil
	}
	sum := summer{Hash: sha256.New()}
	if err := s.Get(ctx, name, size, &sum); err != nil && !errors.Is(err, errTooLong) {
		return false, err
	}
	return sum.size == size && bytes.Equal(sum.Sum(nil), want), nil
}

// summer computes the digest and the size of what is written to it.
type summer struct {
	hash.Hash
	size int64
}

// Write implements io.Writer.
func (s *summer) Write(b []byte) (int, error) {
	s.size += int64(len(b))
	return s.Hash.Write(b)
}

// bounded copies at most limit bytes, and fails with errTooLong if there are more.
func bounded(ctx context.Context, w io.Writer, r io.Reader, limit int64) error {
	n, err := io.Copy(w, io.LimitReader(stopping{ctx, r}, limit))
	if err != nil || n < limit {
		return err
	}
	var more [1]byte
	if n, _ := io.ReadFull(stopping{ctx, r}, more[:]); n > 0 {
		return errTooLong
	}
	return nil
}

// stopping is a reader that ends with its context.
type stopping struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (s stopping) Read(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.Reader.Read(b)
}
