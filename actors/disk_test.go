package actors

import (
	"os"
	"syscall"
)

// syncData is fdatasync.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
