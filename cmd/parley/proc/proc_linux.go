package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// RefuseTracing keeps processes of the same user from reading this one's memory and environment. It changes nothing where
// the system refuses.
func RefuseTracing() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// replace makes old another name of the file that with is.
func replace(with, old *os.File) error { return syscall.Dup3(int(with.Fd()), int(old.Fd()), 0) }

// FreeSpace returns the bytes that this process may still write to the disk of a folder.
func FreeSpace(folder string) (uint64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return 0, err
	}
	return disk.Bavail * uint64(disk.Bsize), nil
}
