package actors

import (
	"context"

	"parley"
	"parley/capabilities"
)

// batch is what goes to another node in one packet.
type batch struct {
	parcels []outgoing
	errands []*errand
	delayed bool
}

// gather asks the mailboxes for what they owe, as many as fill a packet. What it gets is on disk.
func (p *peer) gather(ctx context.Context) *batch {
	b := &batch{}
	p.mu.Lock()
	n := min(len(p.said), packetParcels)
	b.errands, p.said = p.said[:n:n], p.said[n:]
	p.mu.Unlock()

	bytes := 0
	for _, e := range b.errands {
		bytes += len(e.parcel.Body)
	}
	for ctx.Err() == nil && bytes < packetBytes && len(b.parcels)+len(b.errands) < packetParcels {
		asked := p.collect(ctx, packetParcels-len(b.parcels)-len(b.errands))
		if len(asked) == 0 {
			break
		}
		for _, o := range asked {
			bytes += len(o.written.Body)
		}
		b.parcels = append(b.parcels, asked...)
	}
	b.trim(p, bytes)
	p.takeOff(b.parcels)
	return b
}

func (b *batch) size() int { return len(b.errands) + len(b.parcels) }

// trim puts back what is too much for one packet.
func (b *batch) trim(p *peer, bytes int) {
	for len(b.parcels) > 1 && (bytes > maxPacket || len(b.parcels)+len(b.errands) > packetParcels) {
		last := b.parcels[len(b.parcels)-1]
		b.parcels = b.parcels[:len(b.parcels)-1]
		bytes -= len(last.written.Body)
		p.ask(last.from)
	}
}

// gathered is what one mailbox gave.
type gathered struct {
	box  capabilities.ID
	out  []outgoing
	more bool
	err  error
}

// collect asks some mailboxes at once.
func (p *peer) collect(ctx context.Context, room int) []outgoing {
	boxes := p.next(room)
	came := make(chan gathered, len(boxes))
	for _, id := range boxes {
		p.collectFrom(id, packetBytes/len(boxes), came)
	}
	var all []outgoing
	for range boxes {
		select {
		case g := <-came:
			if g.err != nil {
				p.node.log.Warn("mail not taken up", "mailbox", g.box.String(), "error", g.err)
				p.node.later(retryMost, func() { p.ask(g.box) })
				continue
			}
			all = append(all, g.out...)
			if g.more {
				p.ask(g.box)
			}
		case <-ctx.Done():
			return nil
		}
	}
	return all
}

func (p *peer) collectFrom(id capabilities.ID, bytes int, came chan<- gathered) {
	p.node.roster.tell(id, visit{
		run: func(b *box) {
			out, more := b.pack(p, bytes)
			b.release(func(lost error) { came <- gathered{id, out, more, lost} })
		},
		lost: func(err error) { came <- gathered{box: id, err: err} },
	})
}

// packet writes the batch down.
func (b *batch) packet(n *Node) mailPacket {
	var l mailPacket
	introduced := map[capabilities.NodeID]bool{}
	for _, e := range b.errands {
		l.Parcels = append(l.Parcels, e.parcel)
	}
	for _, o := range b.parcels {
		l.Parcels = append(l.Parcels, o.written)
		for _, node := range o.knows {
			if introduced[node] || node == n.id || node == o.parcel.To.Node || len(l.Introduced) == maxIntroduced {
				continue
			}
			introduced[node] = true
			if other, known := n.peers.get(node); known {
				l.Introduced = append(l.Introduced, other.place())
			}
		}
	}
	return l
}

// failed puts the batch back.
func (b *batch) failed(p *peer, why error) {
	for _, e := range b.errands {
		e.fate <- verdict{err: parley.Refuse(parley.NodeUnreachable, "node %s: %v", p.id, why)}
	}
	for _, o := range b.parcels {
		p.touchDown(o)
		p.ask(o.from)
	}
}

// settle leaves the receipts where the parcels came from.
func (b *batch) settle(p *peer, receipts []receiptPacket) {
	for i, e := range b.errands {
		e.fate <- receipts[i].verdict(p.id)
	}
	for i, o := range b.parcels {
		r := receipts[len(b.errands)+i]
		if !r.Fate.final() {
			b.delayed = true
			p.touchDown(o)
			p.ask(o.from)
			continue
		}
		refused := ""
		if r.Fate == fateRefused {
			refused = refusedWords(r)
		}
		p.owes(o.from, -1)
		p.node.roster.receipt(o.from, receipt{parcel: o.parcel, refused: refused})
		p.touchDown(o)
	}
}

func refusedWords(r receiptPacket) string {
	e := parley.AsError(refused(r.Code, r.Text))
	return string(e.Code) + ": " + e.Message
}

func (r receiptPacket) verdict(node capabilities.NodeID) verdict {
	switch r.Fate {
	case fateArrived:
		return verdict{at: r.At}
	case fateRefused:
		return verdict{err: refused(r.Code, r.Text)}
	}
	return verdict{err: parley.Refuse(parley.NodeUnreachable, "node %s cannot store it now", node)}
}
