package actors

import (
	"context"
	"sync"
	"time"
)

// landing lets the packets of a node in by their numbers, whatever order they come in. Of an epoch that is over
// it lets in none, nor any after one that could not be stored.
type landing struct {
	mu     sync.Mutex
	epoch  uint64
	next   uint64        // number of the packet that is to come in now
	moved  chan struct{} // closed when the above change
	broken bool

	failures uint64 // of the journal, when the epoch began: what came in before another may be lost
}

// landingPatience is how long a packet waits for those before it. One that was lost is sent again, with all
// after it, in another epoch.
const landingPatience = 500 * time.Millisecond

// wait returns true when it is a packet's turn: the caller says when it has been let in. Failures is how often the
// journal has failed. Letters without an epoch have no order.
func (l *landing) wait(ctx context.Context, epoch, number, failures uint64) bool {
	if epoch == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, landingPatience)
	defer cancel()
	for {
		turn, over, moved := l.look(epoch, number, failures)
		if turn || over {
			return turn
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

func (l *landing) look(epoch, number, failures uint64) (turn, over bool, moved <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch > l.epoch && number == 1 {
		l.epoch, l.next, l.broken, l.failures = epoch, 1, false, failures
		l.move()
	}
	if l.moved == nil {
		l.moved = make(chan struct{})
	}
	switch {
	case epoch < l.epoch, epoch == l.epoch && (l.broken || number < l.next):
		return false, true, nil
	case epoch == l.epoch && number == l.next:
		return true, false, nil
	}
	return false, false, l.moved
}

// letIn says that the packet is in, and the next may come. One that came twice is in once.
func (l *landing) letIn(epoch, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch == l.epoch && number == l.next && epoch != 0 {
		l.next++
		l.move()
	}
}

// breaks says that part of a packet could not be stored.
func (l *landing) breaks(epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch == l.epoch {
		l.broken = true
		l.move()
	}
}

// isBroken reports whether part of the flight could not be stored, or may be lost: the journal has failed since it began.
func (l *landing) isBroken(epoch, failures uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return epoch != 0 && epoch == l.epoch && (l.broken || l.failures != failures)
}

// move wakes those who wait. The caller has the lock.
func (l *landing) move() {
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}
