//go:build unix

package httpd

import "syscall"

// FileLimit returns the number of files that the process may open, and whether there is a limit.
func FileLimit() (files uint64, limited bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return uint64(limit.Cur), true //nolint:unconvert // it is signed on some systems
}
