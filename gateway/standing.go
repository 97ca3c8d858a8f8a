package gateway

import (
	"context"
	"sync"
	"time"

	"parley"
	"parley/capabilities"
)

// uses are what goes on for as long as a credential is good: WebSocket sessions, streams and calls that wait. One goroutine
// looks, for all of them, whenever a token has been revoked, and now and then for those whose time is over.
type uses struct {
	mu   sync.Mutex
	open map[*use]bool
}

type use struct {
	of  *principal
	end func()
}

// whileGood has end called once a principal's token or session is good no more, until the function that it gives is
// called.
func (s *Server) whileGood(p *principal, end func()) (stop func()) {
	if p == nil {
		return func() {}
	}
	u := &use{p, end}
	s.uses.mu.Lock()
	s.uses.open[u] = true
	s.uses.mu.Unlock()
	return func() {
		s.uses.mu.Lock()
		delete(s.uses.open, u)
		s.uses.mu.Unlock()
	}
}

// principals gives those of what is open, one for each token.
func (u *uses) principals() map[capabilities.ID]*principal {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := map[capabilities.ID]*principal{}
	for one := range u.open {
		all[one.of.token.ID] = one.of
	}
	return all
}

// end ends what is open by a token.
func (u *uses) end(token capabilities.ID) {
	u.mu.Lock()
	var ends []func()
	for one := range u.open {
		if one.of.token.ID == token {
			ends = append(ends, one.end)
			delete(u.open, one)
		}
	}
	u.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// watchTokens ends what goes on by tokens and sessions that are good no more, until the server drains. What goes on is
// use: a session with an open page does not end for want of it.
func (s *Server) watchTokens() {
	revoked := make(chan struct{}, 1)
	defer s.node.WatchTokens(revoked)()
	tick := time.NewTicker(s.keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-s.draining.Done():
			return
		case <-revoked:
		case <-tick.C:
		}
		for token, p := range s.uses.principals() {
			if s.check(s.draining, p) != nil {
				s.uses.end(token)
			}
		}
	}
}

// check refuses with UNAUTHENTICATED a principal whose token or session is good no more. Another failure to look is
// none of its.
func (s *Server) check(ctx context.Context, p *principal) error {
	if p == nil {
		return nil
	}
	err := s.node.Keep(ctx, p.token)
	if parley.CodeOf(err) == parley.Unauthenticated {
		return err
	}
	if err != nil {
		s.note(ctx, "look at a token", err)
	}
	return nil
}

// carryOut performs an operation. One that waits is cut short when the token is good no more by which it was called, and
// tells nothing then.
func (s *Server) carryOut(ctx context.Context, o operation, r request) (any, error) {
	p := caller(ctx)
	if p == nil || !o.Waits {
		return o.call(ctx, s, r)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.whileGood(p, cancel)()
	resp, err := o.call(ctx, s, r)
	if ended := s.check(context.WithoutCancel(ctx), p); ended != nil {
		return nil, ended
	}
	return resp, err
}
