package persistence

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

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
	names, err := filepath.Glob(filepath.Join(blockFolder(o), "*.blk"))
	if err != nil {
		return fmt.Errorf("list the journal's files: %w", err)
	}
	slices.SortFunc(names, func(a, b string) int { // 9.blk is before 10.blk
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	for _, name := range names[max(0, len(names)-newestBlocks):] {
		if err := onFile(name, do); err != nil {
			return parley.Refuse(parley.ReadOnly, "the journal's files cannot be flushed: %v", err)
		}
	}
	return nil
}

func onFile(name string, do func(f *os.File) error) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}
