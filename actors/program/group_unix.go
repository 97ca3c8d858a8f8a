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

var signalNames = map[syscall.Signal]string{
	syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGHUP: "SIGHUP", syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGSYS: "SIGSYS",
	syscall.SIGTERM: "SIGTERM", syscall.SIGTRAP: "SIGTRAP", syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ",
}

// endingText says how a process ended: exit status 3, killed by SIGKILL.
func endingText(s *os.ProcessState) string {
	if _, signal := exitOf(s); signal != nil {
		return "killed by " + *signal
	}
	return s.String()
}

// exitOf gives the status or the signal that a process ended with.
func exitOf(s *os.ProcessState) (code *int, signal *string) {
	status, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		code := s.ExitCode()
		return &code, nil
	}
	name, known := signalNames[status.Signal()]
	if !known {
		name = fmt.Sprintf("signal %d", int(status.Signal()))
	}
	return nil, &name
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
