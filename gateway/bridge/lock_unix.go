//go:build unix

package bridge

import (
	"os"
	"syscall"
)

// lock waits until a file is locked for the caller alone. The lock ends with unlock, or with the process.
func lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		_ = f.Close() // it is not locked
		return nil, err
	}
	return f.Close, nil
}
