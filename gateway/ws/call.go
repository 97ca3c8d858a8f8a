package ws

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/compat"
	"parley/gateway/mux"
)

// The bounds of one agent on one connection.
const (
	maxAgents  = 1024    // of a connection, at once
	maxRunning = 1024    // under way on goroutines
	freeBody   = 4 << 10 // bytes of a request that its account is not charged
)

// asking has the operations whose outcome comes later.
var asking = map[string]bool{"form": true, "request": true, "approve": true}

// begin notes that an ID is under way, for a call unless that is nil, and begins it. It returns an error only for an ID that
// is under way already.
func (s *session) begin(a *agent, id uint64, c *call, do func() error) error {
	s.mu.Lock()
	_, twice := s.under[id]
	going := s.going
	if !twice && !going {
		s.under[id] = &task{agent: a, call: c}
	}
	s.mu.Unlock()
	switch {
	case twice:
		return parley.Refuse(parley.InvalidArgument, "the ID %d is under way already", id)
	case going:
		c.gone()
		return s.reply(a, id, c, nil, api.ErrStopping)
	}
	err := do()
	switch {
	case err == nil:
		return nil
	case c != nil:
		c.finish(nil, err)
		return nil
	}
	return s.finish(id, a, nil, err)
}

// try begins an operation, of which the request comes with a frame of a kind, or refuses it.
func (c *call) try(k mux.Kind, credit uint64) (err error) {
	s, account := c.session, c.agent.principal.Account()
	if err := s.mayBegin(c.agent, c.operation); err != nil {
		return err
	}
	if size := c.request.Size(); size > freeBody {
		c.held = api.ChargeOf(account)
		if err := c.held.Add(int64(size)); err != nil {
			return err
		}
	}
	switch k {
	case mux.Ask, mux.AskBy:
		err = c.ask()
	case mux.Follow:
		err = c.followMessages(credit)
	case mux.FollowAgents:
		var r followAgentsRequest
		if err = c.request.Read(&r); err == nil {
			err = c.followAgents(r, credit)
		}
	default:
		err = c.perform()
	}
	if !c.runs { // the request was read
		c.request = nil
		c.release()
	}
	return err
}

// mayBegin refuses an operation that the principal may not call, or not any more.
func (s *session) mayBegin(a *agent, o api.Operation) error {
	if err := a.principal.May(o); err != nil {
		return err
	}
	return s.server.backend.Check(s.calls, a.principal)
}

// request is what a call was sent.
type request interface {
	api.Request
	Size() int
	Clone() request // that is not part of a message
}

// call is the performance of one operation.
type call struct {
	session   *session
	agent     *agent
	id        uint64
	operation api.Operation
	request   request     // until it is read
	held      *api.Charge // of the request; nil if it is small
	entered   atomic.Bool // it has a place
	place     api.Kind
	runs      bool // on a goroutine, which reads the request
	plain     bool // its body was a map, and so is the response's
	started   time.Time

	// Of a text.
	about        compat.Regarding // which its response repeats
	left         func()           // gives back what it was admitted for
	subscription string           // "" for none
	marks        bool             // the end of the first items is an item
	began        func()           // is called before the first item
}

// perform performs the operation, on a goroutine if it needs one.
func (c *call) perform() error {
	if err := c.enter(c.operation.Kind()); err != nil {
		return err
	}
	cancel, begun := c.session.server.backend.Begin(c.session.calls, c.agent.principal, c.operation.Name, c.request, nil, func(resp any, err error) {
		c.leave()
		c.end(resp, err)
	})
	if cancel != nil {
		ended := func() {
			cancel()
			c.leave()
		}
		c.session.mayCancel(c.id, ended, func() { // the form is open, as when the time of a wait has passed
			ended()
			c.end(view.Outcome{Status: view.StatusOpen}, nil)
		})
	}
	if begun {
		return nil
	}
	c.leave()                     // Serve takes a place
	c.request = c.request.Clone() // the message may be much larger
	c.runs = true
	err := c.session.run(c.agent, c.id, c.operation.Waits, func(ctx context.Context) {
		var body []byte
		defer c.release()
		held := api.ChargeOf(c.agent.principal.Account())
		defer held.Release()
		err := c.session.server.monitor.Survive(c.operation.Name, func() error {
			return api.Serve(ctx, c.session.server.backend, c.agent.principal, c.operation, c.request, held, func(resp any) (_ int, err error) {
				body, err = c.encode(nil, resp)
				return len(body), err
			})
		})
		c.session.out.waitForRoom(c.session.alive, &c.agent.queue) // a large response, of which others may be on their way
		c.finish(body, err)
	})
	c.runs = err == nil
	return err
}

// enter takes a place of a kind for the call.
func (c *call) enter(k api.Kind) error {
	if err := c.agent.principal.Account().Take(k, 1); err != nil {
		return err
	}
	c.place = k
	c.entered.Store(true)
	return nil
}

// leave gives the place back, once.
func (c *call) leave() {
	if c.entered.CompareAndSwap(true, false) {
		c.agent.principal.Account().Give(c.place, 1)
	}
}

// gone gives back what a text was admitted for, when its ID is under way no more.
func (c *call) gone() {
	if c != nil && c.left != nil {
		c.left()
	}
}

// release gives back what the request was charged.
func (c *call) release() {
	if c.held != nil {
		c.held.Release()
	}
}

// ask asks a form, request or approval. It then waits for its outcome if there is a place for a wait.
func (c *call) ask() error {
	if !asking[c.operation.Name] {
		return parley.Refuse(parley.InvalidArgument, "the operation %s asks nothing", c.operation.Name)
	}
	if c.enter(api.KindWaits) != nil {
		return c.perform()
	}
	account := c.agent.principal.Account()
	if err := account.Take(api.KindCalls, 1); err != nil {
		c.leave()
		return err
	}
	took := sync.OnceFunc(func() { account.Give(api.KindCalls, 1) })
	cancel, _ := c.session.server.backend.Begin(c.session.calls, c.agent.principal, c.operation.Name, c.request, func(asked any) {
		took()
		c.reply(asked, nil, func(body []byte, err error) {
			if err != nil {
				c.finish(nil, err)
				return
			}
			c.session.item(c, mux.Asked, body)
		})
	}, func(resp any, err error) {
		took()
		c.leave()
		c.end(resp, err)
	})
	if cancel != nil {
		c.session.mayCancel(c.id, func() {
			cancel()
			c.leave()
		}, nil)
	}
	return nil
}

// end ends the call with a response or an error.
func (c *call) end(resp any, err error) { c.reply(resp, err, c.finish) }

// reply calls send with the encoding of a response, or with an error. Send does not keep the encoding.
func (c *call) reply(resp any, err error, send func(body []byte, err error)) {
	if err != nil {
		send(nil, err)
		return
	}
	buffer := buffers.Get().(*[]byte)
	body, err := c.encode((*buffer)[:0], resp)
	send(body, err)
	if body != nil && cap(body) <= maxResponse {
		*buffer = body
	}
	buffers.Put(buffer)
}

// buffers holds buffers for responses.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxResponse is the size, in bytes, of the largest buffer that is kept.
const maxResponse = 16 << 10

func (c *call) finish(body []byte, err error) {
	c.session.server.monitor.Ended(c.session.calls, c.operation.Name, err, c.started)
	c.session.server.monitor.Failed(c.session.calls, c.operation.Name, err)
	_ = c.session.finish(c.id, c.agent, body, err) // the session ends if the client takes no more
}

// encode appends a response as the body of a frame.
func (c *call) encode(b []byte, resp any) ([]byte, error) {
	b, err := c.session.spelling.response(b, c, resp)
	if err != nil {
		return nil, fmt.Errorf("encode the response of %s: %w", c.operation.Name, err)
	}
	return b, nil
}

// run runs a call on a goroutine. One that waits ends with the connection.
func (s *session) run(a *agent, id uint64, waits bool, call func(context.Context)) error {
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
