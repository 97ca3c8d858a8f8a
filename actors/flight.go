package actors

import (
	"context"
	"errors"

	"parley/capabilities"
)

// flight is packets of mail on their way to a node, several at once. They are numbered, and the other side takes
// them in by their numbers: so what a mailbox sends to another arrives in order, whatever happens on the way.
// When one fails, those after it count for nothing, and another flight begins, of a later epoch, with all that
// there is no receipt for.
type flight struct {
	peer   *peer
	epoch  uint64
	sent   uint64 // number of the latest packet
	landed chan landed
	open   int // packets on their way
	failed error
}

// landed is what came of a packet.
type landed struct {
	batch    *batch
	receipts receiptsPacket
	err      error
}

// window is how many packets may be on their way to a node.
const window = 4

var errDelayed = errors.New("the other node could not store all of it now")

// newFlight begins a flight. The epochs of a node's flights ascend, also when it has been started again.
func (p *peer) newFlight() *flight {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch = max(p.epoch+1, uint64(p.node.now()))
	p.flying = map[capabilities.ID]map[uint64]bool{}
	return &flight{peer: p, epoch: p.epoch, landed: make(chan landed, window)}
}

// carry sends packets until there is nothing to send. After an error there may be.
func (f *flight) carry(ctx context.Context) error {
	for {
		if f.failed == nil && f.open < window && ctx.Err() == nil {
			if b := f.peer.gather(ctx); b.size() > 0 {
				f.send(ctx, b)
				continue
			}
		}
		if f.open == 0 {
			return f.failed
		}
		select {
		case l := <-f.landed:
			f.land(l)
		case <-f.wake():
		}
	}
}

// wake is there when more could be sent.
func (f *flight) wake() <-chan struct{} {
	if f.failed != nil || f.open == window {
		return nil
	}
	return f.peer.wake
}

func (f *flight) send(ctx context.Context, b *batch) {
	f.sent++
	f.open++
	number := f.sent
	f.peer.node.tasks.Go(func() {
		receipts, err := f.peer.deliver(ctx, f.epoch, number, b)
		f.landed <- landed{b, receipts, err}
	})
}

func (f *flight) land(l landed) {
	f.open--
	if l.err == nil {
		l.batch.settle(f.peer, l.receipts.Receipts)
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

// deliver takes a packet there and brings its receipts back.
func (p *peer) deliver(ctx context.Context, epoch, number uint64, b *batch) (receiptsPacket, error) {
	packet := b.packet(p.node)
	packet.Epoch, packet.Number = epoch, number
	body, err := writePacket(packet)
	if err != nil {
		return receiptsPacket{}, err
	}
	answer, err := p.call(ctx, packetMail, body)
	if err != nil {
		return receiptsPacket{}, err
	}
	receipts, err := readPacket[receiptsPacket](answer.Body)
	if err != nil || answer.Kind != packetReceipts || len(receipts.Receipts) != b.size() {
		return receiptsPacket{}, errMalformedPacket
	}
	p.mailOut.Add(uint64(len(receipts.Receipts)))
	return receipts, nil
}

// takeOff notes that parcels are on their way.
func (p *peer) takeOff(all []outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range all {
		seqs := p.flying[o.from]
		if seqs == nil {
			seqs = map[uint64]bool{}
			p.flying[o.from] = seqs
		}
		seqs[o.parcel.Seq] = true
	}
}

// touchDown notes that one is no more.
func (p *peer) touchDown(o outgoing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seqs := p.flying[o.from]; seqs != nil {
		if delete(seqs, o.parcel.Seq); len(seqs) == 0 {
			delete(p.flying, o.from)
		}
	}
}

// onTheWay adds to the parcels that are not to be sent those of a mailbox that are on their way.
func (p *peer) onTheWay(box capabilities.ID, taken map[uint64]bool) map[uint64]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.flying[box]) == 0 {
		return taken
	}
	if taken == nil {
		taken = map[uint64]bool{}
	}
	for seq := range p.flying[box] {
		taken[seq] = true
	}
	return taken
}
