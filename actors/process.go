package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/runtime"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// process is the program of one agent. Its actor is below the agent's in the tree, and handles one message at a time:
// prepareProgram, performRun and closeProgram.
type process struct {
	agent capabilities.ID
	spec  events.ProgramSet
	pid   *actor.PID

	// Guarded by the supervisor's lock.
	run       *run // the newest; nil if there was none
	preparing bool
	closed    bool // closeProgram was sent: nothing may follow
}

type (
	// prepareProgram gets the program ready for its first run.
	prepareProgram struct{}

	// performRun runs the program for a prompt.
	performRun struct {
		run    *run
		prompt runtime.Prompt
	}

	// closeProgram ends the program for good. Closed is closed when nothing of the program is left.
	closeProgram struct{ closed chan<- struct{} }
)

// processActor is the actor of a process.
type processActor struct {
	supervisor *supervisor
	process    *process
	program    runtime.Program
}

// spawnProcess starts the actor of an agent's program.
func (c *supervisor) spawnProcess(agent capabilities.ID, spec events.ProgramSet) *process {
	m := &process{agent: agent, spec: spec}
	m.pid = c.node.registry.tree.spawn(programName(agent), actor.PropsFromProducer(
		func() actor.Actor { return &processActor{c, m, c.program(spec)} },
		actor.WithGuardian(c.strategy),
	))
	return m
}

// send sends a message to the actor of a program, which the supervisor waits for when it closes. The caller has the
// supervisor's lock.
func (c *supervisor) send(m *process, message any) {
	c.tasks.Add(1)
	c.node.registry.system.Root.Send(m.pid, message)
}

// closeProcess has a program end after what it does now. The caller has the supervisor's lock.
func (c *supervisor) closeProcess(m *process) <-chan struct{} {
	closed := make(chan struct{})
	m.closed = true
	c.send(m, closeProgram{closed})
	return closed
}

// Receive handles a message. A crash fails the message, and another program takes the place of the crashed one.
func (a *processActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case prepareProgram:
		defer a.supervisor.tasks.Done()
		a.prepare()
	case performRun:
		defer a.supervisor.tasks.Done()
		a.perform(m.run, m.prompt)
	case closeProgram:
		defer a.supervisor.tasks.Done()
		defer a.supervisor.node.registry.tree.stop(ctx.Self())
		defer close(m.closed)
		a.program.Close()
	case *actor.Restarting:
		a.program.Close()
	}
}

// prepare gets the program ready and has its agent's mailbox record that.
func (a *processActor) prepare() {
	c, ready := a.supervisor, mailbox.PrepareProgram{Status: mailbox.Failed, Error: errProgramCrashed.Error()}
	defer func() {
		c.mu.Lock()
		a.process.preparing = false
		c.mu.Unlock()
		if c.life.Err() == nil {
			c.record(a.process.agent, "that a program is ready", ready, func() {})
		}
	}()
	if err := a.program.Prepare(c.life); err != nil {
		ready.Error = inWords(err)
		return
	}
	ready = mailbox.PrepareProgram{Status: mailbox.Idle}
}

// perform runs the program. A crash is the run's error.
func (a *processActor) perform(r *run, p runtime.Prompt) {
	c := a.supervisor
	accepted := sync.OnceFunc(func() { close(r.accepted) })
	result := runtime.Result{Err: context.Cause(r.ctx)}
	defer func() {
		p := recover()
		if p != nil {
			c.node.log.Error("a program's run crashed", "mailbox", a.process.agent.String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result = runtime.Result{Err: errProgramCrashed}
		}
		c.finish(a.process, r, result, accepted)
		if p != nil {
			panic(p) // the strategy's business
		}
	}()
	if result.Err == nil {
		result = a.program.Run(r.ctx, p, r.host, accepted)
	}
}

var errProgramCrashed = errors.New("the node crashed while it ran the program")

// finish ends a run, and has the agent's mailbox record how.
func (c *supervisor) finish(m *process, r *run, result runtime.Result, accepted func()) {
	if result.Err != nil && !r.isAccepted() {
		r.failed = result.Err
	}
	r.host.close()
	end := mailbox.EndRun{Run: r.id, Output: result.Tail}
	if stopped := context.Cause(r.ctx); result.Err != nil && stopped != nil {
		end.Error, end.Output = stopped.Error(), "" // if it was interrupted, its end is decided already
		end.Silent = !r.isAccepted()
	} else if result.Err != nil {
		end.Error = inWords(result.Err)
	}
	r.stop(nil)
	c.mu.Lock()
	r.end = &end
	c.mu.Unlock()
	c.record(m.agent, "the end of a run", end, func() {
		accepted()
		close(r.over)
	})
	c.releaseSlot()
}
