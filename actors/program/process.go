package program

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"parley"
)

// How long a program has to go by itself before it is killed.
const (
	stopGrace = 2 * time.Second // after SIGTERM
	exitGrace = 5 * time.Second // after it has said that it is done
)

// goneWait is how long a killed group may take to be gone.
const goneWait = time.Second

// process is a started program: the leader of a process group of its own, and the node's ends of its pipes.
type process struct {
	cmd            *exec.Cmd
	input          *os.File
	output, errors *os.File
	exited         chan struct{} // closed when it has ended, and what it left behind in its group was killed
	ending         error         // how it ended, nil for status 0; to be read after exited

	mu     sync.Mutex
	reaped bool
}

// start starts the program with some more environment, its errors on a pipe of their own or merged into its output. It runs until it ends or is signalled; stop it and wait for
// exited, then close its pipes.
func start(s Spec, environment []string, merged bool) (*process, error) {
	if len(s.Command) == 0 {
		return nil, parley.Refuse(parley.InvalidArgument, "there is no command to run")
	}
	p := &process{cmd: exec.Command(s.Command[0], s.Command[1:]...), exited: make(chan struct{})}
	p.cmd.Dir = s.Folder
	p.cmd.Env = append(append(os.Environ(), s.Environment...), environment...)
	p.cmd.SysProcAttr = groupLeader()
	theirs, err := p.pipes()
	if merged {
		p.cmd.Stderr = p.cmd.Stdout
	}
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go p.own(started)
	err = <-started
	closeAll(theirs...)
	if err != nil {
		p.close()
		return nil, parley.Refuse(parley.InvalidArgument, "the program cannot be started: %v", err)
	}
	return p, nil
}

// pipes connects the program, and gives the ends that are its own.
func (p *process) pipes() ([]*os.File, error) {
	var all [6]*os.File
	for i := 0; i < len(all); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(all[:i]...)
			return nil, parley.Refuse(parley.Internal, "no pipe for the program: %v", err)
		}
		all[i], all[i+1] = r, w
	}
	p.cmd.Stdin, p.input = all[0], all[1]
	p.output, p.cmd.Stdout = all[2], all[3]
	p.errors, p.cmd.Stderr = all[4], all[5]
	return []*os.File{all[0], all[3], all[5]}, nil
}

// own starts the program and waits for its end, on one thread: where a program dies with its parent, the parent is the
// thread that started it.
func (p *process) own(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	runtime.Gosched() // who waits for that goes on first: what follows holds this thread
	p.ending = endingOf(p.cmd.Wait())
	p.mu.Lock()
	killGroup(p.cmd.Process) // who leads it is gone, and nobody else gets its number while one of the group is left
	p.reaped = true
	p.mu.Unlock()
	for deadline := time.Now().Add(goneWait); !groupGone(p.cmd.Process) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	close(p.exited)
}

// terminate asks the group to end.
func (p *process) terminate() { p.signal(terminateGroup) }

// kill ends the group.
func (p *process) kill() { p.signal(killGroup) }

func (p *process) signal(send func(*os.Process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		send(p.cmd.Process)
	}
}

// end ends the program, if it has not ended yet, and waits until it has.
func (p *process) end() {
	p.terminate()
	select {
	case <-p.exited:
		return
	case <-time.After(stopGrace):
	}
	p.kill()
	<-p.exited
}

func (p *process) close() { closeAll(p.input, p.output, p.errors) }

// endingOf says how a program ended.
func endingOf(err error) error {
	if err == nil {
		return nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return parley.Refuse(parley.Internal, "the program ended: %s", endingText(exit.ProcessState))
	}
	return parley.Refuse(parley.Internal, "the program was lost: %v", err)
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
