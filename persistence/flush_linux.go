package persistence

import (
	"os"
	"syscall"
)

// syncData flushes a file's content, without its times.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
