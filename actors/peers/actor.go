package peers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/peers/window"
	"parley/capabilities"
)

const (
	retryFirst      = 100 * time.Millisecond
	retryMost       = 5 * time.Second
	retryIntroduced = 15 * time.Second // of a node that was only introduced
	maxSilence      = 3 * time.Second  // a reachable node that is silent for so long is called

	// retryCrashed is the pause after a crash. It is so long that a peer's actor never crashes too often.
	retryCrashed = 15 * time.Second
)

// peerActor is the actor of a peer. It decides when to collect items, when to send a packet, and when to look for the
// node. All that takes time runs elsewhere, and its result is a message. A restarted actor ignores the results of what the
// crashed one began.
type peerActor struct {
	peer *Peer
	life context.Context
	tell func(message any) // to itself

	wait       time.Duration // before the next attempt
	pauses     uint64        // number of the latest pause
	paused     bool
	recovering bool // paused after a crash
	announcing bool
	ticking    bool
	window     *sendWindow // nil while there is nothing to send
	gathering  *gathering  // nil while no mailbox is asked
}

// The messages of a peer's actor. Those that follow from its own work name it.
type (
	// wake tells the actor that there may be work.
	wake struct{}

	// announced is the result of an announcement.
	announced struct {
		to *peerActor
		ok bool
	}

	// resume ends a pause.
	resume struct {
		to    *peerActor
		pause uint64
	}

	// tick comes when the node may have been maxSilence for too long.
	tick struct{ to *peerActor }

	// collected is what a mailbox gave.
	collected struct {
		to      *peerActor
		round   *gathering
		mailbox capabilities.ID
		Collected
	}

	// sent comes when a packet of a window was sent, or has failed.
	sent struct {
		to     *peerActor
		window *sendWindow
	}
)

// spawn starts the peer's actor. The caller has the directory's lock.
func (p *Peer) spawn(life context.Context) {
	tell := p.d.node.Spawn(p.id, func() actor.Actor { return &peerActor{peer: p, life: life, wait: retryFirst} })
	p.mu.Lock()
	p.tell = tell
	p.mu.Unlock()
	p.notify()
}

// notify wakes the actor, unless that is under way, or busy with what ends with a look for work.
func (p *Peer) notify() {
	p.mu.Lock()
	tell := p.tell
	if p.notified {
		tell = nil
	}
	p.notified = p.notified || tell != nil
	p.mu.Unlock()
	if tell != nil {
		tell(wake{})
	}
}

// listen has the next notify send a message. The caller looks for work afterwards.
func (p *Peer) listen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notified = false
}

// Receive handles a message.
func (a *peerActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.start(ctx)
	case *actor.Restarting:
		a.peer.crashed.Store(true)
	case actor.AutoReceiveMessage, actor.SystemMessage:
	case wake:
		a.wakeUp()
	case resume:
		if m.to != a || !a.paused || m.pause != a.pauses {
			return
		}
		a.paused = false
		if a.recovering {
			a.recovering = false
			a.peer.askAll()
		}
	case announced:
		if m.to != a {
			return
		}
		a.announced(m.ok)
	case tick:
		if m.to != a {
			return
		}
		a.ticking = false
		if a.isResting() && a.peer.reachable.Load() && a.peer.silence() >= maxSilence {
			a.announce()
		}
	case collected:
		if m.to != a || m.round != a.gathering {
			return
		}
		a.gathering.add(a.peer, m)
	case sent:
		if m.to != a || m.window != a.window {
			return
		}
		a.window.open--
	default:
		panic(fmt.Sprintf("peers: a peer's actor got a %T", m))
	}
	a.advance()
}

// start begins to carry mail. After a crash it first pauses.
func (a *peerActor) start(ctx actor.Context) {
	self, root := ctx.Self(), ctx.ActorSystem().Root
	a.tell = func(message any) { root.Send(self, message) }
	if a.peer.crashed.Swap(false) {
		a.recovering = true
		a.pause(retryCrashed)
	}
}

// wakeUp ends a pause if the node has shown itself.
func (a *peerActor) wakeUp() {
	if !a.paused {
		return
	}
	a.peer.listen()
	if a.peer.back.Swap(false) && !a.recovering {
		a.paused = false
	}
}

// isResting reports whether the actor waits for something to do.
func (a *peerActor) isResting() bool { return a.window == nil && !a.announcing && !a.paused }

// advance performs the steps that are due.
func (a *peerActor) advance() {
	for a.life.Err() == nil && !a.announcing && !a.paused && a.step() {
	}
}

// step does one thing, and reports whether there may be another.
func (a *peerActor) step() bool {
	p, w := a.peer, a.window
	if w == nil {
		p.listen()
	}
	switch {
	case w == nil && p.isIdle():
		return false
	case w == nil && !p.reachable.Load():
		a.announce()
		return false
	case w == nil && !p.hasWork():
		a.wait = retryFirst
		a.watch()
		return false
	case w == nil:
		a.window = p.newSendWindow()
		return true
	case a.gathering != nil:
		return a.collect()
	case w.failed.Load():
		return a.endFailed()
	case w.open < windowSize && p.hasWork():
		a.gathering = &gathering{batch: &batch{}}
		return true
	case w.open > 0:
		return false
	}
	a.window = nil
	return true
}

// collect goes on with gathering a packet, and sends it when it is full or nothing is left to collect. It reports
// whether there may be more to do.
func (a *peerActor) collect() bool {
	g, w := a.gathering, a.window
	if g.open > 0 {
		return false
	}
	room := MaxItems - len(g.batch.items)
	if !w.failed.Load() && room > 0 && g.bytes < packetBytes {
		if ids := a.peer.next(room); len(ids) > 0 {
			a.ask(g, ids)
			return false
		}
	}
	a.gathering = nil
	if w.failed.Load() {
		g.batch.putBack(a.peer)
		return true
	}
	g.batch.trim(a.peer, g.bytes)
	a.peer.markInFlight(g.batch.items)
	if len(g.batch.items) > 0 {
		a.send(g.batch)
	}
	return true
}

// ask asks mailboxes for their items.
func (a *peerActor) ask(g *gathering, ids []capabilities.ID) {
	p := a.peer
	g.open = len(ids)
	for _, id := range ids {
		r := Request{Node: p.id, Skip: func(taken map[uint64]bool) map[uint64]bool { return p.addInFlight(id, taken) }, Bytes: packetBytes / len(ids)}
		p.d.node.Collect(id, r, func(c Collected) { a.tell(collected{a, g, id, c}) })
	}
}

// endFailed ends a window with a packet that has failed, when no packets are on their way. It reports whether there may be
// more to do.
func (a *peerActor) endFailed() bool {
	if a.window.open > 0 {
		return false
	}
	refused := a.window.refused.Load() // the next window is without that item
	if a.window.moves.Load() {         // what was put off holds up no other mail
		a.wait = retryFirst
	}
	a.window = nil
	if a.peer.reachable.Load() && !refused {
		a.pause(a.wait)
		a.wait = min(2*a.wait, retryMost)
	}
	return true
}

// send sends a packet of the window. Its acks are settled before the actor is told.
func (a *peerActor) send(b *batch) {
	p, w := a.peer, a.window
	w.sent++
	w.open++
	number := w.sent
	begun := p.d.run(func() {
		settled := false
		defer func() {
			if !settled { // or it has crashed
				w.failed.Store(true)
				b.failed(p)
			}
			a.tell(sent{a, w})
		}()
		acks, err := p.deliver(a.life, w.epoch, number, b)
		if err != nil {
			return
		}
		if slices.ContainsFunc(acks, func(r Ack) bool { return r.Status.final() }) {
			w.moves.Store(true)
		}
		refused := b.isRefused(acks)
		if refused {
			w.refused.Store(true)
		}
		if refused || isDelayed(acks) {
			w.failed.Store(true) // before items are put back: what follows them is of the next window
		}
		b.settle(p, acks)
		settled = true
	})
	if !begun {
		w.open--
		w.failed.Store(true)
		b.failed(p)
	}
}

// announce looks for the node, or whether it is still there.
func (a *peerActor) announce() {
	a.announcing = a.peer.d.run(func() {
		ok := false
		defer func() { a.tell(announced{a, ok}) }()
		ok = a.peer.announce(a.life)
	})
}

func (a *peerActor) announced(ok bool) {
	a.announcing = false
	if ok {
		a.wait = retryFirst
		return
	}
	a.pause(a.wait)
	a.wait = min(2*a.wait, a.peer.longestWait())
}

// pause does nothing for a while. It ends when the node shows itself, unless it follows a crash.
func (a *peerActor) pause(d time.Duration) {
	a.pauses++
	a.paused = true
	a.after(d, resume{a, a.pauses})
	a.wakeUp()
}

// watch has the node called when it has been maxSilence for a while.
func (a *peerActor) watch() {
	if !a.ticking {
		a.ticking = true
		a.after(maxSilence, tick{a})
	}
}

// after sends itself a message after a pause, if the node has not ended by then.
func (a *peerActor) after(d time.Duration, message any) {
	time.AfterFunc(d, func() {
		if a.life.Err() == nil {
			a.tell(message)
		}
	})
}

// run runs a function in a goroutine that Stop waits for. It reports false after Stop. A crash of the function is logged.
func (d *Directory) run(fn func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return false
	}
	d.tasks.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				d.o.Log.Error("a packet was not sent", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}()
		fn()
	})
	return true
}

// sendWindow is packets of mail on their way to a node, several at once. The receiver admits them in the order of their
// numbers. So the items from one mailbox to another arrive in order. When a packet fails, the receiver admits none
// after it. All items without an ack go into another window, of a later epoch. So do those that follow a refused copy:
// the receiver accepts them when the refusal is in the sender's log.
type sendWindow struct {
	epoch   uint64
	sent    uint64      // number of the latest packet
	open    int         // packets that are on their way
	failed  atomic.Bool // a packet has failed, or part of it was delayed, or a copy refused
	refused atomic.Bool // a copy was refused
	moves   atomic.Bool // an item was accepted or refused
}

// windowSize is the number of packets that may be on their way to a node.
const windowSize = 4

// newSendWindow begins a window. The epochs of a node's windows ascend, also across restarts.
func (p *Peer) newSendWindow() *sendWindow {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch = window.NextEpoch(p.epoch, p.d.node.Now(), rand.Uint64N(1<<window.DrawnBits))
	p.inFlight = map[capabilities.ID]map[uint64]bool{}
	return &sendWindow{epoch: p.epoch}
}

// raise has the next window begin after an epoch that the receiver has seen.
func (p *Peer) raise(epoch uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch = window.Raise(p.epoch, epoch)
}
