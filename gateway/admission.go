package gateway

import (
	"sync/atomic"

	"parley"
)

// Limits bound what a node does at once for the world. Waiting calls cost little and are counted apart,
// so that a thousand waiters do not keep anyone from answering.
type Limits struct {
	Calls int64
	Waits int64
}

// defaultLimits are far above what one person's agents need and far below what hurts.
func defaultLimits() Limits { return Limits{Calls: 1024, Waits: 16384} }

// admission counts what is under way.
type admission struct {
	limit int64
	now   atomic.Int64
}

// enter takes a place, or refuses with RATE_LIMITED. Whoever got one leaves.
func (a *admission) enter() error {
	if a.now.Add(1) > a.limit {
		a.now.Add(-1)
		return parley.Refuse(parley.RateLimited, "the node has %d calls under way already", a.limit).WithHint("try again in a moment")
	}
	return nil
}

func (a *admission) leave() { a.now.Add(-1) }
