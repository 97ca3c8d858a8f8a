package actors

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/actors/runtime"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// crew are the programs of a node's agents: those that run, and those that are kept for their next message. What a
// program is to do is decided in its agent's mailbox; here it is done.
type crew struct {
	node     *Node
	launcher *runtime.Launcher
	life     context.Context // of the programs
	end      context.CancelCauseFunc

	mu      sync.Mutex
	members map[capabilities.ID]*member
	running int
	waiting []capabilities.ID // mailboxes with something to run for, for which there was no room
	closed  bool
	held    bool // no program is started
	tasks   sync.WaitGroup
}

// member is one agent's program.
type member struct {
	agent   capabilities.ID
	spec    events.ProgramSet
	runtime runtime.Runtime

	turn sync.Mutex // held while the runtime is used
	gone bool       // it is closed for good; guarded by turn

	// Guarded by the crew's lock.
	run       *run // the newest; nil if there was none
	preparing bool
}

// run is one run of a program, from its decision to its end.
type run struct {
	id     capabilities.ID
	prompt capabilities.ID
	stop   context.CancelCauseFunc
	ctx    context.Context
	taken  chan struct{} // closed when the program has its prompt, or the run is over
	failed error         // why it never had it; to be read once taken is closed
	over   chan struct{} // closed when nothing of the run goes on
	desk   *desk
	end    *mailbox.EndRun // how it ended, once the program has; guarded by the crew's lock
}

var (
	errInterrupted = errors.New(mailbox.Interrupted)
	errStopped     = errors.New("the run was ended")
)

func newCrew(n *Node) *crew {
	c := &crew{node: n, launcher: runtime.NewLauncher(n.o.Programs), members: map[capabilities.ID]*member{}}
	if n.o.TakeOver {
		if err := c.launcher.TakeOver(); err != nil {
			n.log.Warn("what programs leave behind may outlive them", "error", err)
		}
	}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c
}

// enlist gives a place to the run that an agent's mailbox is about to begin, or says that there is none now: then
// the mailbox is told when there is.
func (c *crew) enlist(agent capabilities.ID) bool {
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

// full reports whether there is no place for another run.
func (c *crew) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running >= c.node.o.Runs
}

// begin enters a run that was decided on. It goes on when launch is called, or is given up by abandon.
func (c *crew) begin(agent capabilities.ID, spec events.ProgramSet, e *events.RunStarted) (*member, *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.member(agent, spec)
	r := &run{id: e.Run, prompt: e.Prompt, taken: make(chan struct{}), over: make(chan struct{})}
	r.ctx, r.stop = context.WithCancelCause(c.life)
	r.desk = newDesk(c.node, agent, r)
	m.run = r
	return m, r
}

// member gives an agent's program, anew if it is another than before. The caller has the lock.
func (c *crew) member(agent capabilities.ID, spec events.ProgramSet) *member {
	m := c.members[agent]
	if m == nil || !sameProgram(m.spec, spec) {
		old := m
		m = &member{agent: agent, spec: spec, runtime: c.newRuntime(spec)}
		c.members[agent] = m
		if old != nil {
			c.tasks.Go(old.close)
		}
	}
	return m
}

// prepare gets an agent's program ready for its first run.
func (c *crew) prepare(agent capabilities.ID, spec events.ProgramSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.held {
		return
	}
	m := c.member(agent, spec)
	m.preparing = true
	c.tasks.Go(func() {
		err := m.prepare(c.life)
		c.mu.Lock()
		m.preparing = false
		c.mu.Unlock()
		if errors.Is(err, errStopped) || c.life.Err() != nil {
			return
		}
		ready := mailbox.PrepareProgram{Status: mailbox.Idle}
		if err != nil {
			ready = mailbox.PrepareProgram{Status: mailbox.Failed, Error: inWords(err)}
		}
		c.tell(agent, "that a program is ready", ready, func() {})
	})
}

func (c *crew) isPreparing(agent capabilities.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[agent]
	return m != nil && m.preparing
}

// launch runs the program.
func (c *crew) launch(m *member, r *run, p runtime.Prompt) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.abandon(r, errClosing())
		return
	}
	c.tasks.Go(func() { c.perform(m, r, p) })
	c.mu.Unlock()
}

// abandon gives up a run that never came to be.
func (c *crew) abandon(r *run, why error) {
	r.failed = why
	r.stop(why)
	close(r.taken)
	close(r.over)
	c.left()
}

func (c *crew) perform(m *member, r *run, p runtime.Prompt) {
	m.turn.Lock()
	taken := sync.OnceFunc(func() { close(r.taken) })
	result := runtime.Result{Err: context.Cause(r.ctx)}
	if result.Err == nil {
		result = m.runtime.Run(r.ctx, p, r.desk, taken)
	}
	if result.Err != nil && !r.isTaken() {
		r.failed = result.Err
	}
	r.desk.close()
	m.turn.Unlock()
	end := mailbox.EndRun{Run: r.id, Output: result.Tail}
	if stopped := context.Cause(r.ctx); result.Err != nil && stopped != nil {
		end.Error, end.Output = stopped.Error(), "" // if it was interrupted, its end is decided already
		end.Silent = !r.isTaken()
	} else if result.Err != nil {
		end.Error = inWords(result.Err)
	}
	r.stop(nil)
	c.mu.Lock()
	r.end = &end
	c.mu.Unlock()
	c.tell(m.agent, "the end of a run", end, func() {
		taken()
		close(r.over)
	})
	c.left()
}

// tell has an agent's mailbox write down what has come of its program.
func (c *crew) tell(agent capabilities.ID, what string, command mailbox.Command, then func()) {
	failed := func(err error) {
		c.node.log.Error(what+" is not written down", "mailbox", agent.String(), "error", err)
	}
	c.node.roster.tell(agent, visit{
		run: func(b *box) {
			if _, err := b.decide(command); err != nil {
				failed(err)
			}
			b.release(func(error) { then() })
		},
		lost: func(err error) {
			failed(err)
			c.node.resumeLater(agent, err)
			then()
		},
	})
}

// left frees a place.
func (c *crew) left() {
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
	c.next()
}

// next has the mailbox that has waited longest take a place, if there is one. One that needs none any more leaves it to
// the next.
func (c *crew) next() {
	c.mu.Lock()
	var next capabilities.ID
	if len(c.waiting) > 0 && c.running < c.node.o.Runs && !c.closed {
		next, c.waiting = c.waiting[0], c.waiting[1:]
	}
	c.mu.Unlock()
	if next.IsZero() {
		return
	}
	c.node.roster.tell(next, visit{
		run: func(b *box) {
			b.work()
			c.next()
		},
		lost: func(err error) {
			c.node.resumeLater(next, err)
			c.next()
		},
	})
}

// prepare gets the program ready, unless it is closed already.
func (m *member) prepare(ctx context.Context) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.gone {
		return errStopped
	}
	return m.runtime.Prepare(ctx)
}

func (m *member) close() {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.gone = true
	m.runtime.Close()
}

// present gives the newest run of an agent's program, or nil.
func (c *crew) present(agent capabilities.ID) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.members[agent]; m != nil {
		return m.run
	}
	return nil
}

// ended says how a run ended that an agent's log shows as under way: as it did here, or, if it is none of this node's
// life, by an interruption, before which it was Silent or not. It is false of one that goes on.
func (c *crew) ended(agent, id capabilities.ID, silent bool) (mailbox.EndRun, bool) {
	r := c.present(agent)
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

// taken gives the forms that an agent's present run has taken up from one before it.
func (c *crew) taken(agent capabilities.ID) []capabilities.ID {
	if r := c.present(agent); r != nil {
		return r.desk.forms()
	}
	return nil
}

// dismiss has an agent's program end for good, once its run has. What it gives is closed when nothing of it is left.
func (c *crew) dismiss(agent capabilities.ID) <-chan struct{} {
	left := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[agent]
	if m == nil || c.closed {
		close(left)
		return left
	}
	delete(c.members, agent)
	c.tasks.Go(func() {
		defer close(left)
		m.close()
	})
	return left
}

// isTaken reports whether the program has its prompt, or the run is over.
func (r *run) isTaken() bool {
	select {
	case <-r.taken:
		return true
	default:
		return false
	}
}

// wait waits until nothing of a run goes on.
func (r *run) wait(ctx context.Context) error {
	if r == nil {
		return nil
	}
	return awaitClosed(ctx, r.over)
}

func awaitClosed(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return errEnded(ctx)
	}
}

// close ends all programs and waits until nothing of them is left.
func (c *crew) close() {
	c.mu.Lock()
	c.closed = true
	members := make([]*member, 0, len(c.members))
	for _, m := range c.members {
		members = append(members, m)
	}
	c.mu.Unlock()
	c.end(errInterrupted)
	var left sync.WaitGroup
	for _, m := range members {
		left.Go(m.close)
	}
	left.Wait()
	c.tasks.Wait()
}

// check refuses a program that cannot be started as it is meant to.
func (c *crew) check(p events.ProgramSet) error {
	if err := mailbox.CheckProgram(p); err != nil {
		return err
	}
	return c.launcher.Check(c.specOf(p))
}

// RunsProcess reports whether a process of the system belongs to a program of the node's. It is an error if that cannot be
// found out, as of a process that is gone.
func (n *Node) RunsProcess(pid int) (bool, error) { return n.crew.launcher.Owns(pid) }

// HasRunPrograms reports whether the node has started any program since it was opened.
func (n *Node) HasRunPrograms() bool { return n.crew.launcher.HasBegun() }

// specOf returns what a program's runtime is told of it.
func (c *crew) specOf(p events.ProgramSet) runtime.Spec {
	return runtime.Spec{
		Command: p.Command, Folder: p.Folder, Environment: p.Environment, Inherit: p.Inherit, Keep: p.Keep,
		RunTime: time.Duration(p.Seconds) * time.Second, Access: p.Access, User: p.User, Wrap: p.Wrap, Launcher: c.launcher,
	}
}

func (c *crew) newRuntime(p events.ProgramSet) runtime.Runtime {
	spec := c.specOf(p)
	if p.Runtime == "acp" {
		return runtime.NewACP(spec)
	}
	return runtime.NewExec(spec)
}

func sameProgram(a, b events.ProgramSet) bool {
	return a.Runtime == b.Runtime && a.Folder == b.Folder && a.Keep == b.Keep && a.Seconds == b.Seconds &&
		slices.Equal(a.Command, b.Command) && slices.Equal(a.Environment, b.Environment) && slices.Equal(a.Access, b.Access) &&
		slices.Equal(a.Inherit, b.Inherit) && a.User == b.User && slices.Equal(a.Wrap, b.Wrap)
}

// inWords says what went wrong with a program.
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
