package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"parley/capabilities"
)

// sendWindow is packets of mail on their way to a node, several at once. They are numbered, and the other side takes
// them in by their numbers: so what a mailbox sends to another arrives in order, whatever happens on the way.
// When one fails, those after it count for nothing, and another window begins, of a later epoch, with all that
// there is no ack for.
type sendWindow struct {
	peer    *peer
	epoch   uint64
	sent    uint64 // number of the latest packet
	results chan packetResult
	open    int // packets on their way
	failed  error
}

// packetResult is the result of sending one packet.
type packetResult struct {
	batch *batch
	acks  ackPacket
	err   error
}

// windowSize is the number of packets that may be on their way to a node.
const windowSize = 4

var errCrashed = errors.New("sending it crashed")

var errDelayed = errors.New("the other node could not store all of it now")

// newSendWindow begins a window. The epochs of a node's windows ascend, also across restarts.
func (p *peer) newSendWindow() *sendWindow {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch = max(p.epoch+1, uint64(p.node.now()))
	p.inFlight = map[capabilities.ID]map[uint64]bool{}
	return &sendWindow{peer: p, epoch: p.epoch, results: make(chan packetResult, windowSize)}
}

// run sends packets until there is nothing to send. After an error there may be.
func (f *sendWindow) run(ctx context.Context) error {
	for {
		if f.failed == nil && f.open < windowSize && ctx.Err() == nil {
			if b := f.peer.gather(ctx); b.size() > 0 {
				f.send(ctx, b)
				continue
			}
		}
		if f.open == 0 {
			return f.failed
		}
		select {
		case l := <-f.results:
			f.complete(l)
		case <-f.wake():
		}
	}
}

// wake is there when more could be sent.
func (f *sendWindow) wake() <-chan struct{} {
	if f.failed != nil || f.open == windowSize {
		return nil
	}
	return f.peer.wake
}

func (f *sendWindow) send(ctx context.Context, b *batch) {
	f.sent++
	f.open++
	number := f.sent
	f.peer.node.tasks.Go(func() {
		r := packetResult{batch: b, err: errCrashed}
		defer func() {
			if p := recover(); p != nil {
				f.peer.node.log.Error("a packet was not sent", "node", f.peer.id.String(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
			f.results <- r
		}()
		r.acks, r.err = f.peer.deliver(ctx, f.epoch, number, b)
	})
}

func (f *sendWindow) complete(l packetResult) {
	f.open--
	if l.err == nil {
		l.batch.settle(f.peer, l.acks.Acks)
		if l.batch.delayed {
			l.err = errDelayed
		}
	} else {
		l.batch.failed(f.peer, l.err)
	}
	if f.failed == nil {
		f.failed = l.err
	}
}

// deliver takes a packet there and brings its acks back.
func (p *peer) deliver(ctx context.Context, epoch, number uint64, b *batch) (ackPacket, error) {
	packet := b.packet(p.node)
	packet.Epoch, packet.Number = epoch, number
	body, err := writePacket(packet)
	if err != nil {
		return ackPacket{}, err
	}
	answer, err := p.call(ctx, packetMail, body)
	if err != nil {
		return ackPacket{}, err
	}
	acks, err := readPacket[ackPacket](answer.Body)
	if err != nil || answer.Kind != packetAcks || len(acks.Acks) != b.size() {
		return ackPacket{}, errMalformedPacket
	}
	p.mailOut.Add(uint64(len(acks.Acks)))
	return acks, nil
}

// markInFlight notes that items are on their way.
func (p *peer) markInFlight(all []outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range all {
		seqs := p.inFlight[o.from]
		if seqs == nil {
			seqs = map[uint64]bool{}
			p.inFlight[o.from] = seqs
		}
		seqs[o.item.Seq] = true
	}
}

// done notes that an item is no longer on its way.
func (p *peer) done(o outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seqs := p.inFlight[o.from]; seqs != nil {
		if delete(seqs, o.item.Seq); len(seqs) == 0 {
			delete(p.inFlight, o.from)
		}
	}
}

// addInFlight adds a mailbox's items that are on their way to those that are not to be sent.
func (p *peer) addInFlight(id capabilities.ID, taken map[uint64]bool) map[uint64]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inFlight[id]) == 0 {
		return taken
	}
	if taken == nil {
		taken = map[uint64]bool{}
	}
	for seq := range p.inFlight[id] {
		taken[seq] = true
	}
	return taken
}

// receiveWindow admits the packets of a node in the order of their numbers. It admits none of an earlier epoch, and none
// after one that could not be stored.
type receiveWindow struct {
	mu      sync.Mutex
	epoch   uint64
	next    uint64        // number of the packet that is to come in now
	changed chan struct{} // closed when the above change
	failed  bool

	failures uint64 // of the journal, when the epoch began: what came in before another may be lost
}

// windowPatience is how long a packet waits for those before it. One that was lost is sent again, with all
// after it, in another epoch.
const windowPatience = 500 * time.Millisecond

// wait returns true when it is a packet's turn: the caller says when it has been let in. Failures is how often the
// journal has failed. Letters without an epoch have no order.
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
		l.epoch, l.next, l.failed, l.failures = epoch, 1, false, failures
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

// admit notes that a packet was taken in, so that the next may follow. A repeated packet is admitted once.
func (l *receiveWindow) admit(epoch, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch == l.epoch && number == l.next && epoch != 0 {
		l.next++
		l.notify()
	}
}

// fail notes that part of a packet could not be stored.
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

// notify wakes the waiting packets. The caller has the lock.
func (l *receiveWindow) notify() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}
