package program

import "syscall"

// groupLeader has a process lead a group of its own, and die with the node.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
