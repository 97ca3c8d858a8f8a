package mcp

import (
	"context"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

const (
	maxShows        = 256
	maxSessionShows = 8
)

// shows is the set of forms that older clients show at present.
type shows struct {
	mu   sync.Mutex
	open map[*sdk.ServerSession]map[string]*showing
	all  int
}

// showing is a form that a client shows. Its context ends with the conversation. The cause is an unshown if the person
// can no longer answer at the client.
type showing struct {
	context.Context
	end context.CancelCauseFunc
}

// unshown is the reason why a client does not show a form.
type unshown string

// Error implements error.
func (u unshown) Error() string { return string(u) }

// enter adds a form, and reports whether it was absent. It returns nil if there is no room.
func (s *shows) enter(at *sdk.ServerSession, form string) (_ *showing, added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if present := s.open[at][form]; present != nil {
		return present, false
	}
	if len(s.open[at]) >= maxSessionShows || s.all >= maxShows {
		return nil, false
	}
	if s.open == nil {
		s.open = map[*sdk.ServerSession]map[string]*showing{}
	}
	if s.open[at] == nil {
		s.open[at] = map[string]*showing{}
	}
	ctx, end := context.WithCancelCause(context.Background())
	s.open[at][form] = &showing{ctx, end}
	s.all++
	return s.open[at][form], true
}

// leave removes a form. why is nil unless the person can no longer answer at the client.
func (s *shows) leave(at *sdk.ServerSession, form string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[at][form].end(why)
	s.all--
	delete(s.open[at], form)
	if len(s.open[at]) == 0 {
		delete(s.open, at)
	}
}

// show shows a form in an older client, once. The person may take longer than the call. It ends with the form, the
// session or the Server.
func (c *call) show(ctx context.Context, m *view.Message, p *sdk.ElicitParams) shown {
	at := c.request.Session
	present, added := c.shows.enter(at, m.MessageID.String())
	if present == nil {
		return shown{why: "it shows other forms already"}
	}
	if added {
		c.work.Go(func() { // the present call is work too, so that the Server waits for both
			var why error
			defer func() { c.shows.leave(at, m.MessageID.String(), why) }()
			if o, err := c.turn(c.life, api.AwaitRequest{FormRef: api.RefTo(m.MessageID.String())}, 0); err != nil || o.Status == view.StatusOpen { // it may have ended in a conversation since it was read
				why = c.converse(ctx, m, p)
			}
		})
	}
	return shown{elsewhere: present}
}

// converse shows a form until it has a valid answer. It returns an unshown if the person can no longer answer.
func (c *call) converse(call context.Context, m *view.Message, p *sdk.ElicitParams) error {
	ctx, stop := context.WithCancel(outliving{c.life, call})
	var watch sync.WaitGroup
	watch.Go(func() {
		c.watch(ctx, m.MessageID.String())
		stop()
	})
	defer watch.Wait()
	defer stop()
	for n := 1; ; n++ {
		did, err := c.request.Session.Elicit(ctx, p)
		switch {
		case err != nil && ctx.Err() != nil: // the form has ended
			return nil
		case err != nil:
			return refusedBy(err)
		case p.Mode == byLink && did.Action == accepted: // the person answers on the page
			return nil
		}
		if err = c.settle(ctx, m, did); err == nil || ctx.Err() != nil {
			return nil
		}
		var why string
		if parley.CodeOf(err) != parley.InvalidAnswer || n == maxRounds {
			return unshown("its response was not accepted: " + fieldErrors(err))
		}
		if p, why = c.elicitation(ctx, clientOf(c.request), m, err); p == nil {
			return unshown(why)
		}
	}
}

// refusedBy returns the unshown for the error of a client.
func refusedBy(err error) error {
	text := err.Error()
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		text = said.Message
	}
	return unshown("it refused: " + text)
}

// outliving is the context of a call while that is under way, and of its session afterwards. Some clients read requests
// only from the stream of the call.
type outliving struct {
	context.Context
	call context.Context
}

// Value implements context.Context.
func (o outliving) Value(key any) any {
	if o.call.Err() == nil {
		return o.call.Value(key)
	}
	return o.Context.Value(key)
}

// watch blocks until a form has ended or ctx ends.
func (c *call) watch(ctx context.Context, form string) {
	for {
		o, err := c.turn(ctx, api.AwaitRequest{FormRef: api.RefTo(form)}, maxWait)
		open := err == nil && o.Status == view.StatusOpen
		if !open && parley.CodeOf(err) != parley.NotRunning || !rest(ctx) {
			return
		}
	}
}
