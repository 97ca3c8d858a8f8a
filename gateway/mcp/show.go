package mcp

import (
	"context"
	"log/slog"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/actors"
)

const (
	maxShows        = 256
	maxSessionShows = 8
)

// shows are the forms that older clients have on their screens: each once.
type shows struct {
	mu   sync.Mutex
	open map[*sdk.ServerSession]map[string]bool
	all  int
}

// enter reports whether a form is to be shown: it is not yet, and there is room.
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

// show has an older client show a form, once. The person may take longer than the call does: the answer counts when
// it comes. It ends with the form, the session or the Server.
func (c *call) show(ctx context.Context, m *message, p *sdk.ElicitParams) {
	at := c.request.Session
	if !c.shows.enter(at, m.ID) {
		return
	}
	c.work.Go(func() { // the call that it is part of is work too, so the Server waits for both
		defer c.shows.leave(at, m.ID)
		c.converse(ctx, m, p)
	})
}

// converse shows a form until it has an answer that fits. What is shown first belongs to the call, which brings it to
// clients that listen to nothing else.
func (c *call) converse(call context.Context, m *message, p *sdk.ElicitParams) {
	life, stop := context.WithCancel(c.life)
	ctx, cancel := context.WithCancel(context.WithoutCancel(call))
	defer context.AfterFunc(life, cancel)()
	var watch sync.WaitGroup
	watch.Go(func() {
		c.watch(life, m.ID)
		stop()
	})
	defer watch.Wait()
	defer stop()
	for n := 1; p != nil && n <= maxRounds; n++ {
		if call.Err() != nil { // it was answered: what is said now is for the session
			ctx = life
		}
		did, err := c.request.Session.Elicit(ctx, p)
		if err != nil {
			c.options.Log.Debug("a client did not show a form", slog.Any("error", err))
			return
		}
		if p.Mode == byLink && did.Action == accepted { // they went to the page
			return
		}
		if err = c.settle(life, m, did); parley.CodeOf(err) != parley.InvalidAnswer {
			return
		}
		p = c.elicitation(life, clientOf(c.request), m, err)
	}
}

// watch returns when a form has ended, by whomever, or ctx has.
func (c *call) watch(ctx context.Context, form string) {
	for {
		o, err := c.turn(ctx, form, maxWait)
		open := err == nil && o.Status == string(actors.StatusOpen)
		if !open && parley.CodeOf(err) != parley.NotRunning || !rest(ctx) {
			return
		}
	}
}
