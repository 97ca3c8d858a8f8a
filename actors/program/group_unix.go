//go:build unix

package program

import (
	"fmt"
	"os"
	"syscall"
)

// terminateGroup asks a process and its group to end.
func terminateGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

// killGroup ends a process and its group.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }

// groupGone reports whether nothing is left of the group that a process led.
func groupGone(p *os.Process) bool { return syscall.Kill(-p.Pid, 0) == syscall.ESRCH }

var signalNames = map[syscall.Signal]string{
	syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGHUP: "SIGHUP", syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGSYS: "SIGSYS",
	syscall.SIGTERM: "SIGTERM", syscall.SIGTRAP: "SIGTRAP", syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ",
}

// endingText says how a process ended: exit status 3, killed by SIGKILL.
func endingText(s *os.ProcessState) string {
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return s.String()
	}
	if name, known := signalNames[status.Signal()]; known {
		return "killed by " + name
	}
	return fmt.Sprintf("killed by signal %d", int(status.Signal()))
}

// readNow reads what is there already: 0 if that is nothing. Its file is one that does not block.
func readNow(f *os.File, buf []byte) int {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	if err := raw.Read(func(fd uintptr) bool {
		n, _ = syscall.Read(int(fd), buf)
		return true
	}); err != nil {
		return 0
	}
	return max(n, 0)
}
