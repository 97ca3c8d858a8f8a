package runtime

import (
	"os"
	"os/exec"
	"time"

	"parley"
)

// How long a program has to go by itself before it is killed.
const (
	StopGrace = 2 * time.Second // after SIGTERM
	ExitGrace = 5 * time.Second // after the program has reported that it is done
)

// goneWait is the time that killed processes have to be gone.
const goneWait = time.Second

// process is a started program with its descendants, and the node's ends of its pipes.
type process struct {
	input          *os.File
	output, errors *os.File
	Exited         chan struct{} // closed when it has ended, and what it left behind was killed
	Exit           ExitStatus    // how it ended; to be read after exited
	Err            error         // the same as an error, nil for status 0

	tree *tree
}

// ExitStatus is the end of a process.
type ExitStatus struct {
	Code   int
	Signal string // that killed it, as SIGKILL; "" if it ended by itself
	Lost   error  // why that is not known
}

// start starts a program with additional environment. Its standard error has a pipe of its own, or is merged into its
// output. The caller ends it, waits for Exited, and then closes its pipes.
func start(s Spec, environment []string, merged bool) (*process, error) {
	l := s.Launcher
	if l == nil {
		l = NewLauncher(Defaults{})
	}
	cmd, who, err := l.command(s, environment)
	if err != nil {
		return nil, err
	}
	p := &process{Exited: make(chan struct{})}
	theirs, err := p.pipes(cmd)
	if err != nil {
		return nil, err
	}
	if merged {
		cmd.Stderr = cmd.Stdout
	}
	p.tree, err = l.launch(cmd, who)
	closeAll(theirs...)
	if err != nil {
		p.close()
		return nil, err
	}
	go p.await()
	return p, nil
}

// pipes makes the pipes, and returns the program's ends.
func (p *process) pipes(cmd *exec.Cmd) ([]*os.File, error) {
	var all [6]*os.File
	for i := 0; i < len(all); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(all[:i]...)
			return nil, parley.Refuse(parley.Internal, "no pipe for the program: %v", err)
		}
		all[i], all[i+1] = r, w
	}
	cmd.Stdin, p.input = all[0], all[1]
	p.output, cmd.Stdout = all[2], all[3]
	p.errors, cmd.Stderr = all[4], all[5]
	return []*os.File{all[0], all[3], all[5]}, nil
}

// await waits until no process of the program is left.
func (p *process) await() {
	p.Exit = p.tree.wait()
	p.Err = p.Exit.asError()
	close(p.Exited)
}

// Terminate asks the program to end.
func (p *process) Terminate() { p.tree.terminate() }

// Kill kills the program and its descendants.
func (p *process) Kill() { p.tree.kill() }

// End terminates the program, kills it after StopGrace, and waits until it has ended.
func (p *process) End() {
	p.Terminate()
	select {
	case <-p.Exited:
		return
	case <-time.After(StopGrace):
	}
	p.Kill()
	<-p.Exited
}

func (p *process) close() { closeAll(p.input, p.output, p.errors) }

// asError returns the error of a process's end, nil for exit status 0.
func (e ExitStatus) asError() error {
	switch {
	case e.Lost != nil:
		return parley.Refuse(parley.Internal, "the program was lost: %v", e.Lost)
	case e.Signal != "":
		return parley.Refuse(parley.Internal, "the program ended: killed by %s", e.Signal)
	case e.Code != 0:
		return parley.Refuse(parley.Internal, "the program ended: exit status %d", e.Code)
	}
	return nil
}

// Status returns the exit status of a process, or the signal that killed it.
func (e ExitStatus) Status() (code *int, signal *string) {
	if e.Signal != "" {
		return nil, &e.Signal
	}
	return &e.Code, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
