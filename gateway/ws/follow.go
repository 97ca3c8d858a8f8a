package ws

import (
	"context"
	"math"
	"sync"

	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/mux"
)

// followMessagesRequest is the body of a follow of messages, from a cursor on.
type followMessagesRequest struct {
	api.Acting
	view.MessageFilter
	Cursor api.Cursor `json:"cursor,omitempty"`
}

// messageItem is a followed message. A follow with its cursor goes on after it.
type messageItem struct {
	Cursor  string       `json:"cursor"`
	Message view.Message `json:"message"`
}

// followMessages follows the agent's messages.
func (c *call) followMessages(allowed uint64) error {
	var r followMessagesRequest
	if err := c.request.Read(&r); err != nil {
		return err
	}
	at, err := api.ParsePosition(string(r.Cursor))
	if err != nil {
		return err
	}
	return c.follow(r.As, allowed, func(_ context.Context, a api.Agent, changed func()) (source, error) {
		return &changedMessages{follower: api.NewFollower(a.Mail(), r.MessageFilter, at), end: a.Mail().Watch(changed)}, nil
	})
}

// changedMessages yields the messages of a follow.
type changedMessages struct {
	follower *api.Follower
	end      func()
	batch    api.Batch
	next     int // of the batch
}

func (s *changedMessages) item(ctx context.Context) (item any, err error) {
	if s.next == len(s.batch.Messages) {
		s.next = 0
		if s.batch, err = s.follower.Next(ctx); err != nil || len(s.batch.Messages) == 0 {
			return nil, err
		}
	}
	i := s.next
	s.next++
	return messageItem{s.batch.After(i).String(), s.batch.Messages[i]}, nil
}

func (s *changedMessages) stop() { s.end() }

// followAgentsRequest is the body of a follow of agents.
type followAgentsRequest struct {
	api.Acting
	view.AgentFilter
	AgentID string `json:"agentId,omitempty"` // only this one
}

// The kinds of items of a follow of agents.
const (
	upsert = "upsert"
	remove = "remove" // the filter no longer picks the agent
	told   = "told"   // all agents have been sent that there were
)

// agentItem is a followed agent, as it is now.
type agentItem struct {
	Kind  string            `json:"kind"`
	Agent *view.AgentStatus `json:"agent,omitempty"`
}

// followAgents follows the agents that the agent sees.
func (c *call) followAgents(r followAgentsRequest, allowed uint64) error {
	return c.follow(r.As, allowed, func(ctx context.Context, a api.Agent, changed func()) (source, error) {
		w, err := a.WatchAgents(ctx, r.AgentFilter, r.AgentID, changed)
		if err != nil {
			return nil, err
		}
		return &agentChanges{watch: w}, nil
	})
}

// agentChanges yields the agents of a follow.
type agentChanges struct {
	watch api.AgentWatch
	news  []view.AgentChange
	read  bool // the agents that there were
	told  bool // that all of them were sent
}

func (s *agentChanges) item(ctx context.Context) (any, error) {
	for len(s.news) == 0 {
		if s.read && !s.told {
			s.told = true
			return agentItem{Kind: told}, nil
		}
		news, err := s.watch.Next(ctx)
		if err != nil || s.told && len(news) == 0 {
			return nil, err
		}
		s.news, s.read = news, true
	}
	c := s.news[0]
	s.news = s.news[1:]
	if c.Gone {
		return agentItem{remove, &c.Status}, nil
	}
	return agentItem{upsert, &c.Status}, nil
}

func (s *agentChanges) stop() { s.watch.Stop() }

// source yields what is followed.
type source interface {
	// item returns the next item, or nil if there is none now. It does not wait.
	item(context.Context) (any, error)
	// stop ends what the source watches.
	stop()
}

// follow sends the items of a source as they come and as the client allows. It has a goroutine only while it has something
// to do.
type follow struct {
	call   *call
	as     string
	open   func(ctx context.Context, a api.Agent, changed func()) (source, error)
	agent  api.Agent // whose follow it is
	source source    // of the goroutine; nil before it is open

	mu      sync.Mutex
	credit  uint64 // items that the client takes
	running bool   // it has a goroutine
	again   bool   // which has to look again
	ended   bool
}

// follow has the items of a source sent until the follow ends. Open opens the source, which calls changed when it may have
// items.
func (c *call) follow(as string, allowed uint64, open func(ctx context.Context, a api.Agent, changed func()) (source, error)) error {
	if err := c.agent.principal.Account().Take(api.KindSubscriptions, 1); err != nil {
		return err
	}
	f := &follow{call: c, as: as, open: open, credit: allowed}
	c.session.mu.Lock()
	if t := c.session.under[c.id]; t != nil {
		t.follow = f
	}
	c.session.mu.Unlock()
	c.session.mayCancel(c.id, f.cancel, nil)
	if c.began != nil {
		c.began()
	}
	f.wake()
	return nil
}

// wake has the follow look for what it can send. It does not block.
func (f *follow) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wakeLocked()
}

func (f *follow) wakeLocked() {
	switch {
	case f.ended:
	case f.running:
		f.again = true
	default:
		f.running = true
		f.call.session.work.Go(f.run)
	}
}

// allow allows n items more.
func (f *follow) allow(n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.credit += min(n, math.MaxUint64-f.credit)
	f.wakeLocked()
}

// cancel ends the follow for a client that wants no more of it.
func (f *follow) cancel() {
	if f.end() {
		f.call.session.server.monitor.Ended(f.call.session.calls, f.call.operation.Name, nil, f.call.started)
	}
}

// end ends the follow, and reports whether it had not ended. The goroutine, if there is one, stops the source.
func (f *follow) end() bool {
	f.mu.Lock()
	first, running := !f.ended, f.running
	f.ended = true
	f.mu.Unlock()
	if first {
		f.call.agent.principal.Account().Give(api.KindSubscriptions, 1)
		if !running {
			f.stop()
		}
	}
	return first
}

func (f *follow) stop() {
	if f.source != nil {
		f.source.stop()
	}
}

// run sends items until it has to wait.
func (f *follow) run() {
	for {
		err := f.call.session.server.monitor.Survive("follow", f.send)
		if err != nil && f.end() {
			f.call.finish(nil, err)
		}
		f.mu.Lock()
		f.running = f.again && !f.ended
		f.again = false
		running, ended := f.running, f.ended
		f.mu.Unlock()
		if ended {
			f.stop()
		}
		if !running {
			return
		}
	}
}

// send sends items until there are none or the client's credit is used up. It also ends while many sent items are in
// its queue.
func (f *follow) send() (err error) {
	c := f.call
	s, ctx := c.session, c.session.alive
	if f.source == nil {
		if f.agent, err = s.server.backend.Agent(ctx, c.agent.principal, f.as); err != nil {
			return err
		}
		if f.source, err = f.open(ctx, f.agent, f.wake); err != nil {
			return err
		}
	}
	for f.maySend() {
		item, err := f.source.item(ctx)
		if err != nil || item == nil {
			return err
		}
		if err := s.server.backend.Check(ctx, c.agent.principal); err != nil {
			return err
		}
		var body []byte
		err = f.agent.Mail().InTurn(ctx, func() (err error) {
			body, err = c.encode(nil, item)
			return err
		})
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.credit--
		f.mu.Unlock()
		s.item(c, mux.Item, body)
	}
	return nil
}

// maySend reports whether an item may be sent now. If not, the follow is woken when it may, unless it has ended.
func (f *follow) maySend() bool {
	f.mu.Lock()
	allowed := f.credit > 0 && !f.ended
	f.mu.Unlock()
	return allowed && f.call.session.out.hasRoom(&f.call.agent.queue, f)
}
