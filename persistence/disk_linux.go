package persistence

import (
	"os"
	"syscall"
)

// syncData flushes a file's content, without its times.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// lockFile locks the file for this process, until it is closed or the process ends.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
