package actors

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// syncData flushes a file's data.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// cpuTime returns the processor time that this process has used.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
