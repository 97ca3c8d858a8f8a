package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// flusher flushes the blocks of one stream, and their names, after the embedded server has written them. The server
// itself never flushes, since it would block all readers meanwhile.
type flusher struct {
	folder string

	mu     sync.Mutex
	block  *os.File // the newest one; nil before the first flush
	number int      // of block
}

// flush blocks until all earlier writes to the stream are on disk.
func (f *flusher) flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.flushBlocks(); err != nil {
		return fmt.Errorf("flush the disk: %w", err)
	}
	return nil
}

// flushBlocks flushes the newest block, and those that were created since the last flush.
func (f *flusher) flushBlocks() error {
	if f.block == nil || f.isReplaced() {
		if err := f.openNewest(); err != nil {
			return err
		}
	}
	for {
		if err := syncData(f.block); err != nil {
			return err
		}
		switch _, err := os.Stat(f.path(f.number + 1)); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		if err := f.open(f.number + 1); err != nil {
			return err
		}
	}
}

func (f *flusher) path(number int) string {
	return filepath.Join(f.folder, strconv.Itoa(number)+blockSuffix)
}

// isReplaced reports whether the server has replaced the file of the block.
func (f *flusher) isReplaced() bool {
	is, err := f.block.Stat()
	if err != nil {
		return true
	}
	there, err := os.Stat(f.path(f.number))
	return err != nil || !os.SameFile(is, there)
}

// openNewest opens the block before the newest, if there is one, since the newest may be new.
func (f *flusher) openNewest() error {
	all, err := blocksIn(f.folder)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("the stream has no blocks")
	}
	number, err := blockNumber(all[max(0, len(all)-newestBlocks)])
	if err != nil {
		return err
	}
	return f.open(number)
}

// open opens a block, and flushes its name.
func (f *flusher) open(number int) error {
	block, err := os.OpenFile(f.path(number), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := SyncFolder(f.folder); err != nil {
		return errors.Join(err, block.Close())
	}
	f.leave()
	f.block, f.number = block, number
	return nil
}

func (f *flusher) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave()
}

func (f *flusher) leave() {
	if f.block != nil {
		_ = f.block.Close() // nothing was written through it
		f.block = nil
	}
}
