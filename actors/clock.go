package actors

import (
	"container/heap"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley/capabilities"
)

// clock sees to deadlines, and to rest for the mailboxes that are idle. What it knows follows from the
// log, so a deadline that passed while the node was down is met when it is up again.
type clock struct {
	node *Node
	pid  *actor.PID

	mu    sync.Mutex
	due   dueHeap
	known map[capabilities.ID]capabilities.Time // the earliest deadline in the heap by mailbox
	timer *time.Timer
	ended bool
}

// clockTick bounds how late the clock notices that the wall clock was set, and how long idle mailboxes
// wait for their rest.
const clockTick = time.Second

type tick struct{}

func newClock(n *Node) *clock {
	return &clock{node: n, known: map[capabilities.ID]capabilities.Time{}}
}

func (c *clock) spawn() {
	root := c.node.roster.system.Root
	c.pid = root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(tick); ok {
			c.look()
		}
	}, actor.WithGuardian(c.node.roster.crash)))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(0, func() { root.Send(c.pid, tick{}) })
}

// expect notes a mailbox's earliest deadline. Zero is none.
func (c *clock) expect(id capabilities.ID, at capabilities.Time) {
	if at == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.known[id]; ok && before <= at {
		return // the mailbox says its next deadline when that one has passed
	}
	c.known[id] = at
	heap.Push(&c.due, dueMailbox{at: at, id: id})
	if c.due[0].id == id && c.timer != nil && !c.ended {
		c.timer.Reset(c.pause())
	}
}

// pause is how long until there is something to look at. The caller has the lock.
func (c *clock) pause() time.Duration {
	if len(c.due) == 0 {
		return clockTick
	}
	until := time.Duration(c.due[0].at-capabilities.At(c.node.o.Clock())) * time.Millisecond
	return min(max(until, 0), clockTick)
}

// look tells the mailboxes whose deadline has passed, has receipts noted, and puts the idle ones to rest.
func (c *clock) look() {
	for _, id := range c.passed(c.node.now()) {
		c.node.roster.tell(id, visit{run: c.expire, lost: func(err error) {
			c.node.log.Warn("deadline not met", "mailbox", id.String(), "error", err)
			c.node.clock.expect(id, c.node.now().Add(clockTick)) // later, then
		}})
	}
	if c.node.journal.Flushing() < slowDisk {
		c.node.roster.noteAll()
	}
	c.node.roster.rest(time.Now().Add(-c.node.o.Idle))
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.timer.Reset(c.pause())
	}
}

// expire is the clock's visit: any visit meets the deadlines, so what is left is to say when to come again.
func (c *clock) expire(b *box) {
	next := b.state.Summary().Deadline
	if next != 0 && next <= c.node.now() { // it could not be met, for now
		next = c.node.now().Add(clockTick)
	}
	c.expect(b.seat.id, next)
}

func (c *clock) passed(now capabilities.Time) []capabilities.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []capabilities.ID
	for len(c.due) > 0 && c.due[0].at <= now {
		d := heap.Pop(&c.due).(dueMailbox)
		if c.known[d.id] == d.at {
			delete(c.known, d.id)
			ids = append(ids, d.id)
		}
	}
	return ids
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
}

type dueMailbox struct {
	at capabilities.Time
	id capabilities.ID
}

// dueHeap has the earliest on top.
type dueHeap []dueMailbox

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(dueMailbox)) }
func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
