package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley"
	"parley/internal/regular"
	"parley/persistence/archive"
)

// The server keeps an index of each stream beside its blocks, and writes it at other times than the blocks. After a
// crash it may list records that the blocks do not have. So the index is used only after a regular stop, which a file in
// the journal's folder records. After any other end a server makes it of a copy. For that it reads all blocks, and checks
// each record.
const (
	stoppedWell = "stopped"
	serverState = "index.db"
)

// rewriteNewest writes the ends of the files of the journal that were written last again, unchanged, and flushes them.
// After a failed flush the kernel may treat pages as written that are not on disk.
func rewriteNewest(o *Options) error {
	const tail, newest = 16 << 20, 4
	there, err := os.ReadDir(blockFolder(o))
	var files []fs.FileInfo
	for _, e := range there {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range files[:min(newest, len(files))] {
		err = errors.Join(err, onFile(filepath.Join(blockFolder(o), info.Name()), func(f *os.File) error {
			end, err := f.Seek(0, io.SeekEnd)
			if err != nil {
				return err
			}
			buf := make([]byte, min(end, tail))
			if _, err := f.ReadAt(buf, end-int64(len(buf))); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if _, err := f.WriteAt(buf, end-int64(len(buf))); err != nil {
				return err
			}
			return f.Sync()
		}))
	}
	if err == nil {
		err = SyncFolder(blockFolder(o))
	}
	if err != nil {
		return parley.Refuse(parley.ReadOnly, "the journal's files cannot be flushed: %v", err)
	}
	return nil
}

// stoppedInOrder reports whether the server was stopped regularly, and its files are as it left them.
func stoppedInOrder(o *Options) bool {
	was, err := regular.Read(filepath.Join(journalFolder(o.Folder), stoppedWell))
	if err != nil {
		return false
	}
	now, err := fingerprint(o)
	return err == nil && bytes.Equal(was, now)
}

// fingerprint returns a text that changes with the names and sizes of the server's files. It changes with their contents
// too, but for older blocks. The newest freshBytes of the journal are no older ones.
func fingerprint(o *Options) ([]byte, error) {
	root := filepath.Join(journalFolder(o.Folder), serverFolder)
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	var older []string // blocks of the folder at hand
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			older, err = blocksIn(path)
			left := int64(0)
			if path == blockFolder(o) {
				left = freshBytes
			}
			for n := 0; len(older) > 0 && (n < newestBlocks || left > 0); n++ {
				if info, err := os.Stat(older[len(older)-1]); err == nil {
					left -= info.Size()
				}
				older = older[:len(older)-1]
			}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(sum, "%s %d\n", strings.TrimPrefix(path, root), info.Size()) // it never fails
		if slices.Contains(older, path) {
			return nil
		}
		f, err := regular.Open(path, os.O_RDONLY)
		if err != nil {
			return err
		}
		_, err = io.Copy(sum, f)
		return errors.Join(err, f.Close())
	})
	return fmt.Appendf(nil, "%08x\n", sum.Sum32()), err
}

// trustState records that the server was stopped and that all its writes are on disk.
func trustState(o *Options) error {
	if err := o.flushBeside(); err != nil {
		return err
	}
	now, err := fingerprint(o)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(journalFolder(o.Folder), stoppedWell), now, 0o600)
}

// claim records that the server of a link will write: after a crash its files are not as an earlier one left them. Without
// it the end of the server is not recorded.
func claim(l *link) error {
	if l.server == nil {
		return nil
	}
	err := os.Remove(filepath.Join(journalFolder(l.o.Folder), stoppedWell))
	if err == nil {
		err = SyncFolder(journalFolder(l.o.Folder))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return readOnly("the journal's folder cannot be written", err)
	}
	l.claimed = true
	return nil
}

func onFile(name string, do func(f *os.File) error) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// MakeFolder creates a folder and its parents where they do not exist, and flushes their names to disk.
func MakeFolder(path string) error {
	err := os.Mkdir(path, 0o700)
	above := filepath.Dir(path)
	if errors.Is(err, fs.ErrNotExist) && above != path {
		if err := MakeFolder(above); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o700)
	}
	there := errors.Is(err, fs.ErrExist)
	if there {
		err = os.MkdirAll(path, 0o700) // it refuses a file
	}
	if err != nil {
		return err
	}
	if err = SyncFolder(above); there && errors.Is(err, fs.ErrPermission) {
		err = nil // its parents may be unreadable
	}
	return err
}

// SyncFolder flushes a folder. The name of a new file is on disk only after that.
func SyncFolder(path string) error { return archive.SyncFolder(path) }

// flushBeside flushes the state folder, and the files of an embedded server that are not blocks: its folders and the
// descriptions of its streams.
func (o *Options) flushBeside() error {
	if o.URL != "" {
		return nil
	}
	err := SyncFolder(o.Folder)
	if err == nil {
		err = filepath.WalkDir(journalFolder(o.Folder), func(path string, d os.DirEntry, err error) error {
			switch {
			case err == nil && d.IsDir():
				err = SyncFolder(path)
			case err == nil && d.Type().IsRegular() && filepath.Ext(path) != blockSuffix:
				err = onFile(path, (*os.File).Sync)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // the server replaces some now and then
			}
			return err
		})
	}
	if err != nil {
		return readOnly("the journal's folders cannot be flushed", err)
	}
	return nil
}
