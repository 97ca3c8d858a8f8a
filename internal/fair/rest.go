package fair

import (
	"sync"
	"time"
)

// Rest says when work that can wait rests beside those who write. Its methods may be called at the same time.
type Rest struct {
	mu       sync.Mutex
	position uint64
	grew     time.Time // when the position was last seen to have grown
}

// restedFor is how long work rests after something was written. It is longer than a piece of work: whoever writes slowly, because
// the work has the processors, would find fewer pieces followed by a rest.
const restedFor = 250 * time.Millisecond

// NewRest returns a Rest for a log that has a position.
func NewRest(position uint64) *Rest { return &Rest{position: position} }

// Due reports whether a piece of work that ends now is followed by a rest, of a log that has a position now: it has grown a
// short time ago.
func (r *Rest) Due(position uint64, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.position != position {
		r.position, r.grew = position, now
	}
	return now.Sub(r.grew) < restedFor
}
