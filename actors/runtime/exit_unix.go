//go:build unix

package runtime

import (
	"fmt"
	"os"
	"syscall"
)

var signalNames = map[syscall.Signal]string{
	syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGHUP: "SIGHUP", syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGSYS: "SIGSYS",
	syscall.SIGTERM: "SIGTERM", syscall.SIGTRAP: "SIGTRAP", syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ",
}

// exitOf converts the system's status of a process.
func exitOf(status syscall.WaitStatus) ExitStatus {
	if !status.Signaled() {
		return ExitStatus{Code: status.ExitStatus()}
	}
	name, known := signalNames[status.Signal()]
	if !known {
		name = fmt.Sprintf("signal %d", int(status.Signal()))
	}
	return ExitStatus{Signal: name}
}

// readNow reads the available bytes of a non-blocking file, 0 if there are none.
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
