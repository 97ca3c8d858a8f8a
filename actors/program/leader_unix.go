//go:build unix && !linux

package program

import (
	"os"
	"syscall"
)

// groupLeader has a process lead a group of its own. Nothing ends it with the node but the end of its input.
func groupLeader() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// groupGone reports whether nothing is left of the group that a process led.
func groupGone(p *os.Process) bool { return syscall.Kill(-p.Pid, 0) == syscall.ESRCH }
