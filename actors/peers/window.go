package peers

import (
	"context"
	"sync"
	"time"

	"parley/capabilities"
)

// receiveWindow admits the packets of a node in the order of their numbers. It admits none of an earlier epoch, and none
// after one that could not be stored.
type receiveWindow struct {
	mu      sync.Mutex
	epoch   uint64
	next    uint64        // number of the packet whose turn it is
	changed chan struct{} // closed when the above change
	failed  bool

	failures uint64 // of the journal, when the epoch began: what was accepted before another may be lost

	refused map[route]bool // of which a copy was refused in the epoch
}

// route is the way from a mailbox of another node to one of this node.
type route struct{ from, to capabilities.ID }

// maxRefused bounds the routes that a window holds up.
const maxRefused = 1024

// windowPatience is how long a packet waits for those before it. A lost packet is sent again in another epoch, with all
// after it.
const windowPatience = 500 * time.Millisecond

// wait blocks until it is a packet's turn, and reports whether it came. The caller calls admit afterwards. Failures is
// how often the journal has failed. Packets without an epoch have no order.
func (l *receiveWindow) wait(ctx context.Context, epoch, number, failures uint64) bool {
	if epoch == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, windowPatience)
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

func (l *receiveWindow) look(epoch, number, failures uint64) (turn, over bool, moved <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch > l.epoch && number == 1 {
		l.epoch, l.next, l.failed, l.failures, l.refused = epoch, 1, false, failures, nil
		l.notify()
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	switch {
	case epoch < l.epoch, epoch == l.epoch && (l.failed || number < l.next):
		return false, true, nil
	case epoch == l.epoch && number == l.next:
		return true, false, nil
	}
	return false, false, l.changed
}

// admit records that a packet was accepted, so that the next may follow. A repeated packet counts once.
func (l *receiveWindow) admit(epoch, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch == l.epoch && number == l.next && epoch != 0 {
		l.next++
		l.notify()
	}
}

// fail records that part of a packet could not be stored.
func (l *receiveWindow) fail(epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch == l.epoch {
		l.failed = true
		l.notify()
	}
}

// hasFailed reports whether part of the window was not stored, or may be lost because the journal has failed since the
// epoch began.
func (l *receiveWindow) hasFailed(epoch, failures uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return epoch != 0 && epoch == l.epoch && (l.failed || l.failures != failures)
}

// refuse records that a copy was refused. A window with too many routes to hold up fails.
func (l *receiveWindow) refuse(epoch uint64, r route) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch != l.epoch || epoch == 0 || l.refused[r] {
		return
	}
	if len(l.refused) == maxRefused {
		l.failed = true
		l.notify()
		return
	}
	if l.refused == nil {
		l.refused = map[route]bool{}
	}
	l.refused[r] = true
}

// hasRefused reports whether a copy was refused in the window.
func (l *receiveWindow) hasRefused(epoch uint64, r route) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return epoch == l.epoch && l.refused[r]
}

// newest returns the newest epoch.
func (l *receiveWindow) newest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// notify wakes the waiting packets. The caller has the lock.
func (l *receiveWindow) notify() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
