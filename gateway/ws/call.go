package ws

import (
	"context"
	"strings"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/compat"
	"parley/internal/websocket"
)

// Bounds of what one session may have under way. Waits do not delay calls.
const (
	MaxCalls  = 64
	MaxWaits  = 256
	maxLoaded = 8 << 20 // bytes of frames
)

// receive handles a frame by its type.
func (c *session) receive(kind websocket.Kind, text []byte) {
	if err := c.principal.Account().Pace(); err != nil {
		c.tell(compat.Failed(compat.Regarding{RequestID: requestIDOf(text)}, err))
		return
	}
	h, err := readHead(kind, text)
	if err != nil {
		c.tell(compat.Failed(compat.Regarding{RequestID: h.RequestID}, err))
		return
	}
	if f, ok := c.server.frames[h.Type]; ok {
		c.dispatch(f, h, text)
		return
	}
	name, isRequest := strings.CutSuffix(h.Type, "_request")
	if o, ok := c.server.backend.Operations()[name]; ok && isRequest {
		c.request(o, compat.Head{Type: h.Type, Regarding: compat.Regarding{RequestID: h.RequestID}}, text)
		return
	}
	c.tell(compat.Failed(h.Regarding, parley.Refuse(parley.InvalidArgument, "there is no type of frame %.80q", h.Type)))
}

// request performs an operation in a goroutine of its own, and sends the response.
func (c *session) request(o api.Operation, h compat.Head, text []byte) {
	leave, err := c.load.Admit(o.Kind(), c.principal.Account(), len(text))
	if err != nil {
		c.server.monitor.Count(o.Name, err)
		c.tell(compat.Failed(h.Regarding, err))
		return
	}
	c.work.Go(func() {
		defer leave()
		started := time.Now()
		held := api.ChargeOf(c.principal.Account())
		answer, err := c.perform(o, h, text, held)
		if err != nil {
			c.tell(compat.Failed(h.Regarding, err))
		} else if held.Bytes() > 0 {
			c.queueCharged(answer, held)
		} else {
			c.queue(answer)
		}
		c.server.monitor.Ended(c.ctx, o.Name, err, started)
	})
}

// perform performs an operation and encodes the response. A wait ends when the session begins to end. A call goes on, as
// it may have taken effect.
func (c *session) perform(o api.Operation, h compat.Head, text []byte, held *api.Charge) (answer []byte, err error) {
	defer c.survive(o.Name, &err)
	ctx := c.acts
	if o.Waits {
		ctx = c.ctx
	}
	if err := c.check(c.acts); err != nil {
		return nil, err
	}
	if err := c.principal.May(o); err != nil {
		return nil, err
	}
	err = api.Serve(ctx, c.server.backend, c.principal, o, api.JSON(text), held, func(resp any) (int, error) {
		answer, err = responseText(o.Name, h, resp)
		return len(answer), err
	})
	c.note(o.Name, err)
	return answer, err
}

func (c *session) note(name string, err error) {
	c.server.monitor.Failed(context.Background(), name, err)
}

// survive turns a panic of one call into its INTERNAL error, so that other calls go on.
func (c *session) survive(name string, err *error) {
	if p := recover(); p != nil {
		*err = c.server.monitor.Panicked(name, p)
	}
}

// dispatch handles a frame that is no request of an operation, at once or in its turn.
func (c *session) dispatch(f frame, h compat.Head, text []byte) {
	leave, err := c.load.Keep(c.principal.Account(), len(text))
	if err != nil {
		c.tell(compat.Failed(h.Regarding, err))
		return
	}
	turn := func() {
		defer leave()
		if err := c.handle(f, &h, text); err != nil {
			c.note(h.Type, err)
			c.tell(compat.Failed(h.Regarding, err))
		}
	}
	if f.atOnce {
		turn()
		return
	}
	first, err := c.turns.add(turn)
	if err != nil {
		leave()
		c.tell(compat.Failed(h.Regarding, err))
		return
	}
	if first {
		c.work.Go(func() {
			for c.turns.next() {
			}
		})
	}
}

func (c *session) handle(f frame, h *compat.Head, text []byte) (err error) {
	defer c.survive(h.Type, &err)
	if err := c.check(c.acts); err != nil {
		return err
	}
	for _, needed := range f.scopes {
		if err := c.principal.May(api.Operation{Name: h.Type, Scope: needed}); err != nil {
			return err
		}
	}
	return f.handle(c, h, text)
}

// frame is a type of frame that is no request of an operation.
type frame struct {
	scopes []api.Scope
	handle func(c *session, h *compat.Head, text []byte) error // its error is sent to the client
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
		all[name] = frame{scopes: f.Scopes, handle: func(c *session, h *compat.Head, text []byte) error { return f.Handle(c.relay, h, text) }}
	}
	return all
}
