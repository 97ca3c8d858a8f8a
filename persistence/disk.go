package persistence

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"parley"
)

// newestBlocks is how many of the stream's files can hold what was written last.
const newestBlocks = 2

// flushNewest flushes the files that were written last. A process that ended between the write and the
// flush of a commit leaves one that is read after the start, and answered by, as if it were on disk.
func flushNewest(o *Options) error {
	return eachNewest(o, func(f *os.File) error { return f.Sync() })
}

// rewriteNewest writes the ends of the files that were written last again, as they are, and flushes them.
// After a flush that failed the kernel may take pages for written that are not on disk.
func rewriteNewest(o *Options) error {
	const tail = 16 << 20
	return eachNewest(o, func(f *os.File) error {
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
	})
}

func eachNewest(o *Options, do func(f *os.File) error) error {
	names, err := blocksIn(blockFolder(o))
	if err != nil {
		return err
	}
	for _, name := range names[max(0, len(names)-newestBlocks):] {
		if err := onFile(name, do); err != nil {
			return parley.Refuse(parley.ReadOnly, "the journal's files cannot be flushed: %v", err)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return syncFolders(blockFolder(o))
}

const blockSuffix = ".blk"

// blocksIn gives the paths of the block files in a folder, oldest first.
func blocksIn(folder string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*"+blockSuffix))
	if err != nil {
		return nil, fmt.Errorf("list the journal's files: %w", err)
	}
	slices.SortFunc(names, func(a, b string) int { // 9.blk is before 10.blk
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return names, nil
}

func onFile(name string, do func(f *os.File) error) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// MakeFolder makes a folder, and those above it, where there are none, and sees to it that their names are on disk.
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
		err = os.MkdirAll(path, 0o700) // refuses what is no folder
	}
	if err != nil {
		return err
	}
	if err = SyncFolder(above); there && errors.Is(err, fs.ErrPermission) {
		err = nil // whoever made it may read what is above it
	}
	return err
}

// SyncFolder flushes a folder: the name of a new file in it is on disk only then. Where the system cannot flush folders
// it does nothing.
func SyncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = errors.Join(d.Sync(), d.Close())
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// syncFolders flushes the state folder and all folders of an embedded server, whose names it made without that.
func (o *Options) syncFolders() error {
	if o.URL != "" {
		return nil
	}
	if err := SyncFolder(o.Folder); err != nil {
		return readOnly("the state folder cannot be flushed", err)
	}
	return syncFolders(journalFolder(o.Folder))
}

// syncFolders flushes every folder under root.
func syncFolders(root string) error {
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return SyncFolder(path)
	})
	if err != nil {
		return readOnly("the journal's folders cannot be flushed", err)
	}
	return nil
}

// blockNames sees to it that the blocks of a stream of the embedded server are in their folder on disk. The server
// flushes what it writes in a block, and not the folder when it begins one.
type blockNames struct {
	folder string

	mu   sync.Mutex
	next int // the number of the block that is to come; 0 before the first look
}

// sync flushes the folder if a block has been begun.
func (b *blockNames) sync() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next > 0 {
		if _, err := os.Stat(filepath.Join(b.folder, strconv.Itoa(b.next)+blockSuffix)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if err := SyncFolder(b.folder); err != nil {
		return fmt.Errorf("flush the folder of the blocks: %w", err)
	}
	all, err := blocksIn(b.folder)
	if err != nil {
		return err
	}
	b.next = 1
	if len(all) > 0 {
		newest := strings.TrimSuffix(filepath.Base(all[len(all)-1]), blockSuffix)
		if n, err := strconv.Atoi(newest); err == nil {
			b.next = n + 1
		}
	}
	return nil
}
