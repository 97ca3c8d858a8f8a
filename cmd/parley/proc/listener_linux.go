package proc

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Listener returns the process that listens at the other end of a connection to a Unix socket; 0 where it cannot be seen from here, as
// from within a container. The kernel noted it when the process began to listen.
func Listener(conn net.Conn) (pid int) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // it fails if the connection has ended
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(peer.Pid)
		}
	})
	return pid
}

// coderVariables are those by which coding agents name themselves to what they start.
var coderVariables = []string{"CLAUDE_PID=", "CLAUDE_CODE_SESSION_ID=", "CODEX_THREAD_ID=", "CODEX_SESSION_ID="}

// IsStartedBelowCoder reports whether a process was started by what a coding agent runs, of those in which this process does not run
// itself: it descends from the coding agent that has started this one, or has its variables or those of another. The coding agent is the
// process named, or the nearest above this one whose program has the name. Where none is found, as for a person who tries a hook, it
// reports false.
func IsStartedBelowCoder(pid, named int, name string) bool {
	own := lineage(os.Getpid())
	at := slices.IndexFunc(own, func(p int) bool { return p == named })
	if at <= 0 {
		at = slices.IndexFunc(own, func(p int) bool { return p != os.Getpid() && runs(p, name) })
	}
	if at <= 0 {
		return false
	}
	coder, outer := own[at], map[string]bool{}
	for _, above := range own[at:] {
		for _, variable := range variablesOf(above) {
			outer[variable] = true
		}
	}
	line := lineage(pid)
	for _, leader := range []int{1, 2} { // of its group and of its session: an orphan descends from neither
		if s := standing(pid); len(s) > leader {
			line = append(line, lineage(s[leader])...)
		}
	}
	if slices.Contains(line, coder) {
		return true
	}
	return slices.ContainsFunc(line, func(p int) bool {
		return slices.ContainsFunc(variablesOf(p), func(variable string) bool { return !outer[variable] })
	})
}

// standing returns the parent, the group and the session of a process; nothing for one that is gone.
func standing(pid int) (ids []int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // a name may contain anything
	for _, field := range fields[min(1, len(fields)):min(4, len(fields))] {
		id, err := strconv.Atoi(field)
		if err != nil {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// lineage returns a process and those above it, but for the first of the system.
func lineage(pid int) (line []int) {
	for pid > 1 && !slices.Contains(line, pid) {
		s := standing(pid)
		if len(s) == 0 {
			break
		}
		line, pid = append(line, pid), s[0]
	}
	return line
}

// runs reports whether a process runs a program whose name begins so.
func runs(pid int, name string) bool {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	first, _, _ := strings.Cut(string(words), "\x00")
	return name != "" && (strings.HasPrefix(filepath.Base(path), name) || strings.HasPrefix(filepath.Base(first), name))
}

// variablesOf returns the coderVariables of a process, as they were when it was started. Nothing is seen of one that refuses tracing.
func variablesOf(pid int) (found []string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil
	}
	for variable := range strings.SplitSeq(string(text), "\x00") {
		if slices.ContainsFunc(coderVariables, func(name string) bool { return strings.HasPrefix(variable, name) && variable != name }) {
			found = append(found, variable)
		}
	}
	return found
}

// WithoutCoder returns variables of an environment without those by which a coding agent names itself.
func WithoutCoder(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		return slices.ContainsFunc(coderVariables, func(name string) bool { return strings.HasPrefix(variable, name) })
	})
}
