package httpd

import (
	"errors"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process returns the process that opened a connection to a Unix socket, as an address for a connlimit.Limiter.
func Process(conn net.Conn) string {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return ""
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return ""
	}
	process := ""
	_ = raw.Control(func(fd uintptr) { // it fails if the connection has ended
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			process = strconv.Itoa(int(peer.Uid)) + "/" + strconv.Itoa(int(peer.Pid))
		}
	})
	return process
}

// Opener returns the process that opened a connection to a Unix socket, and a check that it still runs. pid is 0 for a
// process that cannot be seen from here. Such a process is no child of this one.
func Opener(conn *net.UnixConn) (pid int, runs func() error, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	var who *unix.Ucred
	handle := -1
	failed := raw.Control(func(fd uintptr) {
		if who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil || who.Pid == 0 {
			return
		}
		var gone error
		if handle, gone = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD); gone != nil {
			handle = -1
			if !errors.Is(gone, unix.ENOPROTOOPT) { // a system before 6.5 does not know of it
				err = gone
			}
		}
	})
	if err = errors.Join(failed, err); err != nil {
		return 0, nil, err
	}
	return int(who.Pid), func() error { return stillRuns(handle) }, nil
}

// stillRuns reports an error if the process of a handle has ended, and closes the handle.
func stillRuns(handle int) error {
	if handle < 0 {
		return nil
	}
	defer unix.Close(handle) //nolint:errcheck // it was only looked at
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 0)
	if err == nil && n > 0 {
		return unix.ESRCH
	}
	return err
}
