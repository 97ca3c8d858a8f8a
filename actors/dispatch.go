package actors

import (
	"time"
)

// dispatcher runs actors on goroutines that stay for a while. A new goroutine for each turn, the actor
// library's own way, spends a tenth of the node's time growing stacks. There is no bound: an actor that
// reads its log holds up no other.
type dispatcher struct {
	turns chan func()
	ended chan struct{} // closed when no goroutine is to stay
}

const (
	idleWorker = 5 * time.Second // a goroutine without a turn for so long ends
	turnLength = 300             // messages before another actor has its turn
)

func newDispatcher() *dispatcher {
	return &dispatcher{turns: make(chan func()), ended: make(chan struct{})}
}

// Schedule runs fn soon.
func (d *dispatcher) Schedule(fn func()) {
	select {
	case d.turns <- fn:
	default:
		go d.work(fn)
	}
}

// Throughput is how many messages an actor may handle in one turn.
func (d *dispatcher) Throughput() int { return turnLength }

func (d *dispatcher) work(fn func()) {
	idle := time.NewTimer(idleWorker)
	defer idle.Stop()
	for {
		fn()
		fn = nil // it holds on to its actor, which may be put to rest meanwhile
		idle.Reset(idleWorker)
		select {
		case fn = <-d.turns:
		case <-idle.C:
			return
		case <-d.ended:
			return
		}
	}
}
