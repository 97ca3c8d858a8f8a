package ws

import (
	"bytes"
	"context"
	"sync"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/compat"
	"parley/internal/websocket"
)

// session is one WebSocket connection and all work that belongs to it.
//
// One goroutine reads, one writes, and each request has its own. Frames wait in a bounded queue to be written; a sender
// waits while it is full. A client that does not take a frame in time is cut off. Only work of this client waits for it.
//
// A session ends in order: it reads no more, cuts waits short, answers the calls under way, and sends the close frame.
// It ends at once when the connection breaks.
type session struct {
	server    *Server
	conn      *websocket.Conn
	principal api.Principal
	agent     api.Agent // of the principal

	acts  context.Context // of calls, which outlast the connection
	alive context.Context // ends with the connection
	die   context.CancelFunc
	ctx   context.Context // ends when the session begins to end
	cut   context.CancelFunc

	out  chan queued    // frames to write; closed when no more can come
	work sync.WaitGroup // goroutines that may still write

	load          *api.Load
	turns         frameQueue
	subscriptions subscriptions
	relay         *compat.Relay

	mu     sync.Mutex // guards what is below
	ending bool
	code   int
	reason string
}

const (
	maxQueuedFrames = 64
	frameTime       = 30 * time.Second // in which a client takes a frame, or answers a ping
	keepAliveTime   = 30 * time.Second // between pings
	maxFrame        = api.MaxBody
	normalClosure   = websocket.Normal
	stoppingClosure = websocket.GoingAway
)

func newSession(s *Server, conn *websocket.Conn, p api.Principal, agent api.Agent) *session {
	c := &session{
		server: s, conn: conn, principal: p, agent: agent, out: make(chan queued, maxQueuedFrames),
		load: api.NewLoad(MaxCalls, MaxWaits, maxLoaded), code: normalClosure,
	}
	c.acts = s.severed
	c.alive, c.die = context.WithCancel(c.acts)
	c.ctx, c.cut = context.WithCancel(c.alive)
	may := func(s api.Scope) bool { return p.May(api.Operation{Scope: s}) == nil }
	c.relay = compat.NewRelay(clientOf{c}, compat.Options{
		Asks: may(api.ScopeRead) && may(api.ScopeAsk), Answers: may(api.ScopeRead) && may(api.ScopeAnswer),
		Locks: s.locks, Monitor: s.monitor,
	})
	return c
}

// run serves the session, and returns when all of its goroutines have ended.
func (c *session) run() {
	defer c.die()
	defer c.server.backend.WhileGood(c.principal, c.endToken)()
	defer context.AfterFunc(c.server.draining, func() { c.end(stoppingClosure, "the node is stopping") })()
	var hands sync.WaitGroup
	hands.Go(c.write)
	hands.Go(c.closeQueue)
	c.listen()
	c.end(normalClosure, "")
	c.die()
	hands.Wait()
	for q := range c.out { // no client takes them
		q.held.Release()
	}
}

// queued is a frame to write, and its charge until it is written.
type queued struct {
	text []byte
	held *api.Charge
}

// enter adds to the work of the session, unless it is ending. If it reports true, the caller calls c.work.Done.
func (c *session) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ending {
		c.work.Add(1)
	}
	return !c.ending
}

// end begins to end the session. The first reason counts.
func (c *session) end(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ending {
		c.ending, c.code, c.reason = true, code, reason
		c.cut()
	}
}

// closure returns the code and the reason of the close frame.
func (c *session) closure() (int, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code, c.reason
}

// listen handles frames until the connection ends.
func (c *session) listen() {
	if c.enter() {
		c.work.Go(c.followForms)
		c.work.Done()
	}
	for {
		kind, text, err := c.conn.Read()
		if err != nil {
			return
		}
		if c.enter() { // frames that come while it ends are dropped
			c.receive(kind, bytes.Clone(text)) // a handler that keeps it charges for it
			c.work.Done()
		}
	}
}

// followForms sends the client forms of dialects until the session ends.
func (c *session) followForms() {
	if err := c.survives("follow", func() error { return c.relay.Follow(c.ctx) }); err != nil && c.ctx.Err() == nil {
		c.note("follow", err)
		c.end(websocket.TryLater, "the mailbox cannot be read now")
	}
}

// clientOf is the client of a session, as dialects see it.
type clientOf struct{ c *session }

// Agent implements compat.Session.
func (k clientOf) Agent() api.Agent { return k.c.agent }

// Context implements compat.Session.
func (k clientOf) Context() context.Context { return k.c.acts }

// Check implements compat.Session.
func (k clientOf) Check() error { return k.c.check(k.c.acts) }

// Tell implements compat.Session.
func (k clientOf) Tell(frame any) { k.c.tell(frame) }

// reasonOf returns an error as the reason of a close frame, which has room for 123 bytes.
func reasonOf(err error) string {
	reason := api.Shown(err).Error()
	return reason[:min(len(reason), 120)]
}

// closeQueue closes the queue when no goroutine can write any more.
func (c *session) closeQueue() {
	<-c.ctx.Done()
	c.end(normalClosure, "") // the connection may have ended by itself
	c.work.Wait()
	close(c.out)
}

// write writes queued frames, then the close frame.
func (c *session) write() {
	defer c.die()
	for q := range c.out {
		err := c.conn.Write(websocket.Text, q.text)
		q.held.Release()
		if err != nil { // the client has gone, or is too slow
			c.end(websocket.Policy, "too slow")
			return
		}
	}
	code, reason := c.closure()
	c.conn.Close(code, reason)
}

// queue appends a frame to the output, and blocks while the queue is full. The frame is charged to the account until it is written. A
// client with too many unread frames is cut off. It can come back with its last cursor.
func (c *session) queue(text []byte) {
	held := api.ChargeOf(c.principal.Account())
	if err := held.Add(int64(len(text))); err != nil {
		c.end(websocket.TryLater, reasonOf(err))
		c.die()
		return
	}
	c.queueCharged(text, held)
}

// queueCharged queues a frame for which held was charged.
func (c *session) queueCharged(text []byte, held *api.Charge) {
	select {
	case c.out <- queued{text, held}:
	case <-c.alive.Done():
		held.Release()
	}
}

// tell encodes a frame and queues it.
func (c *session) tell(frame any) {
	text, err := frameText(frame)
	if err != nil {
		c.server.monitor.Log.Error("a frame cannot be written", "error", err)
		text, err = frameText(compat.Failed(compat.Regarding{}, parley.Refuse(parley.Internal, "internal error")))
	}
	if err == nil {
		c.queue(text)
	}
}

// check refuses with UNAUTHENTICATED, and ends the session, when its token has ended.
func (c *session) check(ctx context.Context) error {
	err := c.server.backend.Check(ctx, c.principal)
	if err != nil {
		c.endToken()
	}
	return err
}

func (c *session) endToken() {
	c.end(websocket.Policy, "the token is not good any more")
}

// maxWaitingFrames bounds the dialect frames of one session that wait to be handled.
const maxWaitingFrames = 256

// frameQueue handles frames one after the other, in the order in which they arrived: a dialect's frame may depend on the
// one before it. It has no goroutine of its own.
type frameQueue struct {
	mu      sync.Mutex
	waiting []func()
	busy    bool
}

// add queues a turn, or refuses with RATE_LIMITED. A caller that is told that it added the first one calls next until that
// reports false.
func (q *frameQueue) add(turn func()) (first bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxWaitingFrames {
		return false, parley.Refuse(parley.RateLimited, "the connection has %d frames waiting already", maxWaitingFrames).
			WithHint("send more when some have been answered")
	}
	q.waiting = append(q.waiting, turn)
	first, q.busy = !q.busy, true
	return first, nil
}

// next runs the first turn, and reports whether there was one.
func (q *frameQueue) next() bool {
	q.mu.Lock()
	if len(q.waiting) == 0 {
		q.busy, q.waiting = false, nil
		q.mu.Unlock()
		return false
	}
	turn := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.mu.Unlock()
	turn()
	return true
}
