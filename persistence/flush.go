package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// flusher sees to it that what the embedded server has written to a stream is on disk: the block, and its name in its
// folder. The server is not told to flush: it would keep everybody from reading until the disk has finished.
type flusher struct {
	o      *Options
	folder string
	began  atomic.Int64 // when the flush on its way began, in unix nanoseconds; 0 if there is none

	mu     sync.Mutex
	block  *os.File // the newest one; nil before the first flush
	number int      // of that
}

// slowFlush is how long a flush takes before it is worth a word.
const slowFlush = 5 * time.Second

// flush returns when all that was written to the stream before is on disk. How long that takes is up to the disk.
func (f *flusher) flush() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began.Store(time.Now().UnixNano())
	defer f.began.Store(0)
	slow := time.AfterFunc(slowFlush, func() {
		f.o.Log.Warn("the disk has not finished a flush yet: what is written waits for it", "after", slowFlush)
	})
	defer slow.Stop()
	if err := f.flushBlocks(); err != nil {
		return fmt.Errorf("flush the disk: %w", err)
	}
	return nil
}

// since returns how long the flush on its way has taken.
func (f *flusher) since() time.Duration {
	if began := f.began.Load(); began != 0 {
		return time.Since(time.Unix(0, began))
	}
	return 0
}

// flushBlocks flushes the newest block and those that were begun since the last flush.
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

// isReplaced reports whether the server has put another file in the place of the block.
func (f *flusher) isReplaced() bool {
	is, err := f.block.Stat()
	if err != nil {
		return true
	}
	there, err := os.Stat(f.path(f.number))
	return err != nil || !os.SameFile(is, there)
}

// openNewest begins with the block before the newest, where there is one: the newest may have been begun just now.
func (f *flusher) openNewest() error {
	all, err := blocksIn(f.folder)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("the stream has no blocks")
	}
	first := filepath.Base(all[max(0, len(all)-newestBlocks)])
	number, err := strconv.Atoi(strings.TrimSuffix(first, blockSuffix))
	if err != nil {
		return err
	}
	return f.open(number)
}

// open goes on with a block, whose name may be new.
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
