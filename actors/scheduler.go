package actors

import (
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley/capabilities"
	"parley/mailbox/due"
)

// scheduler expires forms and passivates idle mailboxes. Its deadlines follow from the log. So forms whose deadlines passed
// while the node was down expire when it starts.
type scheduler struct {
	node *Node
	pid  *actor.PID

	mu    sync.Mutex
	due   due.Queue[capabilities.ID]
	known map[capabilities.ID]capabilities.Time // the earliest deadline in the heap by mailbox
	timer *time.Timer
	ended bool

	behind bool // the clock is behind the log, and that was said; of look alone
}

// schedulerTick bounds the delay with which a change of the wall clock and an idle mailbox are noticed.
const schedulerTick = time.Second

type tick struct{}

func newScheduler(n *Node) *scheduler {
	return &scheduler{node: n, known: map[capabilities.ID]capabilities.Time{}}
}

// spawn starts the scheduler's actor. A crash leaves the timer stopped, so a restart sets it again.
func (c *scheduler) spawn(strategy actor.SupervisorStrategy) {
	tree := c.node.registry.tree
	c.pid = tree.spawn(schedulerName, actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case tick:
			c.look()
		case *actor.Restarting:
			c.mu.Lock()
			defer c.mu.Unlock()
			if !c.ended {
				c.timer.Reset(schedulerTick)
			}
		}
	}, actor.WithGuardian(strategy)))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(0, func() { tree.system.Root.Send(c.pid, tick{}) })
}

// expect sets a mailbox's earliest deadline, or removes it if the time is 0.
func (c *scheduler) expect(id capabilities.ID, at capabilities.Time) {
	if at == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.known[id]; ok && before <= at {
		return // the mailbox sets its next deadline when that one has passed
	}
	c.known[id] = at
	c.due.Add(at, id)
	if first, _ := c.due.First(); first.Key == id && c.timer != nil && !c.ended {
		c.timer.Reset(c.pause())
	}
}

// pause returns the time until the next deadline, at most schedulerTick. The caller has the lock.
func (c *scheduler) pause() time.Duration {
	first, ok := c.due.First()
	if !ok {
		return schedulerTick
	}
	until := time.Duration(first.At-c.node.clock()) * time.Millisecond
	return min(max(until, 0), schedulerTick)
}

// behindLeast is how far the clock has to be behind the log for that to be said. Smaller steps are those of a clock that is kept right.
const behindLeast = capabilities.Time(60_000)

// noteClock says once that the clock is behind the newest time in the log: it was put back, or had run ahead before.
func (c *scheduler) noteClock() {
	behind := c.node.behind()
	if behind < behindLeast {
		c.behind = false
		return
	}
	if !c.behind {
		c.behind = true
		c.node.log.Warn("the clock is behind the newest time in the log: deadlines and series go by the clock; what is logged keeps that time, and leave "+
			"ends by it, until the clock has caught up", "behind", capabilities.Span(time.Duration(behind/1000)*time.Second))
	}
}

// look sends a message to each mailbox whose deadline has passed, and records pending acks. It passivates idle
// mailboxes, frees idle schemas, and archives the log beyond the retention.
func (c *scheduler) look() {
	c.noteClock()
	for _, id := range c.passed(c.node.clock()) {
		c.node.registry.tell(id, 0, expireForms{c, id})
	}
	if c.node.journal.Flushing() < slowDisk {
		c.node.registry.recordAllAcks()
	}
	idle := time.Now().Add(-c.node.o.Idle)
	c.node.registry.passivate(idle)
	c.node.schemas.expire(idle)
	c.node.archive.keepRetention()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.timer.Reset(c.pause())
	}
}

// expireForms is the scheduler's message to a mailbox with a deadline that has passed. The actor expires forms before
// every message, so the handler only schedules the next deadline.
type expireForms struct {
	scheduler *scheduler
	mailbox   capabilities.ID
}

func (m expireForms) handle(b *mailboxActor) {
	next, now := b.state.Summary().Deadline, b.node.clock()
	if next != 0 && next <= now { // the forms could not be expired yet
		next = now.Add(schedulerTick)
	}
	m.scheduler.expect(m.mailbox, next)
}

func (m expireForms) fail(err error) {
	m.scheduler.node.log.Warn("deadline not met", "mailbox", m.mailbox.String(), "error", err)
	m.scheduler.expect(m.mailbox, m.scheduler.node.clock().Add(schedulerTick))
}

func (c *scheduler) passed(now capabilities.Time) []capabilities.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []capabilities.ID
	for first, ok := c.due.First(); ok && first.At <= now; first, ok = c.due.First() {
		c.due.Drop()
		if c.known[first.Key] == first.At {
			delete(c.known, first.Key)
			ids = append(ids, first.Key)
		}
	}
	return ids
}

func (c *scheduler) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
}

// later calls a function after a pause, unless the node has ended by then.
func (n *Node) later(pause time.Duration, do func()) {
	time.AfterFunc(pause, func() {
		if n.life.Err() == nil {
			do()
		}
	})
}

// Failed work is retried after pauses that grow from retryFirst to retryMost.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
)
