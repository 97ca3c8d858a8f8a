package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// appends is a file to which blocks are appended, each flushed before the next: the limit of a disk.
type appends struct {
	mu    sync.Mutex
	file  *os.File
	block [4 << 10]byte
	n     int
}

func startAppends(_ context.Context, o options) (running, error) {
	f, err := os.Create(filepath.Join(o.folder, "appends"))
	return &appends{file: f}, err
}

func (a *appends) cycle(context.Context, int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n++; a.n%(16<<20/len(a.block)) == 0 {
		if err := a.file.Truncate(0); err != nil { // to overwrite blocks takes less than to append them
			return err
		}
		if _, err := a.file.Seek(0, 0); err != nil {
			return err
		}
	}
	if _, err := a.file.Write(a.block[:]); err != nil {
		return err
	}
	return syscall.Fdatasync(int(a.file.Fd()))
}

func (a *appends) process() int { return 0 }
func (a *appends) close()       { _ = a.file.Close() } // a temporary file
