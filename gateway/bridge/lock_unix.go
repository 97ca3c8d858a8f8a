//go:build unix

package bridge

import (
	"syscall"

	"parley/internal/regular"
)

// lock waits until a file is locked for the caller alone. The lock ends with unlock, or with the process.
func lock(path string) (unlock func() error, err error) {
	f, err := regular.OpenOrCreate(path)
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
