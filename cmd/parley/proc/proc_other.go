//go:build !linux

package proc

import (
	"os"
	"syscall"
)

// RefuseTracing does nothing on this system.
func RefuseTracing() {}

// replace makes old another name of the file that with is.
func replace(with, old *os.File) error { return syscall.Dup2(int(with.Fd()), int(old.Fd())) }
