package gateway

import (
	"hash/maphash"
	"sync"

	"parley"
)

// maxTurns is how many frames of dialects may wait for their turn in one conversation.
const maxTurns = 256

// turnQueue has things done one after the other, in the order in which they came: what a dialect's frame means may
// hang on the one before it. It has no goroutine of its own, and costs nothing while there is nothing to do.
type turnQueue struct {
	mu      sync.Mutex
	waiting []func()
	busy    bool
}

// add puts something at the end, or refuses with RATE_LIMITED. Whoever adds the first one calls next until there
// is no more.
func (q *turnQueue) add(turn func()) (first bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxTurns {
		return false, parley.Refuse(parley.RateLimited, "the connection has %d frames waiting already", maxTurns).
			WithHint("send more when some have been answered")
	}
	q.waiting = append(q.waiting, turn)
	first, q.busy = !q.busy, true
	return first, nil
}

// next does what comes first, and reports whether there was anything.
func (q *turnQueue) next() bool {
	q.mu.Lock()
	if len(q.waiting) == 0 {
		q.busy, q.waiting = false, nil
		q.mu.Unlock()
		return false
	}
	turn := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.mu.Unlock()
	turn()
	return true
}

// stripes are locks on names: those of a name are the same, those of others most likely not.
type stripes struct {
	seed  maphash.Seed
	locks [64]sync.Mutex
}

// lock locks a name, and gives what unlocks it.
func (s *stripes) lock(name string) (unlock func()) {
	l := &s.locks[maphash.String(s.seed, name)%uint64(len(s.locks))]
	l.Lock()
	return l.Unlock
}
