package gateway

import (
	"net"
	"strconv"
	"syscall"
)

// processOf returns which process has connected to a Unix socket, as the address of a connlimit.Limiter.
func processOf(conn net.Conn) string {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return ""
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return ""
	}
	process := ""
	_ = raw.Control(func(fd uintptr) { // it fails if the connection has ended
		if peer, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			process = strconv.Itoa(int(peer.Uid)) + "/" + strconv.Itoa(int(peer.Pid))
		}
	})
	return process
}
