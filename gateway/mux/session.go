package mux

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/internal/pack"
)

// Backend is what sessions need of a node.
type Backend interface {
	api.Backend
	// Identify returns the principal of a token. It refuses with UNAUTHENTICATED.
	Identify(ctx context.Context, token string) (api.Principal, error)
	// Begin performs an operation as Call does, for a caller without a goroutine, and calls done once. It returns false if
	// the operation needs a goroutine: then it has done nothing. Cancel ends a wait, which calls done no more; it is nil for
	// an operation that does not wait. Done must not block.
	Begin(ctx context.Context, p api.Principal, operation string, r api.Request, done func(resp any, err error)) (cancel func(), begun bool)
	// BeginAsk performs an operation that asks: form, request or approve. It calls asked once. If the outcome comes later, it
	// calls ended once afterwards, or not at all if forget is called first. Neither may block.
	BeginAsk(ctx context.Context, p api.Principal, operation string, r api.Request, asked func(resp any, later bool, err error), ended func(view.Outcome, error)) (forget func())
	// AfterRelease calls fn once after all functions that Begin and BeginAsk have to call now, which may be many. Fn must not
	// block.
	AfterRelease(fn func())
}

// Conn is a connection that keeps messages apart.
type Conn interface {
	// Read returns the next message, which is good until the next Read. It fails once the connection is cut or closed.
	Read() ([]byte, error)
	// Write writes a message. It does not keep it, and fails if the client does not take it in time.
	Write(message []byte) error
	// Close tells the client why, and closes the connection. Read and Write fail then.
	Close(why error)
	// Cut closes the connection at once.
	Cut()
}

// Options configure a Session.
type Options struct {
	Backend Backend
	Monitor api.Monitor
}

// Session serves one connection. One goroutine reads, one writes. A call that only waits for the disk or for somebody's
// answer holds none. Nor does a follow that has nothing to send. Each agent has its own places, and its own queue of
// frames, of which the writer takes turns.
type Session struct {
	o    Options
	conn Conn

	calls context.Context // of calls, which go on when the client goes away
	alive context.Context // ends with the connection
	die   context.CancelCauseFunc
	work  sync.WaitGroup

	mu     sync.Mutex
	agents []*agent // by the numbers that the client knows; nil where none is signed in
	free   []uint64 // numbers that the client has given back
	under  map[uint64]*task
	out    outbox
	going  bool  // nothing more is begun
	why    error // the session ends when all is written
}

// agent is one that is signed in.
type agent struct {
	principal api.Principal
	stop      func() // looking whether the principal is good
	queue     queue
	running   atomic.Int64
}

// task is what one ID is under way for. Cancel is nil for a call that goes on whatever its client wants.
type task struct {
	agent  *agent
	cancel func()
	cut    func()  // ends a wait of a node that stops with a result; nil: it is refused
	follow *follow // nil for a call
}

// Serve serves a connection for a principal. It ends when the client goes away, ctx ends, or the principal is good no
// more. When ctx ends, waits end with NOT_RUNNING, and calls under way are answered. They have the context calls, and
// go on when the client goes away. It returns why the session has ended: ErrStopping after ctx.
func Serve(ctx, calls context.Context, conn Conn, p api.Principal, o Options) error {
	s := &Session{o: o, conn: conn, calls: calls, under: map[uint64]*task{}, out: outbox{wake: make(chan struct{}, 1), later: o.Backend.AfterRelease}}
	s.alive, s.die = context.WithCancelCause(calls)
	if _, err := s.admit(p); err != nil {
		return err
	}
	var written sync.WaitGroup
	written.Go(s.write)
	stop := context.AfterFunc(ctx, s.drain)
	keep := context.AfterFunc(s.alive, conn.Cut)
	s.read()
	<-s.alive.Done()
	stop()
	keep()
	s.endAll()
	s.work.Wait()
	written.Wait()
	s.out.drop()
	return context.Cause(s.alive)
}

// errEnded refuses what comes after the end of a connection.
var errEnded = parley.Refuse(parley.NotRunning, "the connection has ended")

// admit signs an agent in, and returns its number. When the principal of the first is good no more, the session ends.
// When another's is, that one has signed out.
func (s *Session) admit(p api.Principal) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under == nil { // the connection has ended, and nobody would sign the agent out
		return 0, errEnded
	}
	n := uint64(len(s.agents))
	if last := len(s.free) - 1; last >= 0 {
		n, s.free = s.free[last], s.free[:last]
	} else if n >= maxAgents {
		return 0, parley.Refuse(parley.QuotaExceeded, "%d agents are signed in on the connection already", maxAgents)
	} else {
		s.agents = append(s.agents, nil)
	}
	a := &agent{principal: p, queue: queue{account: p.Account()}}
	a.stop = s.o.Backend.WhileGood(p, func() {
		if n == 0 {
			s.stop(parley.Refuse(parley.Unauthenticated, "the token is not good any more"))
			return
		}
		s.end(n, a)
	})
	s.agents[n] = a
	return n, nil
}

func (s *Session) read() {
	for {
		message, err := s.conn.Read()
		if err == nil {
			err = ReadClient(message, s.dispatch)
		}
		if _, ok := errors.AsType[*parley.Error](err); ok {
			s.stop(err)
			return
		}
		if err != nil {
			s.die(err)
			return
		}
	}
}

// endAll ends all that is under way, when the connection has ended.
func (s *Session) endAll() {
	s.mu.Lock()
	tasks, agents := s.under, s.agents
	s.under, s.agents, s.going = nil, nil, true
	s.mu.Unlock()
	for _, t := range tasks {
		if t.cancel != nil {
			t.cancel()
		}
	}
	for _, a := range agents {
		if a != nil {
			a.stop()
		}
	}
}

// drain begins nothing more, and ends what waits.
func (s *Session) drain() {
	s.mu.Lock()
	s.going = true
	if s.why == nil {
		s.why = api.ErrStopping
	}
	waiting := map[uint64]*task{}
	for id, t := range s.under {
		if t.cancel != nil {
			waiting[id] = t
		}
	}
	s.mu.Unlock()
	for id, t := range waiting {
		s.cutShort(id, t)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.agents) > 0 {
		_ = s.send(s.agents[0], Frame{Kind: Going, Body: errorBody(api.ErrStopping)})
	}
	s.closeIfIdle()
}

// closeIfIdle has the session end when all is written, if it goes and nothing is under way. The caller holds s.mu.
func (s *Session) closeIfIdle() {
	if s.going && len(s.under) == 0 {
		s.out.close()
	}
}

// stop has the session end when all is written, and tells the client why. What is under way is given up.
func (s *Session) stop(why error) {
	s.mu.Lock()
	if s.why == nil {
		s.why = why
	}
	s.going = true
	s.mu.Unlock()
	s.out.close()
}

// dispatch handles a frame. An error ends the session.
func (s *Session) dispatch(f Frame) error {
	switch f.Kind {
	case Cancel:
		s.cancel(f.ID, nil)
		return nil
	case Credit:
		s.mu.Lock()
		t := s.under[f.ID]
		s.mu.Unlock()
		if t != nil && t.follow != nil {
			t.follow.allow(f.Credit)
		}
		return nil
	case SignOut:
		s.signOut(f.Agent)
		return s.reply(s.agent(0), f.ID, pack.AppendMap(nil, 0), nil)
	}
	if a := s.agent(f.Agent); a != nil {
		return s.begin(a, f)
	}
	return s.reply(s.agent(0), f.ID, nil, parley.Refuse(parley.Unauthenticated, "no agent %d is signed in on this connection", f.Agent))
}

// agent returns an agent that is signed in, or nil.
func (s *Session) agent(n uint64) *agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= uint64(len(s.agents)) {
		return nil
	}
	return s.agents[n]
}

// signIn signs in the agent of a token.
func (s *Session) signIn(ctx context.Context, body []byte) ([]byte, error) {
	text, err := ToJSON(body)
	if err != nil {
		return nil, err
	}
	var in struct {
		Token string `json:"token"`
	}
	if err := api.Decode(text, &in); err != nil {
		return nil, err
	}
	p, err := s.o.Backend.Identify(ctx, in.Token)
	if err != nil {
		return nil, err
	}
	n, err := s.admit(p)
	if err != nil {
		return nil, err
	}
	return pack.AppendUint(pack.AppendString(pack.AppendMap(nil, 1), "agent"), n), nil
}

// signOut signs an agent out for its client, which gives its number back. The connection's own agent stays. The number
// of an agent whose token has ended is kept until then, as the client may still use it.
func (s *Session) signOut(n uint64) {
	a := s.agent(n)
	if n > 0 && a != nil {
		s.end(n, a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 && n < uint64(len(s.agents)) && !slices.Contains(s.free, n) {
		s.free = append(s.free, n)
	}
}

// end ends what an agent has under way on the connection, unless it has signed out already.
func (s *Session) end(n uint64, a *agent) {
	s.mu.Lock()
	if n >= uint64(len(s.agents)) || s.agents[n] != a {
		s.mu.Unlock()
		return
	}
	s.agents[n] = nil
	var its []uint64
	for id, t := range s.under {
		if t.agent == a {
			its = append(its, id)
		}
	}
	s.mu.Unlock()
	a.stop()
	for _, id := range its {
		s.cancel(id, parley.Refuse(parley.Unauthenticated, "the agent has signed out"))
	}
}

// cancel ends what an ID is under way for, if it can end, and refuses it with why. Nil refuses nothing: nobody waits.
func (s *Session) cancel(id uint64, why error) {
	s.mu.Lock()
	t := s.under[id]
	if t == nil || t.cancel == nil && why != nil {
		s.mu.Unlock()
		return
	}
	delete(s.under, id)
	if why != nil {
		_ = s.reply(t.agent, id, nil, why) // the session ends if the client takes no more
	}
	s.closeIfIdle()
	s.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
}

// cutShort ends a wait because the node stops.
func (s *Session) cutShort(id uint64, t *task) {
	if t.cut != nil {
		t.cut()
		return
	}
	s.cancel(id, api.ErrStopping)
}

// mayCancel says how the wait of an ID ends early, and how when the node stops. If it has to end already, it does.
func (s *Session) mayCancel(id uint64, cancel, cut func()) {
	s.mu.Lock()
	t := s.under[id]
	if t != nil {
		t.cancel, t.cut = cancel, cut
	}
	going := s.going
	s.mu.Unlock()
	switch {
	case t == nil:
		cancel() // it has ended
	case going:
		s.cutShort(id, t)
	}
}

// run runs a call on a goroutine. One that waits ends with the connection.
func (s *Session) run(a *agent, id uint64, waits bool, call func(context.Context)) error {
	if a.running.Add(1) > maxRunning {
		a.running.Add(-1)
		return parley.Refuse(parley.RateLimited, "the agent has %d calls under way on the connection already", maxRunning).
			WithHint("send more when some have been answered")
	}
	ctx, cancel := s.calls, func() {}
	if waits {
		ctx, cancel = context.WithCancel(s.alive)
		s.mayCancel(id, cancel, nil)
	}
	s.work.Go(func() {
		defer a.running.Add(-1)
		defer cancel()
		call(ctx)
	})
	return nil
}

// finish answers what an ID is under way for. What was cancelled is not answered. An ID is under way until its answer is
// queued, since the session ends when nothing is.
func (s *Session) finish(id uint64, a *agent, body []byte, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, under := s.under[id]; !under {
		return nil
	}
	delete(s.under, id)
	err = s.reply(a, id, body, err)
	s.closeIfIdle()
	return err
}

// item sends a frame of what goes on.
func (s *Session) item(id uint64, a *agent, k Kind, body []byte) {
	s.mu.Lock()
	_, under := s.under[id]
	s.mu.Unlock()
	if under {
		_ = s.send(a, Frame{Kind: k, ID: id, Body: body}) // the session ends if the client takes no more
	}
}

// reply sends a result or a refusal.
func (s *Session) reply(a *agent, id uint64, body []byte, err error) error {
	if err != nil {
		return s.send(a, Frame{Kind: Refusal, ID: id, Body: errorBody(err)})
	}
	return s.send(a, Frame{Kind: Result, ID: id, Body: body})
}

// send queues a frame. It ends the session if the client has left too much unread.
func (s *Session) send(a *agent, f Frame) error {
	err := s.out.add(&a.queue, f)
	if err != nil {
		s.die(err)
	}
	return err
}

// write writes messages until the session ends.
func (s *Session) write() {
	var message []byte
	for {
		var ok bool
		if message, ok = s.out.next(s.alive, message[:0]); !ok {
			break
		}
		if err := s.conn.Write(message); err != nil { // the client has gone, or is too slow
			s.die(err)
			return
		}
		if cap(message) > 2*writeSize {
			message = nil
		}
	}
	s.mu.Lock()
	why := s.why
	s.mu.Unlock()
	if s.alive.Err() == nil {
		s.conn.Close(why)
		s.die(why)
	}
}
