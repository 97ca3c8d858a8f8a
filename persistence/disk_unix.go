//go:build unix && !linux

package persistence

import (
	"os"
	"syscall"
)

// syncData flushes a file.
func syncData(f *os.File) error { return f.Sync() }

// lockFile locks the file for this process, until it is closed or the process ends.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
