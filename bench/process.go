package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// program is a process that serves, and the file with its output.
type program struct {
	cmd    *exec.Cmd
	output string
	ended  chan struct{}
}

// startProgram starts a program in a process group of its own.
func startProgram(o options, cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd, output: filepath.Join(o.folder, filepath.Base(cmd.Path)+".out"), ended: make(chan struct{})}
	f, err := os.Create(p.output)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // the program has it
	cmd.Stdout, cmd.Stderr = f, f
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // awaits closes of ended
		close(p.ended)
	}()
	return p, nil
}

func (p *program) process() int { return p.cmd.Process.Pid }

// close ends the program, first in the way that leaves no shared memory of PostgreSQL behind.
func (p *program) close() {
	_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGINT) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(closing):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// closing is the time for which a program may end by itself.
const closing = 3 * time.Second

// patience is the time for which a program may start.
const patience = 30 * time.Second

// ready blocks until try succeeds. It fails when the program ends or takes too long.
func (p *program) ready(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			said, _ := os.ReadFile(p.output) // shown as far as there is any
			return fmt.Errorf("%s has ended: %s", filepath.Base(p.cmd.Path), said[max(0, len(said)-2000):])
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// answers returns a try that succeeds when something answers at a URL.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
}
