package ws

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"parley"
	"parley/gateway/api"
	"parley/gateway/mux"
	"parley/internal/websocket"
)

// Backend is what sessions need of a node.
type Backend interface {
	api.Backend
	// Identify returns the principal of a token. It refuses with UNAUTHENTICATED.
	Identify(ctx context.Context, token string) (api.Principal, error)
	// Begin performs an operation as Call does, for a caller without a goroutine, and calls done once. It returns false if
	// the operation needs a goroutine: then it has done nothing. Cancel ends a wait, which calls done no more; it is nil for
	// an operation that does not wait. With asked, an operation that asks waits for its outcome: where that comes later, asked is
	// called first. Neither may block.
	Begin(ctx context.Context, p api.Principal, operation string, r api.Request, asked func(resp any), done func(resp any, err error)) (cancel func(), begun bool)
	// AfterRelease calls fn once after all functions that Begin has to call now, which may be many. Fn must not block.
	AfterRelease(fn func())
}

// session serves one connection. One goroutine reads. What is to be written the server's writer writes, as far as the client takes
// it at once, and then a goroutine. A call that only waits for the disk or for somebody's answer holds none. Nor does a follow that has nothing to send. Each agent has its own
// places, and its own queue of frames, of which the writer takes turns.
//
// A session ends in order: it reads no more, cuts waits short, answers the calls under way, and closes the connection. It
// ends at once when the connection breaks.
type session struct {
	server   *Server
	conn     *websocket.Conn
	spelling spelling

	calls context.Context // of calls, which go on when the client goes away
	alive context.Context // ends with the connection
	die   context.CancelCauseFunc
	work  sync.WaitGroup

	mu     sync.Mutex
	agents []*agent // by the numbers that the client knows; nil where none is signed in
	free   []uint64 // numbers that the client has given back
	under  map[uint64]*task
	out    outbox
	going  bool   // nothing more is begun
	why    error  // the session ends when all is written
	ended  func() // ends what watches the mail for the spelling; nil if nothing does
}

// spelling is how the frames of a connection are written.
type spelling interface {
	// receive begins what a message asks for. An error ends the session.
	receive(kind websocket.Kind, message []byte) error
	// response appends the response to a call, or an item of a follow, as the body of a frame.
	response(b []byte, c *call, resp any) ([]byte, error)
	// frame appends a frame with a body of response; Refusal and Going have an error in its place. It appends nothing for a
	// frame that the spelling has not.
	frame(b []byte, k mux.Kind, id uint64, c *call, body []byte, err error) []byte
	// kind is that of messages. A text has one frame.
	kind() websocket.Kind
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
	call   *call // nil for a sign-in
	cancel func()
	cut    func()  // ends a wait of a node that stops with a result; nil: it is refused
	follow *follow // nil for a call
}

// newSession returns the session of a connection.
func newSession(server *Server, conn *websocket.Conn) *session {
	s := &session{server: server, conn: conn, calls: server.severed, under: map[uint64]*task{}}
	s.alive, s.die = context.WithCancelCause(s.calls)
	s.out = outbox{later: server.backend.AfterRelease, start: func() {
		s.work.Add(1)
		server.writer.add(s)
	}}
	return s
}

// serve serves the session until the client has gone away, the node stops, or the principal is good no more. It returns when
// all that was under way has ended.
func (s *session) serve() {
	stop := context.AfterFunc(s.server.draining, s.drain)
	defer stop()
	keep := context.AfterFunc(s.alive, s.conn.Cut)
	defer keep()
	s.read()
	<-s.alive.Done()
	s.endAll()
	s.out.drop()
	s.work.Wait()
}

// errEnded refuses what comes after the end of a connection.
var errEnded = parley.Refuse(parley.NotRunning, "the connection has ended")

// admit signs an agent in, and returns its number. When the principal of the first is good no more, the session ends.
// When another's is, that one has signed out.
func (s *session) admit(p api.Principal) (uint64, error) {
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
	a.stop = s.server.backend.WhileGood(p, func() {
		if n == 0 {
			s.stop(parley.Refuse(parley.Unauthenticated, "the token is not good any more"))
			return
		}
		s.end(n, a)
	})
	s.agents[n] = a
	return n, nil
}

func (s *session) read() {
	for {
		kind, message, err := s.conn.Read()
		if err == nil {
			err = s.server.monitor.Survive("a frame", func() error { return s.spelling.receive(kind, message) })
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
func (s *session) endAll() {
	s.mu.Lock()
	tasks, agents := s.under, s.agents
	s.under, s.agents, s.going = nil, nil, true
	s.mu.Unlock()
	if s.ended != nil {
		s.ended()
	}
	for _, t := range tasks {
		t.call.gone()
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
func (s *session) drain() {
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
		_ = s.send(s.agents[0], mux.Going, 0, nil, nil, api.ErrStopping)
	}
	s.closeIfIdle()
}

// closeIfIdle has the session end when all is written, if it goes and nothing is under way. The caller holds s.mu.
func (s *session) closeIfIdle() {
	if s.going && len(s.under) == 0 {
		s.out.close()
	}
}

// stop has the session end when all is written, and tells the client why. What is under way is given up.
func (s *session) stop(why error) {
	s.mu.Lock()
	if s.why == nil {
		s.why = why
	}
	s.going = true
	s.mu.Unlock()
	s.out.close()
}

// agent returns an agent that is signed in, or nil.
func (s *session) agent(n uint64) *agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= uint64(len(s.agents)) {
		return nil
	}
	return s.agents[n]
}

// signOut signs an agent out for its client, which gives its number back. The connection's own agent stays. The number
// of an agent whose token has ended is kept until then, as the client may still use it.
func (s *session) signOut(n uint64) {
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
func (s *session) end(n uint64, a *agent) {
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
func (s *session) cancel(id uint64, why error) {
	s.mu.Lock()
	t := s.under[id]
	if t == nil || t.cancel == nil && why != nil {
		s.mu.Unlock()
		return
	}
	delete(s.under, id)
	t.call.gone()
	if why != nil {
		_ = s.reply(t.agent, id, t.call, nil, why) // the session ends if the client takes no more
	}
	s.closeIfIdle()
	s.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
}

// cutShort ends a wait because the node stops.
func (s *session) cutShort(id uint64, t *task) {
	if t.cut != nil {
		t.cut()
		return
	}
	s.cancel(id, api.ErrStopping)
}

// allow gives a follow credit for n items more.
func (s *session) allow(id, n uint64) {
	s.mu.Lock()
	t := s.under[id]
	s.mu.Unlock()
	if t != nil && t.follow != nil {
		t.follow.allow(n)
	}
}

// mayCancel says how the wait of an ID ends early, and how when the node stops. If it has to end already, it does.
func (s *session) mayCancel(id uint64, cancel, cut func()) {
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

// finish answers what an ID is under way for. What was cancelled is not answered. An ID is under way until its answer is
// queued, since the session ends when nothing is.
func (s *session) finish(id uint64, a *agent, body []byte, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, under := s.under[id]
	if !under {
		return nil
	}
	delete(s.under, id)
	t.call.gone()
	err = s.reply(a, id, t.call, body, err)
	s.closeIfIdle()
	return err
}

// item sends a frame of what goes on. Nothing follows what was cancelled.
func (s *session) item(c *call, k mux.Kind, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, under := s.under[c.id]; under {
		_ = s.send(c.agent, k, c.id, c, body, nil) // the session ends if the client takes no more
	}
}

// reply sends a result or a refusal.
func (s *session) reply(a *agent, id uint64, c *call, body []byte, err error) error {
	k := mux.Result
	if err != nil {
		k = mux.Refusal
	}
	return s.send(a, k, id, c, body, err)
}

// send queues a frame. It ends the session if the client has left too much unread.
func (s *session) send(a *agent, k mux.Kind, id uint64, c *call, body []byte, why error) error {
	err := s.out.add(&a.queue, func(b []byte) []byte { return s.spelling.frame(b, k, id, c, body, why) })
	if err != nil {
		s.die(err)
	}
	return err
}

// writeNow writes a message of what there is, and reports whether there may be more. What would have to wait for the client, and the
// end of the session, it leaves to a goroutine.
func (s *session) writeNow() (more bool) {
	all := true
	more, err := s.writeNext(func(messages ...[]byte) (err error) {
		all, err = s.conn.WriteNow(s.spelling.kind(), messages...)
		return err
	})
	switch {
	case err != nil: // the client has gone
		s.die(err)
	case !all || !more && s.out.hasEnded():
		s.work.Go(s.write)
	case more:
		return true
	}
	s.work.Done()
	return false
}

// write writes what there is. The last writes the end of the session.
func (s *session) write() {
	more, err := true, s.conn.Flush()
	for more && err == nil {
		more, err = s.writeNext(func(messages ...[]byte) error { return s.conn.Write(s.spelling.kind(), messages...) })
	}
	if err != nil { // the client has gone, or is too slow
		s.die(err)
		return
	}
	if !s.out.hasEnded() || s.alive.Err() != nil {
		return
	}
	s.mu.Lock()
	why := s.why
	s.mu.Unlock()
	s.conn.Close(closure(why))
	s.die(why)
}

// writeNext calls write with the next message, or with the texts that would be one. It returns false if there is none.
func (s *session) writeNext(write func(messages ...[]byte) error) (more bool, err error) {
	buffer := messages.Get().(*[]byte)
	defer messages.Put(buffer)
	b, ends, more := s.out.next((*buffer)[:0])
	if cap(b) <= 2*writeSize {
		*buffer = b
	}
	if more {
		err = write(s.messages(b, ends)...)
	}
	return more, err
}

// messages holds buffers for messages.
var messages = sync.Pool{New: func() any { return new([]byte) }}

// messages returns the messages of frames that end at some places.
func (s *session) messages(b []byte, ends []int) [][]byte {
	if s.spelling.kind() == websocket.Binary {
		return [][]byte{b}
	}
	all, from := make([][]byte, len(ends)), 0
	for i, end := range ends {
		all[i], from = b[from:end], end
	}
	return all
}

// closure returns the code and the reason of a close frame.
func closure(why error) (code websocket.Code, reason string) {
	code = websocket.Normal
	switch parley.CodeOf(why) {
	case parley.NotRunning:
		code = websocket.GoingAway
	case parley.RateLimited, parley.QuotaExceeded:
		code = websocket.TryLater
	case parley.Unauthenticated, parley.InvalidArgument:
		code = websocket.Policy
	}
	if why == nil {
		return code, ""
	}
	return code, api.Shown(why).Message
}
