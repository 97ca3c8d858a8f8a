//go:build unix

package persistence

import (
	"os"
	"syscall"
)

// lockFile locks the file for this process, until it is closed or the process ends.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
