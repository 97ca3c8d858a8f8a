//go:build !linux

package httpd

import "net"

// Process returns "": the process that opened a connection is not known here.
func Process(net.Conn) string { return "" }

// Opener returns 0: the process that opened a connection is not known here.
func Opener(*net.UnixConn) (pid int, runs func() error, err error) { return 0, nil, nil }
