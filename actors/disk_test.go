package actors

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// syncData is fdatasync.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// cpuTime is what this process has used of all processors.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
