//go:build unix

package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// orphaned reports whether the process that started this one has ended. Its parent is then a process outside its group.
// A process that leads its group was put there by a shell, and is no background process of a script.
func orphaned() bool {
	group := syscall.Getpgrp()
	if group == os.Getpid() {
		return false
	}
	parents, err := syscall.Getpgid(os.Getppid())
	return err != nil || parents != group
}

// Detach has a program, when started, outlive the terminal of this process.
func Detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// Terminate asks a process to end.
func Terminate(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) }

// KillGroup ends what a program that was started detached has started, with the program.
func KillGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// ErrLocked is the error of Lock and LockShared for a file that another process has locked.
var ErrLocked error = syscall.EWOULDBLOCK

// Lock locks a file for this process alone, until Unlock or the end of the process. It does not wait.
func Lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// LockShared locks a file against Lock, until Unlock or the file is closed. It does not wait.
func LockShared(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) }

// Unlock ends a lock of this process.
func Unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
