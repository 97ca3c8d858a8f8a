//go:build !linux

package proc

import "net"

// Listener returns 0: this system does not say it.
func Listener(net.Conn) (pid int) { return 0 }

// IsStartedBelowCoder reports false: the processes above another are not known on this system.
func IsStartedBelowCoder(pid, named int, name string) bool { return false }

// WithoutCoder returns the variables as they are.
func WithoutCoder(environ []string) []string { return environ }
