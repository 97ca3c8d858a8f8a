//go:build unix && !linux

package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// RefuseTracing does nothing on this system.
func RefuseTracing() {}

// Locks reports true: this system does not say who has the lock of a file.
func Locks(int, os.FileInfo) bool { return true }

// replace makes old another name of the file that with is.
func replace(with, old *os.File) error { return syscall.Dup2(int(with.Fd()), int(old.Fd())) }

// FreeSpace returns the bytes that this process may still write to the disk of a folder.
func FreeSpace(folder string) (uint64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return 0, err
	}
	return uint64(disk.Bavail) * uint64(disk.Bsize), nil
}
