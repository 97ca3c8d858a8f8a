package mcp

import (
	"context"
	"log/slog"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/actors/view"
)

const (
	maxShows        = 256
	maxSessionShows = 8
)

// shows is the set of forms that older clients show at present.
type shows struct {
	mu   sync.Mutex
	open map[*sdk.ServerSession]map[string]bool
	all  int
}

// enter adds a form, and reports whether it was absent and there was room.
func (s *shows) enter(at *sdk.ServerSession, form string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[at][form] || len(s.open[at]) >= maxSessionShows || s.all >= maxShows {
		return false
	}
	if s.open == nil {
		s.open = map[*sdk.ServerSession]map[string]bool{}
	}
	if s.open[at] == nil {
		s.open[at] = map[string]bool{}
	}
	s.open[at][form] = true
	s.all++
	return true
}

func (s *shows) leave(at *sdk.ServerSession, form string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	delete(s.open[at], form)
	if len(s.open[at]) == 0 {
		delete(s.open, at)
	}
}

// show shows a form in an older client, once. The person may take longer than the call. It ends with the form, the
// session or the Server.
func (c *call) show(ctx context.Context, m *view.Message, p *sdk.ElicitParams) {
	at := c.request.Session
	if !c.shows.enter(at, m.MessageID.String()) {
		return
	}
	c.work.Go(func() { // the present call is work too, so that the Server waits for both
		defer c.shows.leave(at, m.MessageID.String())
		c.converse(ctx, m, p)
	})
}

// converse shows a form until it has a valid answer.
func (c *call) converse(call context.Context, m *view.Message, p *sdk.ElicitParams) {
	ctx, stop := context.WithCancel(outliving{c.life, call})
	var watch sync.WaitGroup
	watch.Go(func() {
		c.watch(ctx, m.MessageID.String())
		stop()
	})
	defer watch.Wait()
	defer stop()
	for n := 1; p != nil && n <= maxRounds; n++ {
		did, err := c.request.Session.Elicit(ctx, p)
		if err != nil {
			c.options.Log.Debug("a client did not show a form", slog.Any("error", err))
			return
		}
		if p.Mode == byLink && did.Action == accepted { // the person answers on the page
			return
		}
		if err = c.settle(ctx, m, did); parley.CodeOf(err) != parley.InvalidAnswer {
			return
		}
		p = c.elicitation(ctx, clientOf(c.request), m, err)
	}
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
		o, err := c.turn(ctx, form, maxWait)
		open := err == nil && o.Status == view.StatusOpen
		if !open && parley.CodeOf(err) != parley.NotRunning || !rest(ctx) {
			return
		}
	}
}
