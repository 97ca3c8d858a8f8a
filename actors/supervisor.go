package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley"
	"parley/actors/runtime"
	"parley/actors/runtime/acp"
	"parley/actors/runtime/exec"
	"parley/capabilities"
	"parley/events"
	"parley/internal/strike"
	"parley/mailbox"
)

// supervisor runs the programs of the node's agents, and keeps idle programs for their next message. The mailbox
// decides on runs; the supervisor performs them.
type supervisor struct {
	node     *Node
	launcher *runtime.Launcher
	life     context.Context // of the programs
	end      context.CancelCauseFunc

	mu        sync.Mutex
	processes map[capabilities.ID]*process
	running   int
	waiting   []capabilities.ID // mailboxes with a queued message that found no free slot
	closed    bool
	held      bool // no program is started
	strategy  actor.SupervisorStrategy
	program   func(events.ProgramSet) runtime.Program // makes the runtime of a program
	tasks     sync.WaitGroup
}

// run is one run of a program, from its decision to its end.
type run struct {
	id       capabilities.ID
	prompt   capabilities.ID
	stop     context.CancelCauseFunc
	ctx      context.Context
	accepted chan struct{} // closed when the program has its prompt, or the run is over
	failed   error         // why it never had it; to be read once accepted is closed
	over     chan struct{} // closed when the run and its program have ended
	host     *runtimeHost
	end      *mailbox.EndRun // how it ended, once the program has; guarded by the supervisor's lock
}

var (
	errInterrupted = errors.New(mailbox.Interrupted)
	errStopped     = errors.New("the run was ended")
)

func newSupervisor(n *Node) *supervisor {
	c := &supervisor{node: n, launcher: runtime.NewLauncher(n.o.Programs), processes: map[capabilities.ID]*process{}}
	if n.o.TakeOver {
		if err := c.launcher.TakeOver(); err != nil {
			n.log.Warn("what programs leave behind may outlive them", "error", err)
		}
	}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.program = c.newRuntime
	c.strategy = &supervision{n.registry.tree, func(*actor.PID, any) actor.Directive { return actor.RestartDirective }}
	return c
}

// reserveSlot reserves a slot for a run that an agent's mailbox is about to begin. It reports whether one was free. If
// not, the mailbox is notified when one is.
func (c *supervisor) reserveSlot(agent capabilities.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.held {
		return false
	}
	if c.running >= c.node.o.Runs {
		if !slices.Contains(c.waiting, agent) {
			c.waiting = append(c.waiting, agent)
		}
		return false
	}
	c.running++
	return true
}

// full reports whether all slots are taken.
func (c *supervisor) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running >= c.node.o.Runs
}

// begin adds a run that was decided on. The caller calls launch or abandon next.
func (c *supervisor) begin(agent capabilities.ID, spec events.ProgramSet, e *events.RunStarted) (*process, *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.process(agent, spec)
	r := &run{id: e.Run, prompt: e.Prompt, accepted: make(chan struct{}), over: make(chan struct{})}
	r.ctx, r.stop = context.WithCancelCause(c.life)
	r.host = newRuntimeHost(c.node, agent, r)
	m.run = r
	return m, r
}

// process returns an agent's program, and makes a new one if its definition has changed. The caller has the lock.
func (c *supervisor) process(agent capabilities.ID, spec events.ProgramSet) *process {
	m := c.processes[agent]
	if m == nil || !sameProgram(m.spec, spec) {
		old := m
		m = c.spawnProcess(agent, spec)
		c.processes[agent] = m
		if old != nil {
			c.closeProcess(old)
		}
	}
	return m
}

// prepare gets an agent's program ready for its first run.
func (c *supervisor) prepare(agent capabilities.ID, spec events.ProgramSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.held {
		return
	}
	m := c.process(agent, spec)
	m.preparing = true
	c.send(m, prepareProgram{})
}

func (c *supervisor) isPreparing(agent capabilities.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.processes[agent]
	return m != nil && m.preparing
}

// launch runs the program.
func (c *supervisor) launch(m *process, r *run, p runtime.Prompt) {
	c.mu.Lock()
	closed, gone := c.closed, m.closed
	if !closed && !gone {
		c.send(m, performRun{r, p})
	}
	c.mu.Unlock()
	switch {
	case closed:
		c.abandon(r, errClosing())
	case gone:
		c.finish(m, r, runtime.Result{Err: errStopped}, sync.OnceFunc(func() { close(r.accepted) }))
	}
}

// abandon ends a run whose decision was lost.
func (c *supervisor) abandon(r *run, why error) {
	r.failed = why
	r.stop(why)
	c.releaseSlot() // as in finish
	close(r.accepted)
	close(r.over)
}

// record has an agent's mailbox record a result of its program.
func (c *supervisor) record(agent capabilities.ID, what string, command mailbox.Command, then func()) {
	c.node.registry.tell(agent, 0, &recordRun{node: c.node, agent: agent, what: what, command: command, then: then})
}

// releaseSlot frees a slot.
func (c *supervisor) releaseSlot() {
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
	c.offerSlot()
}

// offerSlot offers a free slot to the mailbox that has waited longest. A mailbox that needs none passes it on.
func (c *supervisor) offerSlot() {
	c.mu.Lock()
	var next capabilities.ID
	if len(c.waiting) > 0 && c.running < c.node.o.Runs && !c.closed {
		next, c.waiting = c.waiting[0], c.waiting[1:]
	}
	c.mu.Unlock()
	if next.IsZero() {
		return
	}
	c.node.registry.tell(next, 0, startNextRun{then: func(err error) {
		if err != nil {
			resumeLater(c.node, next, err)
		}
		c.offerSlot()
	}})
}

// currentRun returns the newest run of an agent's program, or nil.
func (c *supervisor) currentRun(agent capabilities.ID) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.processes[agent]; m != nil {
		return m.run
	}
	return nil
}

// ended returns the end of a run that is under way in the log only, and whether it has one. A run from before the node's
// start was interrupted. Silent reports that it had no output.
func (c *supervisor) ended(agent, id capabilities.ID, silent bool) (mailbox.EndRun, bool) {
	r := c.currentRun(agent)
	if r == nil || r.id != id {
		return mailbox.EndRun{Run: id, Error: mailbox.Interrupted, Silent: silent}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.end == nil {
		return mailbox.EndRun{}, false
	}
	return *r.end, true
}

// formsOfRun returns the forms that an agent's current run has asked or found.
func (c *supervisor) formsOfRun(agent capabilities.ID) []capabilities.ID {
	if r := c.currentRun(agent); r != nil {
		return r.host.forms()
	}
	return nil
}

// terminate ends an agent's program for good, after its run. The channel is closed when nothing of the program is left.
func (c *supervisor) terminate(agent capabilities.ID) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.processes[agent]
	if m == nil || c.closed {
		left := make(chan struct{})
		close(left)
		return left
	}
	delete(c.processes, agent)
	return c.closeProcess(m)
}

// isAccepted reports whether the program has its prompt, or the run is over.
func (r *run) isAccepted() bool {
	select {
	case <-r.accepted:
		return true
	default:
		return false
	}
}

// wait blocks until the run is over or ctx ends.
func (r *run) wait(ctx context.Context, n *Node) error {
	if r == nil {
		return nil
	}
	return awaitClosed(ctx, n, r.over)
}

func awaitClosed(ctx context.Context, n *Node, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return errEnded(ctx, n)
	}
}

// close ends all programs and blocks until nothing of them is left.
func (c *supervisor) close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		for _, m := range c.processes {
			c.closeProcess(m)
		}
	}
	c.mu.Unlock()
	c.end(errInterrupted)
	c.tasks.Wait()
}

// check refuses a program that cannot be started with its settings.
func (c *supervisor) check(p events.ProgramSet) error {
	if err := mailbox.CheckProgram(p); err != nil {
		return err
	}
	return c.launcher.Check(c.specOf(p))
}

// Launcher returns what starts the programs of the node's agents. It knows their processes, and those that were noted.
func (ps Programs) Launcher() *runtime.Launcher { return ps.node.supervisor.launcher }

// specOf returns the settings of a program for its runtime.
func (c *supervisor) specOf(p events.ProgramSet) runtime.Spec {
	return runtime.Spec{
		Command: p.Command, Folder: p.Folder, Environment: p.Environment, Inherit: p.Inherit, Keep: p.Keep,
		RunTime: time.Duration(p.Seconds) * time.Second, Access: p.Access, User: p.User, Wrap: p.Wrap, Launcher: c.launcher,
	}
}

func (c *supervisor) newRuntime(p events.ProgramSet) runtime.Program {
	spec := c.specOf(p)
	spec.Access = c.launcher.Access(spec)
	if p.Runtime == "acp" {
		return acp.New(spec)
	}
	return exec.New(spec)
}

func sameProgram(a, b events.ProgramSet) bool {
	return a.Runtime == b.Runtime && a.Folder == b.Folder && a.Keep == b.Keep && a.Seconds == b.Seconds &&
		slices.Equal(a.Command, b.Command) && slices.Equal(a.Environment, b.Environment) && slices.Equal(a.Access, b.Access) &&
		slices.Equal(a.Inherit, b.Inherit) && a.User == b.User && slices.Equal(a.Wrap, b.Wrap)
}

// inWords describes the failure of a program.
func inWords(err error) string {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

func programError(err error) error {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e
	}
	return parley.Refuse(parley.InvalidArgument, "the program could not be started: %v", err)
}

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

// closeProcess ends a program after its present message. The caller has the supervisor's lock.
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
			panic(p) // the strategy restarts the actor
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
	end := mailbox.EndRun{Run: r.id, Output: strike.Secrets(result.Tail)} // the log keeps it for ever
	if stopped := context.Cause(r.ctx); result.Err != nil && stopped != nil {
		end.Error, end.Output = stopped.Error(), "" // if it was interrupted, its end is decided already
		end.Silent = !r.isAccepted()
	} else if result.Err != nil {
		end.Error = strike.Secrets(inWords(result.Err))
	}
	r.stop(nil)
	c.mu.Lock()
	r.end = &end
	c.mu.Unlock()
	c.releaseSlot() // before anybody sees the end, and counts on the slot
	c.record(m.agent, "the end of a run", end, func() {
		accepted()
		close(r.over)
	})
}
