package mux

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

// The bounds of one agent on one connection.
const (
	maxAgents  = 1024    // of a connection
	maxRunning = 1024    // under way on goroutines
	freeBody   = 4 << 10 // bytes of a request that its account is not charged
)

// operations has the operation that a frame performs, for frames that do not name it.
var operations = map[Kind]string{Ask: "form", Follow: "follow_messages", FollowAgents: "fetch_agents"}

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
		return s.finish(f.ID, a, nil, api.ErrStopping)
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
	q, err := readRequest(f.Operation, f.Body)
	if err != nil {
		return err
	}
	held := api.ChargeOf(a.principal.Account())
	if q.size() > freeBody {
		if err := held.Add(int64(q.size())); err != nil {
			return err
		}
	}
	c := &call{session: s, agent: a, id: f.ID, operation: o, request: q, held: held, plain: !NewReader(f.Body).IsJSON(), started: time.Now()}
	switch f.Kind {
	case Ask:
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
		held.Release()
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
	held      *api.Charge // of the request
	runs      bool        // on a goroutine, which reads the request
	plain     bool        // its body was a map, and so is the response's
	started   time.Time
}

// perform performs the operation, on a goroutine if it needs one.
func (c *call) perform() error {
	account, kind := c.agent.principal.Account(), c.operation.Kind()
	if err := account.Take(kind, 1); err != nil {
		return err
	}
	left := sync.OnceFunc(func() { account.Give(kind, 1) })
	cancel, begun := c.session.o.Backend.Begin(c.session.calls, c.agent.principal, c.operation.Name, c.request, func(resp any, err error) {
		left()
		c.end(resp, err)
	})
	if cancel != nil {
		ended := func() {
			cancel()
			left()
		}
		c.session.mayCancel(c.id, ended, func() { // the form is open, as when the time of a wait has passed
			ended()
			c.end(view.Outcome{Status: view.StatusOpen}, nil)
		})
	}
	if begun {
		return nil
	}
	left()                        // Serve takes a place
	c.request = c.request.clone() // the message may be much larger
	c.runs = true
	err := c.session.run(c.agent, c.id, c.operation.Waits, func(ctx context.Context) {
		var body []byte
		defer c.held.Release()
		held := api.ChargeOf(account)
		defer held.Release()
		err := c.session.survive(c.operation.Name, func() error {
			return api.Serve(ctx, c.session.o.Backend, c.agent.principal, c.operation, c.request, held, func(resp any) (_ int, err error) {
				body, err = c.encode(resp)
				return len(body), err
			})
		})
		c.finish(body, err)
	})
	c.runs = err == nil
	return err
}

// ask asks a form, and then waits for its outcome if there is a place for a wait.
func (c *call) ask() error {
	account := c.agent.principal.Account()
	if account.Take(api.KindWaits, 1) != nil {
		return c.perform()
	}
	waited := sync.OnceFunc(func() { account.Give(api.KindWaits, 1) })
	if err := account.Take(api.KindCalls, 1); err != nil {
		waited()
		return err
	}
	forget := c.session.o.Backend.BeginAsk(c.session.calls, c.agent.principal, c.request, func(asked view.Asked, err error) {
		account.Give(api.KindCalls, 1)
		if err != nil || asked.Outcome != nil {
			waited()
			c.end(asked, err)
			return
		}
		body, err := c.encode(asked)
		if err != nil {
			c.finish(nil, err)
			return
		}
		c.session.item(c.id, c.agent, Asked, body)
	}, func(o view.Outcome, err error) {
		waited()
		c.end(o, err)
	})
	c.session.mayCancel(c.id, func() {
		forget()
		waited()
	}, nil)
	return nil
}

// end ends the call with a response or an error.
func (c *call) end(resp any, err error) {
	var body []byte
	if err == nil {
		body, err = c.encode(resp)
	}
	c.finish(body, err)
}

func (c *call) finish(body []byte, err error) {
	c.session.o.Monitor.Ended(c.session.calls, c.operation.Name, err, c.started)
	c.session.o.Monitor.Failed(c.session.calls, c.operation.Name, err)
	_ = c.session.finish(c.id, c.agent, body, err) // the session ends if the client takes no more
}

// encode writes a response: as a map if the request was one, and as JSON otherwise.
func (c *call) encode(resp any) (body []byte, err error) {
	if c.plain {
		body, err = appendResponse(make([]byte, 0, responseSize), resp)
	} else if body, err = marshal(resp); err == nil {
		body = AppendJSON(make([]byte, 0, len(body)+6), body)
	}
	if err != nil {
		return nil, fmt.Errorf("encode the response of %s: %w", c.operation.Name, err)
	}
	return body, nil
}

// responseSize is the size, in bytes, for which most responses have room.
const responseSize = 512

// errorBody returns the body of an error as clients see it.
func errorBody(err error) []byte {
	text, failed := marshal(api.Shown(err))
	if failed != nil {
		text = []byte(`{"code":"INTERNAL","message":"internal error"}`)
	}
	return AppendJSON(nil, text)
}
