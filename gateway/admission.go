package gateway

import (
	"sync/atomic"

	"parley"
)

// admission counts what one connection has under way.
type admission struct {
	limit int64
	now   atomic.Int64
}

// enter takes a place, or refuses with RATE_LIMITED. Whoever got one leaves.
func (a *admission) enter() error {
	if a.now.Add(1) > a.limit {
		a.now.Add(-1)
		return parley.Refuse(parley.RateLimited, "the connection has %d requests under way already", a.limit).
			WithHint("send more when some have been answered")
	}
	return nil
}

func (a *admission) leave() { a.now.Add(-1) }
