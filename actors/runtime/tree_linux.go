package runtime

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// tree is a program on Linux with its descendants. A supervisor, which is a process of the node, starts the program and
// adopts its orphans. So processes that change their group or session stay below it. The supervisor kills all of them
// when the program has ended, on an order, and when the node is gone.
type tree struct {
	cmd      *exec.Cmd // the supervisor
	launcher *Launcher
	cgroup   string
	leader   int // the program's ID
	reports  *os.File
	ended    chan struct{} // closed when the supervisor has ended

	mu     sync.Mutex
	orders *os.File
}

// plan is what a supervisor has to start.
type plan struct {
	Path      string
	Args, Env []string
	Folder    string
	Who       *identity
	Cgroup    string // folder of a cgroup that is there, for this program alone; "" for none
}

// What a supervisor is told, a byte each. The end of its input is the node's end.
const (
	orderTerminate = 'T'
	orderKill      = 'K'
)

// A supervisor's reports, in this order.
type (
	startReport struct {
		PID int // of the program, which leads a group
		Err string
	}
	endReport struct{ Status syscall.WaitStatus }
)

// launch starts a program under a supervisor.
func (l *Launcher) launch(cmd *exec.Cmd, who *identity) (*tree, error) {
	t := &tree{launcher: l, cgroup: l.cgroups.make(), ended: make(chan struct{})}
	theirs, err := t.pipes()
	if err != nil {
		l.cgroups.remove(t.cgroup)
		return nil, notStarted(err)
	}
	t.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{supervisorName}, Env: []string{"GOMAXPROCS=1"},
		Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr, ExtraFiles: theirs,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	err = l.startAs(t)
	closeAll(theirs...)
	if err == nil {
		go t.reap()
		err = t.begin(plan{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Folder: cmd.Dir, Who: who, Cgroup: t.cgroup})
	} else {
		l.cgroups.remove(t.cgroup)
	}
	if err != nil {
		closeAll(t.orders, t.reports)
		return nil, notStarted(err)
	}
	return t, nil
}

// pipes makes the pipes to the supervisor, and returns the supervisor's ends.
func (t *tree) pipes() (theirs []*os.File, err error) {
	orders, give, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reports, report, err := os.Pipe()
	if err != nil {
		closeAll(orders, give)
		return nil, err
	}
	t.orders, t.reports = give, reports
	return []*os.File{orders, report}, nil
}

// startAs starts the supervisor and notes it, so that it is not taken for a stray.
func (l *Launcher) startAs(t *tree) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := t.cmd.Start(); err != nil {
		return err
	}
	l.began = true
	l.running[t.cmd.Process.Pid] = &started{cgroup: t.cgroup}
	return nil
}

// begin has the supervisor start the program.
func (t *tree) begin(p plan) error {
	sent := gob.NewEncoder(t.orders).Encode(p)
	var r startReport
	if err := gob.NewDecoder(exactly{t.reports}).Decode(&r); err != nil {
		<-t.ended
		return errors.Join(errors.New("what supervises it ended"), sent)
	}
	if r.Err != "" {
		return errors.New(r.Err)
	}
	t.leader = r.PID
	t.launcher.enter(t.cmd.Process.Pid, &started{leader: r.PID, cgroup: t.cgroup})
	return nil
}

// exactly reads no more than the requested bytes, byte by byte if necessary.
type exactly struct{ io.Reader }

// ReadByte reads one byte.
func (e exactly) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(e.Reader, b[:])
	return b[0], err
}

// reap waits for the supervisor. If the supervisor was killed, reap kills what is left.
func (t *tree) reap() {
	_ = t.cmd.Wait() // its reports have the program's result
	t.launcher.cgroups.remove(t.cgroup)
	t.launcher.leave(t.cmd.Process.Pid)
	t.launcher.endStrays()
	close(t.ended)
}

// wait waits for the end of the program, and for a while until none of its descendants is left.
func (t *tree) wait() ExitStatus {
	defer closeAll(t.reports)
	var r endReport
	err := gob.NewDecoder(exactly{t.reports}).Decode(&r)
	if err != nil {
		<-t.ended
	}
	select {
	case <-t.ended:
	case <-time.After(goneWait):
	}
	t.mu.Lock()
	closeAll(t.orders)
	t.mu.Unlock()
	if err == nil {
		return exitOf(r.Status)
	}
	if how := exitOf(t.cmd.ProcessState.Sys().(syscall.WaitStatus)); how.Signal != "" {
		return how
	}
	return ExitStatus{Lost: errors.New("what supervises it ended")}
}

// order sends an order to the supervisor. It ignores a supervisor that has ended.
func (t *tree) order(o byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.orders.Write([]byte{o})
}

func (t *tree) terminate() { t.order(orderTerminate) }

func (t *tree) kill() { t.order(orderKill) }
