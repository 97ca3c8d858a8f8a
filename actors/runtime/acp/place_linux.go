package acp

import (
	"fmt"
	"os"
	"syscall"
)

// placeOf returns the path of an open file, as the system knows it: no link that is changed meanwhile leads elsewhere.
func placeOf(f *os.File, _ string) (place string, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		place, failed = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	})
	if err == nil {
		err = failed
	}
	if err == nil && place == "" {
		err = syscall.ENOENT
	}
	return place, err
}
