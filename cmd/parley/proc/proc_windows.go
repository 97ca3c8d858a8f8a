package proc

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// RefuseTracing does nothing on this system.
func RefuseTracing() {}

// Locks reports true: this system does not say who has the lock of a file.
func Locks(int, os.FileInfo) bool { return true }

// replace closes old. Another file cannot take its place here, so later writes to it fail.
func replace(_, old *os.File) error { return old.Close() }

// orphaned reports false: this system does not tell whether the process that started this one has ended.
func orphaned() bool { return false }

// Detach has a program, when started, outlive the terminal of this process.
func Detach(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
}

// Terminate ends a process at once: this system has no signal that asks it to end.
func Terminate(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

// KillGroup ends a program that was started detached. This system does not tell what it has started.
func KillGroup(pid int) error { return Terminate(pid) }

// ErrLocked is the error of Lock and LockShared for a file that another process has locked.
var ErrLocked error = windows.ERROR_LOCK_VIOLATION

// lockedAt is the place of the locked byte, beyond all that is written: other processes cannot read a byte locked here.
const lockedAt = 1 << 30

// Lock locks a file for this process alone, until Unlock or the end of the process. It does not wait.
func Lock(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// LockShared locks a file against Lock, until Unlock or the file is closed. It does not wait.
func LockShared(f *os.File) error { return lock(f, 0) }

func lock(f *os.File, flags uint32) error {
	at := windows.Overlapped{Offset: lockedAt}
	return windows.LockFileEx(windows.Handle(f.Fd()), flags|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
}

// Unlock ends a lock of this process.
func Unlock(f *os.File) error {
	at := windows.Overlapped{Offset: lockedAt}
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}

// FreeSpace returns the bytes that this process may still write to the disk of a folder.
func FreeSpace(folder string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var free uint64
	return free, windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
}
