package ws

import (
	"bytes"
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/compat"
	"parley/gateway/mux"
	"parley/internal/websocket"
)

// Bounds of what one connection with texts may have under way. Waits do not delay calls.
const (
	MaxCalls  = 64
	MaxWaits  = 256
	maxLoaded = 8 << 20 // bytes of frames
)

// text is the spelling of frames of JSON, each a message of its own. Its calls have the IDs that the session gives them: a
// requestId is the client's alone. Frames of dialects are handled one after the other.
type text struct {
	*session
	load  *api.Load
	turns frameQueue
	relay *compat.Relay
	last  uint64 // ID

	mu   sync.Mutex
	open map[string]uint64 // the IDs of follows, by that of their subscription
}

const maxSubscriptions = 64 // of one connection

// newText returns the spelling of a session of a principal, which sends its agent's forms of dialects once it starts.
func newText(s *session, p api.Principal, agent api.Agent) *text {
	x := &text{session: s, load: api.NewLoad(MaxCalls, MaxWaits, maxLoaded), open: map[string]uint64{}}
	may := func(s api.Scope) bool { return p.May(api.Operation{Scope: s}) == nil }
	x.relay = compat.NewRelay(clientOf{api.Within{Caller: s.server.backend, Principal: p}, x, agent}, compat.Options{
		Asks: may(api.ScopeRead) && may(api.ScopeAsk), Answers: may(api.ScopeRead) && may(api.ScopeAnswer),
		Locks: s.server.locks, Monitor: s.server.monitor,
	})
	return x
}

// start begins to send the forms of dialects.
func (x *text) start(mail api.Mail) {
	r := &relaying{text: x}
	stop := mail.Watch(r.wake)
	x.ended = func() {
		r.end()
		stop()
	}
	r.wake()
}

// relaying has the relay of a session look for what has changed. It has a goroutine only while it has something to do: most
// connections are at rest.
type relaying struct {
	*text
	mu      sync.Mutex
	running bool // it has a goroutine
	again   bool // which has to look again
	over    bool
}

// wake has the relay look. It does not block.
func (r *relaying) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
	case r.running:
		r.again = true
	default:
		r.running = true
		r.work.Go(r.run)
	}
}

// end has it look no more.
func (r *relaying) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// goesOn reports whether the goroutine has to look again.
func (r *relaying) goesOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = r.again && !r.over
	r.again = false
	return r.running
}

func (r *relaying) run() {
	m := r.server.monitor
	for goesOn := true; goesOn; goesOn = r.goesOn() {
		if err := m.Survive("follow", func() error { return r.relay.Next(r.alive) }); err != nil && r.alive.Err() == nil {
			r.end()
			m.Failed(r.calls, "follow", err)
			r.stop(parley.Refuse(parley.RateLimited, "the mailbox cannot be read now"))
		}
	}
}

// clientOf is the client of a session, as dialects see it.
type clientOf struct {
	api.Within
	x     *text
	agent api.Agent
}

// Agent implements compat.Session.
func (k clientOf) Agent() api.Agent { return k.agent }

// Context implements compat.Session.
func (k clientOf) Context() context.Context { return k.x.calls }

// Check implements compat.Session.
func (k clientOf) Check() error { return k.x.server.backend.Check(k.x.calls, k.Principal) }

// Tell implements compat.Session. It waits for a client that has much unread.
func (k clientOf) Tell(frame any) {
	if a := k.x.agent0(); a != nil {
		k.x.out.waitForRoom(k.x.alive, &a.queue)
	}
	k.x.tell(frame)
}

func (*text) kind() websocket.Kind { return websocket.Text }

// agent0 returns the agent of the connection.
func (x *text) agent0() *agent { return x.session.agent(0) }

// receive handles a frame by its type.
func (x *text) receive(kind websocket.Kind, message []byte) error {
	a := x.agent0()
	if err := a.principal.Account().Pace(); err != nil {
		x.tell(compat.Failed(compat.Regarding{RequestID: requestIDOf(message)}, err))
		return nil
	}
	h, err := readHead(kind, message)
	if err != nil {
		x.tell(compat.Failed(compat.Regarding{RequestID: h.RequestID}, err))
		return nil
	}
	if f, ok := x.server.frames[h.Type]; ok {
		x.dispatch(f, h, bytes.Clone(message))
		return nil
	}
	name, isRequest := strings.CutSuffix(h.Type, "_request")
	o, ok := x.server.backend.Operations()[name]
	if !ok || !isRequest {
		x.tell(compat.Failed(h.Regarding, parley.Refuse(parley.InvalidArgument, "there is no type of frame %.80q", h.Type)))
		return nil
	}
	about := compat.Regarding{RequestID: h.RequestID}
	leave, err := x.load.Admit(o.Kind(), a.principal.Account(), len(message))
	if err != nil {
		x.server.monitor.Count(o.Name, err)
		x.tell(compat.Failed(about, err))
		return nil
	}
	c := x.call(a, o, about, message, leave)
	return x.begin(a, c.id, c, func() error { return c.try(mux.Call, 0) })
}

// call returns a call, with what gives back its places.
func (x *text) call(a *agent, o api.Operation, about compat.Regarding, message []byte, left func()) *call {
	x.last++
	return &call{session: x.session, agent: a, id: x.last, operation: o, request: textRequest(message), about: about, left: left, started: time.Now()}
}

// textRequest is the request of a frame of JSON.
type textRequest []byte

// Read implements api.Request.
func (r textRequest) Read(into any) error { return api.Decode(r, into) }

func (r textRequest) Size() int { return 0 } // it is charged with its place

func (r textRequest) Clone() request { return textRequest(bytes.Clone(r)) }

// tell encodes a frame and queues it.
func (x *text) tell(frame any) {
	b, err := frameText(frame)
	if err != nil {
		x.server.monitor.Log.Error("a frame cannot be written", "error", err)
		b, _ = frameText(compat.Failed(compat.Regarding{}, parley.Refuse(parley.Internal, "internal error"))) // it can
	}
	if a := x.agent0(); a != nil {
		_ = x.send(a, mux.Item, 0, nil, b, nil) // the session ends if the client takes no more
	}
}

// response appends the frame of a response, or of an item of a subscription.
func (x *text) response(b []byte, c *call, resp any) (_ []byte, err error) {
	var frame []byte
	switch item := resp.(type) {
	case messageItem:
		frame, err = frameText(MessageFrame{"message", c.subscription, item.Cursor, item.Message})
	case agentItem:
		if item.Kind != told {
			frame, err = frameText(AgentUpdateFrame{"agent_update", c.subscription, item.Kind, *item.Agent})
		} else if c.marks {
			frame, err = frameText(AgentsToldFrame{"agents_told", c.subscription})
		}
	default:
		frame, err = responseText(c.operation.Name, c.about, resp)
	}
	return append(b, frame...), err
}

// frame appends a body, which is the frame, or the frame of an error. A subscription ends with the node without one.
func (x *text) frame(b []byte, k mux.Kind, _ uint64, c *call, body []byte, err error) []byte {
	switch {
	case err == nil:
		return append(b, body...)
	case k == mux.Going || c == nil || c.subscription != "" && err == api.ErrStopping:
		return b
	}
	failed, unwritable := frameText(compat.Failed(c.about, err))
	if unwritable != nil {
		return b
	}
	return append(b, failed...)
}

// dispatch handles a frame that is no request of an operation, at once or in its turn.
func (x *text) dispatch(f frame, h compat.Head, message []byte) {
	leave, err := x.load.Keep(x.agent0().principal.Account(), len(message))
	if err != nil {
		x.tell(compat.Failed(h.Regarding, err))
		return
	}
	turn := func() {
		defer leave()
		if err := x.server.monitor.Survive(h.Type, func() error { return x.handle(f, &h, message) }); err != nil {
			x.server.monitor.Failed(x.calls, h.Type, err)
			x.tell(compat.Failed(h.Regarding, err))
		}
	}
	if f.atOnce {
		turn()
		return
	}
	first, err := x.turns.add(turn)
	if err != nil {
		leave()
		x.tell(compat.Failed(h.Regarding, err))
		return
	}
	if first {
		x.work.Go(func() {
			for x.turns.next() {
			}
		})
	}
}

func (x *text) handle(f frame, h *compat.Head, message []byte) error {
	a := x.agent0()
	if a == nil {
		return errEnded
	}
	if err := x.server.backend.Check(x.calls, a.principal); err != nil {
		return err
	}
	for _, needed := range f.scopes {
		if err := a.principal.May(api.Operation{Name: h.Type, Scope: needed}); err != nil {
			return err
		}
	}
	return f.handle(x, h, message)
}

// frame is a type of frame that is no request of an operation.
type frame struct {
	scopes []api.Scope
	handle func(x *text, h *compat.Head, message []byte) error // its error is sent to the client
	atOnce bool                                                // it does not wait for those before it
}

// frames returns all types of frames but requests of operations.
func frames() map[string]frame {
	looks := []api.Scope{api.ScopeRead}
	all := map[string]frame{
		"follow_messages":         {scopes: looks, handle: followFrame, atOnce: true},
		"subscribe_agent_updates": {scopes: looks, handle: agentsFrame, atOnce: true},
		"unsubscribe":             {scopes: looks, handle: unsubscribeFrame, atOnce: true},
	}
	for name, f := range compat.Frames() {
		all[name] = frame{scopes: f.Scopes, handle: func(x *text, h *compat.Head, message []byte) error { return f.Handle(x.relay, h, message) }}
	}
	return all
}

// followFrame opens a subscription to messages.
func followFrame(x *text, h *compat.Head, message []byte) error {
	var f SubscribeFrame
	if err := api.Decode(message, &f); err != nil {
		return err
	}
	return x.subscribe(h, "follow_messages", f.SubscriptionID, message, false, func(c *call) error { return c.followMessages(math.MaxUint64) })
}

// agentsFrame opens a subscription to agents.
func agentsFrame(x *text, h *compat.Head, message []byte) error {
	var f SubscribeAgentsFrame
	if err := api.Decode(message, &f); err != nil {
		return err
	}
	return x.subscribe(h, "fetch_agents", f.SubscriptionID, message, f.Mark, func(c *call) error {
		return c.followAgents(followAgentsRequest{f.Acting, f.Filter.AgentFilter, f.Filter.AgentID}, math.MaxUint64)
	})
}

// subscribe begins a follow until the client unsubscribes, or the session ends.
func (x *text) subscribe(h *compat.Head, operation, id string, message []byte, marks bool, follow func(*call) error) error {
	if id == "" || len(id) > compat.MaxRequestID {
		return parley.Refuse(parley.InvalidArgument, "a subscription has a subscriptionId of %d bytes at most", compat.MaxRequestID)
	}
	x.mu.Lock()
	_, twice := x.open[id]
	full := len(x.open) >= maxSubscriptions
	x.mu.Unlock()
	switch {
	case twice:
		return parley.Refuse(parley.InvalidArgument, "the connection has a subscription %.80q already", id)
	case full:
		return parley.Refuse(parley.QuotaExceeded, "the connection has %d subscriptions already", maxSubscriptions).
			WithHint("end some first, or open another connection")
	}
	a := x.agent0()
	if a == nil {
		return errEnded
	}
	c := x.call(a, x.server.backend.Operations()[operation], h.Regarding, message, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.open, id)
	})
	c.subscription, c.marks = id, marks
	c.began = func() {
		if h.RequestID != nil {
			x.tell(compat.Subscribed{Type: "subscribed", Regarding: h.Regarding})
		}
	}
	x.mu.Lock()
	x.open[id] = c.id
	x.mu.Unlock()
	return x.begin(a, c.id, c, func() error { return follow(c) })
}

// unsubscribeFrame ends a subscription. No frame of the subscription follows.
func unsubscribeFrame(x *text, h *compat.Head, message []byte) error {
	var f UnsubscribeFrame
	if err := api.Decode(message, &f); err != nil {
		return err
	}
	x.mu.Lock()
	id, is := x.open[f.SubscriptionID]
	x.mu.Unlock()
	switch {
	case f.RunID != "" && f.SubscriptionID == "":
		x.relay.LeaveRun(f.RunID)
	case is:
		x.cancel(id, nil)
	default:
		return parley.Refuse(parley.InvalidArgument, "there is no subscription %.80q", f.SubscriptionID)
	}
	if h.RequestID != nil {
		x.tell(compat.Subscribed{Type: "unsubscribed", Regarding: h.Regarding})
	}
	return nil
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
