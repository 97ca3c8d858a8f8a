//go:build !linux

package gateway

import "net"

// callerOf knows of no process here.
func callerOf(*net.UnixConn) (pid int, stays func() error, err error) { return 0, nil, nil }
