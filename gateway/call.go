package gateway

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"parley"
	"parley/gateway/api"
	"parley/gateway/httpd"
)

// What one session may have under way at once. Waits hold back no calls.
const (
	maxCalls  = 64
	maxWaits  = 256
	maxLoaded = 8 << 20 // bytes of frames
)

// load is what a session has under way.
type load struct {
	calls, waits admission
	bytes        atomic.Int64
	room         int64 // for those
}

// hear takes a frame to whoever it is for.
func (c *wsSession) hear(kind websocket.MessageType, text []byte) {
	if err := c.principal.Account().Pace(); err != nil {
		c.tell(failed(regarding{RequestID: requestIDOf(text)}, err))
		return
	}
	h, err := readHead(kind, text)
	if err != nil {
		c.tell(failed(regarding{RequestID: h.RequestID}, err))
		return
	}
	if f, ok := c.server.frames[h.Type]; ok {
		c.dispatch(f, h, text)
		return
	}
	name, isRequest := strings.CutSuffix(h.Type, "_request")
	if o, ok := c.server.backend.Operations()[name]; ok && isRequest {
		c.request(o, head{Type: h.Type, regarding: regarding{RequestID: h.RequestID}}, text)
		return
	}
	c.tell(failed(h.regarding, parley.Refuse(parley.InvalidArgument, "there is no type of frame %.80q", h.Type)))
}

// request has an operation performed and answers with what comes of it.
func (c *wsSession) request(o api.Operation, h head, text []byte) {
	leave, err := c.load.admit(o.Kind(), c.principal.Account(), len(text))
	if err != nil {
		c.server.metrics.called(o.Name, err)
		c.tell(failed(h.regarding, err))
		return
	}
	c.work.Go(func() {
		defer leave()
		started := time.Now()
		held := api.ChargeOf(c.principal.Account())
		answer, err := c.perform(o, h, text, held)
		if err != nil {
			c.tell(failed(h.regarding, err))
		} else if held.Bytes() > 0 {
			c.sayCharged(answer, held)
		} else {
			c.say(answer)
		}
		c.server.monitor.Ended(c.ctx, o.Name, err, started)
	})
}

// admit takes one of the connection's places for a request, which is there, and room for its bytes: of the
// connection's, and of an account's if there is one yet. It refuses with RATE_LIMITED.
func (l *load) admit(k api.Kind, a api.Account, size int) (leave func(), err error) {
	own := &l.calls
	if k == api.KindWaits {
		own = &l.waits
	}
	if err := own.enter(); err != nil {
		return nil, err
	}
	free, err := l.keep(a, size)
	if err != nil {
		own.leave()
		return nil, err
	}
	return func() { free(); own.leave() }, nil
}

// keep is admit for a frame that is no request: it takes room only.
func (l *load) keep(a api.Account, size int) (leave func(), err error) {
	held := api.ChargeOf(a)
	leave = func() {
		held.Release()
		l.bytes.Add(-int64(size))
	}
	if l.bytes.Add(int64(size)) > l.room {
		err = parley.Refuse(parley.RateLimited, "the requests under way are over %d bytes", l.room).
			WithHint("send more when some have been answered")
	} else if a != nil && size > httpd.BodyFree {
		err = held.Add(int64(size))
	}
	if err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// perform performs an operation and writes the response. A wait ends when the session is to end; a call goes
// on, for what it was asked may have happened.
func (c *wsSession) perform(o api.Operation, h head, text []byte, held *api.Charge) (answer []byte, err error) {
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

func (c *wsSession) note(name string, err error) {
	c.server.monitor.Failed(context.Background(), name, err)
}

// survive turns a panic of one call into its INTERNAL error. It is a bug, but not everyone's.
func (c *wsSession) survive(name string, err *error) {
	if p := recover(); p != nil {
		*err = c.server.monitor.Panicked(name, p)
	}
}
