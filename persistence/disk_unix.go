//go:build unix && !linux

package persistence

import (
	"errors"
	"os"
	"syscall"
)

// syncData flushes a file.
func syncData(f *os.File) error { return f.Sync() }

// lockFile locks the file for this process, until closeLocked or the end of the process.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// closeLocked unlocks and closes a file. Closing alone would leave the lock with a child that is forked and has not
// started its program yet.
func closeLocked(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
