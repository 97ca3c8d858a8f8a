package actors

import (
	"os"
	"syscall"
)

// syncData flushes a file's data.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
