package program

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// groupLeader has a process lead a group of its own, and die with the node.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// groupGone reports whether nothing is left of the group that a process led, but for dead ones that nobody has reaped: that
// is for the system's first process to do, which may take its time.
func groupGone(p *os.Process) bool {
	if syscall.Kill(-p.Pid, 0) == syscall.ESRCH {
		return true
	}
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(all) == 0 {
		return false
	}
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && livesIn(text, p.Pid) {
			return false
		}
	}
	return true
}

// livesIn reports whether a process is alive and in a group, from what /proc says of it: its ID, its name in brackets, which
// may hold anything, its state, its parent and its group.
func livesIn(stat []byte, group int) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && fields[0][0] != 'Z' && fields[0][0] != 'X'
}
