package mux

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

// The bounds of one agent on one connection.
const (
	maxAgents  = 1024    // of a connection, at once
	maxRunning = 1024    // under way on goroutines
	freeBody   = 4 << 10 // bytes of a request that its account is not charged
)

// operations has the operation that a frame performs, for frames that do not name it.
var operations = map[Kind]string{Ask: "form", Follow: "follow_messages", FollowAgents: "fetch_agents"}

// asking has the operations whose outcome comes later.
var asking = map[string]bool{"form": true, "request": true, "approve": true}

// begin begins what a frame asks for. It returns an error only for an ID that is under way already.
func (s *Session) begin(a *agent, f Frame) error {
	s.mu.Lock()
	_, twice := s.under[f.ID]
	going := s.going
	if !twice && !going {
		s.under[f.ID] = &task{agent: a}
	}
	s.mu.Unlock()
	switch {
	case twice:
		return parley.Refuse(parley.InvalidArgument, "the ID %d is under way already", f.ID)
	case going:
		return s.reply(a, f.ID, nil, api.ErrStopping)
	}
	if err := s.try(a, f); err != nil {
		return s.finish(f.ID, a, nil, err)
	}
	return nil
}

// try begins what a frame asks for, or refuses it.
func (s *Session) try(a *agent, f Frame) error {
	if err := a.principal.Account().Pace(); err != nil {
		return err
	}
	if f.Kind == SignIn {
		credentials := bytes.Clone(f.Body)
		return s.run(a, f.ID, true, func(ctx context.Context) {
			body, err := s.signIn(ctx, credentials)
			_ = s.finish(f.ID, a, body, err) // the session ends if the client takes no more
		})
	}
	if name, ok := operations[f.Kind]; ok {
		f.Operation = name
	}
	o, known := s.o.Backend.Operations()[f.Operation]
	if !known {
		return parley.Refuse(parley.InvalidArgument, "there is no operation %.80q", f.Operation)
	}
	if err := a.principal.May(o); err != nil {
		return err
	}
	if err := s.o.Backend.Check(s.calls, a.principal); err != nil {
		return err
	}
	q, err := readRequest(f.Body)
	if err != nil {
		return err
	}
	var held *api.Charge
	if q.size() > freeBody {
		held = api.ChargeOf(a.principal.Account())
		if err := held.Add(int64(q.size())); err != nil {
			return err
		}
	}
	c := &call{session: s, agent: a, id: f.ID, operation: o, request: q, held: held, plain: !NewReader(f.Body).IsJSON(), started: time.Now()}
	switch f.Kind {
	case Ask, AskBy:
		err = c.ask()
	case Follow:
		err = c.followMessages(f.Credit)
	case FollowAgents:
		err = c.followAgents(f.Credit)
	default:
		err = c.perform()
	}
	if !c.runs { // the request was read
		c.request = request{}
		c.release()
	}
	return err
}

// call is the performance of one operation.
type call struct {
	session   *Session
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
}

// perform performs the operation, on a goroutine if it needs one.
func (c *call) perform() error {
	if err := c.enter(c.operation.Kind()); err != nil {
		return err
	}
	cancel, begun := c.session.o.Backend.Begin(c.session.calls, c.agent.principal, c.operation.Name, c.request, func(resp any, err error) {
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
	c.request = c.request.clone() // the message may be much larger
	c.runs = true
	err := c.session.run(c.agent, c.id, c.operation.Waits, func(ctx context.Context) {
		var body []byte
		defer c.release()
		held := api.ChargeOf(c.agent.principal.Account())
		defer held.Release()
		err := c.session.o.Monitor.Survive(c.operation.Name, func() error {
			return api.Serve(ctx, c.session.o.Backend, c.agent.principal, c.operation, c.request, held, func(resp any) (_ int, err error) {
				body, err = c.encode(nil, resp)
				return len(body), err
			})
		})
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
	forget := c.session.o.Backend.BeginAsk(c.session.calls, c.agent.principal, c.operation.Name, c.request, func(asked any, later bool, err error) {
		account.Give(api.KindCalls, 1)
		if err != nil || !later {
			c.leave()
			c.end(asked, err)
			return
		}
		c.reply(asked, nil, func(body []byte, err error) {
			if err != nil {
				c.finish(nil, err)
				return
			}
			c.session.item(c.id, c.agent, Asked, body)
		})
	}, func(o view.Outcome, err error) {
		c.leave()
		c.end(o, err)
	})
	c.session.mayCancel(c.id, func() {
		forget()
		c.leave()
	}, nil)
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
	c.session.o.Monitor.Ended(c.session.calls, c.operation.Name, err, c.started)
	c.session.o.Monitor.Failed(c.session.calls, c.operation.Name, err)
	_ = c.session.finish(c.id, c.agent, body, err) // the session ends if the client takes no more
}

// encode appends a response: as a map if the request was one, and as JSON otherwise.
func (c *call) encode(b []byte, resp any) (_ []byte, err error) {
	if c.plain {
		b, err = Append(b, resp)
	} else {
		var text []byte
		if text, err = marshal(resp); err == nil {
			b = AppendJSON(b, text)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("encode the response of %s: %w", c.operation.Name, err)
	}
	return b, nil
}

// errorBody returns the body of an error as clients see it.
func errorBody(err error) []byte {
	text, failed := marshal(api.Shown(err))
	if failed != nil {
		text = []byte(`{"code":"INTERNAL","message":"internal error"}`)
	}
	return AppendJSON(nil, text)
}
