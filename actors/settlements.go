package actors

import (
	"context"
	"sync"

	"parley/capabilities"
)

// settlements are those that the node's agents are sending to forms whose homes are on other nodes. Of one agent and
// form there is one at a time: so each is told what became of itself, and not of another.
type settlements struct {
	mu  sync.Mutex
	now map[formKey]*sending
}

// sending is one that is being sent.
type sending struct {
	since capabilities.Time
	over  chan struct{} // closed when it is sent or kept
}

func newSettlements() *settlements { return &settlements{now: map[formKey]*sending{}} }

// begin waits until nothing else is being sent to a form, and gives what ends the turn that begins then; calling it
// again does nothing. Before, if not zero, is when what it has waited for was begun. It waits no longer than
// homePatience: then it gives the error of a context whose time has passed.
func (s *settlements) begin(ctx context.Context, p formKey, now capabilities.Time) (done func(), before capabilities.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, homePatience)
	defer cancel()
	for {
		other := s.enter(p, now)
		if other == nil {
			return sync.OnceFunc(func() { s.leave(p) }), before, nil
		}
		before = other.since
		select {
		case <-other.over:
		case <-ctx.Done():
			return nil, before, ctx.Err()
		}
	}
}

// enter notes that a settlement is being sent, or gives the one that is.
func (s *settlements) enter(p formKey, now capabilities.Time) *sending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.now[p]; other != nil {
		return other
	}
	s.now[p] = &sending{since: now, over: make(chan struct{})}
	return nil
}

func (s *settlements) leave(p formKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.now[p].over)
	delete(s.now, p)
}
