package gateway

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley"
)

// conversation is one WebSocket connection and all that goes on over it.
//
// One goroutine reads, one writes, and each request has its own. What is to be written waits in a queue that has
// bounds: who fills it waits too, and a client that does not take a frame in time is cut off. Nothing here waits
// for a client but what that client asked for.
//
// It ends in order: no more is heard, waits are cut short, what is under way ends and is answered, then comes the
// close frame. Or at once, when the connection breaks.
type conversation struct {
	server    *Server
	conn      *websocket.Conn
	principal *principal

	acts  context.Context // of what was heard, which is done whether or not the client stays to be told
	alive context.Context // ends with the connection
	die   context.CancelFunc
	ctx   context.Context // ends when the conversation is to end
	cut   context.CancelFunc

	out  chan queued    // what is to be written; closed when no more can come
	work sync.WaitGroup // whoever may still write

	load          load
	turns         turnQueue
	subscriptions subscriptions
	desk          desk

	mu     sync.Mutex // guards what is below
	ending bool
	code   websocket.StatusCode
	reason string
}

const (
	maxQueuedFrames  = 64
	frameTime        = 30 * time.Second // in which a client takes a frame, or answers a ping
	keepAliveTime    = 30 * time.Second // between pings
	maxFrame         = MaxBody
	normalFarewell   = websocket.StatusNormalClosure
	stoppingFarewell = websocket.StatusGoingAway
)

func newConversation(s *Server, conn *websocket.Conn, p *principal) *conversation {
	conn.SetReadLimit(maxFrame)
	c := &conversation{
		server: s, conn: conn, principal: p, out: make(chan queued, maxQueuedFrames),
		load: load{calls: admission{limit: maxCalls}, waits: admission{limit: maxWaits}, room: maxLoaded}, code: normalFarewell,
	}
	c.acts = p.as(s.severed)
	c.alive, c.die = context.WithCancel(c.acts)
	c.ctx, c.cut = context.WithCancel(c.alive)
	c.desk.open(c)
	return c
}

// run goes on until the conversation has ended and nothing of it is left.
func (c *conversation) run() {
	defer c.die()
	defer c.server.whileGood(c.principal, c.endToken)()
	defer context.AfterFunc(c.server.draining, func() { c.end(stoppingFarewell, "the node is stopping") })()
	var hands sync.WaitGroup
	hands.Go(c.write)
	hands.Go(c.keepAlive)
	hands.Go(c.closeQueue)
	c.listen()
	c.end(normalFarewell, "")
	c.die()
	hands.Wait()
	for q := range c.out { // nobody is there to be told
		q.held.release()
	}
	_ = c.conn.CloseNow() // it is closed, or broken
}

// queued is a frame that is to be written, and what is charged for it until it is.
type queued struct {
	text []byte
	held *charge
}

// enter takes part in the work of the conversation, unless it is ending. Whoever did leaves by c.work.Done.
func (c *conversation) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ending {
		c.work.Add(1)
	}
	return !c.ending
}

// end has the conversation end. The first reason stands.
func (c *conversation) end(code websocket.StatusCode, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ending {
		c.ending, c.code, c.reason = true, code, reason
		c.cut()
	}
}

func (c *conversation) farewell() (websocket.StatusCode, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.code, c.reason
}

// listen hears frames until the connection ends.
func (c *conversation) listen() {
	if c.enter() {
		c.work.Go(c.desk.follow)
		c.work.Done()
	}
	for {
		kind, text, held, err := c.read()
		if err != nil {
			return
		}
		if c.enter() { // what comes while it ends is not heard
			held.release() // whoever keeps it is charged for it
			c.hear(kind, text)
			c.work.Done()
		}
	}
}

// read reads a frame. It is charged to the account while it comes, and has to come in time.
func (c *conversation) read() (websocket.MessageType, []byte, *charge, error) {
	held := &charge{account: c.principal.account}
	kind, r, err := c.conn.Reader(c.alive)
	if err != nil {
		return 0, nil, held, err
	}
	late := time.AfterFunc(c.server.frameTime, c.die)
	defer late.Stop()
	var buf bytes.Buffer
	for step := int64(bodyFree); ; step = bodyStep {
		n, err := buf.ReadFrom(io.LimitReader(r, step))
		if err == nil && n < step {
			return kind, buf.Bytes(), held, nil
		}
		if err == nil {
			if err = held.add(bodyStep); err != nil {
				c.end(websocket.StatusTryAgainLater, reasonOf(err))
			}
		}
		if err != nil {
			held.release()
			return 0, nil, held, err
		}
	}
}

// reasonOf returns an error as the reason of a close frame, which has room for 123 bytes.
func reasonOf(err error) string {
	reason := shown(err).Error()
	return reason[:min(len(reason), 120)]
}

// closeQueue closes the queue when nobody can write any more.
func (c *conversation) closeQueue() {
	<-c.ctx.Done()
	c.end(normalFarewell, "") // the connection may have ended by itself
	c.work.Wait()
	close(c.out)
}

// write writes what is queued, then the close frame.
func (c *conversation) write() {
	defer c.die()
	for q := range c.out {
		ctx, cancel := context.WithTimeout(c.alive, c.server.frameTime)
		err := c.conn.Write(ctx, websocket.MessageText, q.text)
		cancel()
		q.held.release()
		if err != nil { // it is gone, or too slow: nothing more can be told it
			c.end(websocket.StatusPolicyViolation, "too slow")
			return
		}
	}
	code, reason := c.farewell()
	_ = c.conn.Close(code, reason) // who has gone away does not miss it
}

// say queues a frame, and waits for room. It is charged to the account until it is written. Who leaves too much unread
// is cut off: it comes back with its last cursor.
func (c *conversation) say(text []byte) {
	held := &charge{account: c.principal.account}
	if err := held.add(int64(len(text))); err != nil {
		c.end(websocket.StatusTryAgainLater, reasonOf(err))
		c.die()
		return
	}
	c.sayCharged(text, held)
}

// sayCharged queues a frame for which held was charged.
func (c *conversation) sayCharged(text []byte, held *charge) {
	select {
	case c.out <- queued{text, held}:
	case <-c.alive.Done():
		held.release()
	}
}

// tell says a frame that is not text yet.
func (c *conversation) tell(frame any) {
	text, err := frameText(frame)
	if err != nil {
		c.server.log.Error("a frame cannot be written", "error", err)
		text, err = frameText(failed(regarding{}, parley.Refuse(parley.Internal, "internal error")))
	}
	if err == nil {
		c.say(text)
	}
}

// keepAlive finds out whether the client is still there.
func (c *conversation) keepAlive() {
	tick := time.NewTicker(c.server.keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(c.alive, c.server.frameTime)
		err := c.conn.Ping(ctx)
		cancel()
		if err != nil {
			c.die()
			return
		}
	}
}

// check refuses when the token is good no more, and ends the conversation.
func (c *conversation) check(ctx context.Context) error {
	err := c.server.check(ctx, c.principal)
	if err != nil {
		c.endToken()
	}
	return err
}

func (c *conversation) endToken() {
	c.end(websocket.StatusPolicyViolation, "the token is not good any more")
}
