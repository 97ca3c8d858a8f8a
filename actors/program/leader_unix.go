//go:build unix && !linux

package program

import "syscall"

// groupLeader has a process lead a group of its own. Nothing ends it with the node but the end of its input.
func groupLeader() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
