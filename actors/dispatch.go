package actors

import (
	"runtime"
)

// dispatcher runs actors on a few goroutines that stay, as many as can run at once. With one for each turn,
// the actor library's own way, a commit on its way to the disk stands in line behind them all at each of its
// steps, and a tenth of the node's time goes into growing stacks.
type dispatcher struct {
	turns chan func() // nil ends one of the goroutines
	staff int
}

const (
	turnsWaiting = 4096 // more than these get goroutines of their own
	turnLength   = 300  // messages before another actor has its turn
)

// newDispatcher makes a dispatcher that works until end is called.
func newDispatcher() *dispatcher {
	d := &dispatcher{turns: make(chan func(), turnsWaiting), staff: runtime.GOMAXPROCS(0)}
	for range d.staff {
		go d.work()
	}
	return d
}

// end lets the goroutines go, once, when nobody is in need of a turn any more.
func (d *dispatcher) end() {
	for range d.staff {
		d.turns <- nil
	}
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
	go d.standIn(done)
	return wait()
}

func (d *dispatcher) work() {
	for fn := <-d.turns; fn != nil; fn = <-d.turns {
		fn()
	}
}

// standIn works until done is closed.
func (d *dispatcher) standIn(done <-chan struct{}) {
	for {
		select {
		case fn := <-d.turns:
			if fn == nil { // meant for one of the staff
				d.turns <- nil
				return
			}
			fn()
		case <-done:
			return
		}
	}
}
