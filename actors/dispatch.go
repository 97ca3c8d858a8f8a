package actors

import (
	"runtime"
)

// dispatcher runs actors on a few goroutines that stay, as many as can run at once. With one for each turn,
// the actor library's own way, a commit on its way to the disk stands in line behind them all at each of its
// steps, and a tenth of the node's time goes into growing stacks.
type dispatcher struct {
	turns chan func()
	ended chan struct{} // closed when no goroutine is to stay
}

const (
	turnsWaiting = 4096 // more than these get goroutines of their own
	turnLength   = 300  // messages before another actor has its turn
)

// newDispatcher makes a dispatcher that works until ended is closed.
func newDispatcher() *dispatcher {
	d := &dispatcher{turns: make(chan func(), turnsWaiting), ended: make(chan struct{})}
	for range runtime.GOMAXPROCS(0) {
		go d.work(nil)
	}
	return d
}

// Schedule runs fn soon.
func (d *dispatcher) Schedule(fn func()) {
	select {
	case d.turns <- fn:
	default:
		go fn()
	}
}

// Throughput is how many messages an actor may handle in one turn.
func (d *dispatcher) Throughput() int { return turnLength }

// aside runs, within a turn, what may wait for the disk. Others have their turns meanwhile: an actor that
// reads its log holds up nobody.
func (d *dispatcher) aside(wait func() error) error {
	done := make(chan struct{})
	defer close(done)
	go d.work(done)
	return wait()
}

// work runs turns until there are to be none, or until done is closed.
func (d *dispatcher) work(done <-chan struct{}) {
	for {
		select {
		case fn := <-d.turns:
			fn()
		case <-done:
			return
		case <-d.ended:
			return
		}
	}
}
