//go:build unix

package websocket

import "syscall"

// readsNow says whether a connection can be read, and written to, without waiting.
const readsNow = true

// errNotYet says that there is nothing to read yet.
const errNotYet = syscall.EAGAIN

// readNow reads what is there.
func readNow(fd uintptr, b []byte) (n int, err error) {
	for {
		if n, err = syscall.Read(int(fd), b); err != syscall.EINTR {
			return n, err
		}
	}
}

// writeNow writes what there is room for.
func writeNow(fd uintptr, b []byte) (n int, err error) {
	for {
		switch n, err = syscall.Write(int(fd), b); err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, nil
		default:
			return max(n, 0), err
		}
	}
}
