//go:build unix && !linux

package runtime

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// tree is a program that leads a process group. Processes that leave the group are not found. Only the end of its input
// ends the program when the node is gone.
type tree struct {
	cmd      *exec.Cmd
	launcher *Launcher
	leader   int // the program's ID

	mu     sync.Mutex
	reaped bool
}

func (l *Launcher) launch(cmd *exec.Cmd, who *identity) (*tree, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: who.credential()}
	if err := cmd.Start(); err != nil {
		return nil, notStarted(err)
	}
	t := &tree{cmd: cmd, launcher: l, leader: cmd.Process.Pid}
	l.enter(t.leader, &started{leader: t.leader})
	return t, nil
}

// wait waits for the end of the program, and kills what is left in its group.
func (t *tree) wait() ExitStatus {
	err := t.cmd.Wait()
	t.mu.Lock()
	t.signal(syscall.SIGKILL) // nobody else gets its number while one of the group is left
	t.reaped = true
	t.mu.Unlock()
	for end := time.Now().Add(goneWait); syscall.Kill(-t.leader, 0) != syscall.ESRCH && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	t.launcher.leave(t.leader)
	if t.cmd.ProcessState == nil {
		return ExitStatus{Lost: err}
	}
	return exitOf(t.cmd.ProcessState.Sys().(syscall.WaitStatus))
}

func (t *tree) signal(s syscall.Signal) { _ = syscall.Kill(-t.leader, s) }

func (t *tree) signalLiving(s syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reaped {
		t.signal(s)
	}
}

func (t *tree) terminate() { t.signalLiving(syscall.SIGTERM) }

func (t *tree) kill() { t.signalLiving(syscall.SIGKILL) }

// ownerOf looks whether a process is in the group of a program. No process is noted on this system.
func (l *Launcher) ownerOf(pid int) (Owner, error) {
	group, err := syscall.Getpgid(pid)
	if err != nil {
		return Owner{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, found := l.running[group]
	return Owner{Program: found}, nil
}

// mayBecome reports whether the node may run programs as another user.
func mayBecome() bool { return os.Geteuid() == 0 }
