package peers

import (
	"context"
	"sync"
	"time"

	"parley/actors/peers/window"
)

// receiveWindow has the packets of a node wait for their turn.
type receiveWindow struct {
	mu      sync.Mutex
	rules   window.Receive
	changed chan struct{} // closed when a packet may have its turn
}

// windowPatience is how long a packet waits for those before it. A lost packet is sent again in another epoch, with all
// after it.
const windowPatience = 500 * time.Millisecond

// wait blocks until it is a packet's turn, and reports whether it came. The caller calls admit afterwards. Failures is
// how often the journal has failed. Packets without an epoch have no order.
func (l *receiveWindow) wait(ctx context.Context, epoch, number, failures uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, windowPatience)
	defer cancel()
	for {
		turn, moved := l.look(epoch, number, failures)
		if turn != window.Early {
			return turn == window.Now
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

func (l *receiveWindow) look(epoch, number, failures uint64) (turn window.Turn, moved <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notifyIf(l.rules.Begin(epoch, number, failures))
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.rules.Look(epoch, number), l.changed
}

// admit records that a packet was accepted, so that the next may follow.
func (l *receiveWindow) admit(epoch, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notifyIf(l.rules.Admit(epoch, number))
}

// fail records that part of a packet could not be stored.
func (l *receiveWindow) fail(epoch uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notifyIf(l.rules.Fail(epoch))
}

// hasFailed reports whether part of the window was not stored, or may be lost.
func (l *receiveWindow) hasFailed(epoch, failures uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rules.HasFailed(epoch, failures)
}

// refuse records that a copy was refused.
func (l *receiveWindow) refuse(epoch uint64, r window.Route) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notifyIf(l.rules.Refuse(epoch, r))
}

// hasRefused reports whether a copy was refused in the window.
func (l *receiveWindow) hasRefused(epoch uint64, r window.Route) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rules.HasRefused(epoch, r)
}

// putOff records that an item of a route was put off. It reports false if the window has to fail instead.
func (l *receiveWindow) putOff(epoch uint64, r window.Route) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rules.PutOff(epoch, r)
}

// isPutOff reports whether an item of a route was put off in the window.
func (l *receiveWindow) isPutOff(epoch uint64, r window.Route) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rules.IsPutOff(epoch, r)
}

// newest returns the newest epoch.
func (l *receiveWindow) newest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rules.Newest()
}

// notifyIf wakes the waiting packets if the rules have changed for them. The caller has the lock.
func (l *receiveWindow) notifyIf(changed bool) {
	if changed && l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
