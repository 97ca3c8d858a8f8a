package resource

import (
	"os/exec"
	"runtime"
	"syscall"
)

// endsWithNode has a program be killed when the node ends, however that is. The system takes the end of the thread that starts the program
// for that of the node, so the goroutine keeps its thread until release is called.
func endsWithNode(cmd *exec.Cmd) (release func()) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return runtime.UnlockOSThread
}
