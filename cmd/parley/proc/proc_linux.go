package proc

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// RefuseTracing keeps processes of the same user from reading this one's memory and environment. It changes nothing where
// the system refuses.
func RefuseTracing() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// Locks reports whether a process has the lock of a file, as Lock takes it. It reports true where the system does not say.
func Locks(pid int, file os.FileInfo) bool {
	text, err := os.ReadFile("/proc/locks")
	about, ok := file.Sys().(*syscall.Stat_t)
	if err != nil || !ok {
		return true
	}
	for line := range strings.Lines(string(text)) { // 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF
		words := strings.Fields(line)
		if len(words) > 5 && words[1] == "FLOCK" && words[4] == strconv.Itoa(pid) && strings.HasSuffix(words[5], ":"+strconv.FormatUint(about.Ino, 10)) {
			return true
		}
	}
	return false
}

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
