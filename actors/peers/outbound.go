package peers

import (
	"context"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// outbound is an item to be sent, and the mailbox that it comes from.
type outbound struct {
	Outgoing
	from capabilities.ID
}

// batch is the content of one packet to another node.
type batch struct {
	items []outbound
}

// gathering collects the content of a packet from mailboxes, in rounds.
type gathering struct {
	batch *batch
	bytes int
	open  int // mailboxes of this round that have not replied
}

// add adds the items of a mailbox, which are durable.
func (g *gathering) add(p *Peer, c collected) {
	g.open--
	if c.Err != nil {
		p.d.o.Log.Warn("mail not taken up", "mailbox", c.mailbox.String(), "error", c.Err)
		p.askLater(c.mailbox)
		return
	}
	for _, o := range c.Items {
		g.bytes += len(o.Written.Body)
		g.batch.items = append(g.batch.items, outbound{o, c.mailbox})
	}
	if c.More {
		p.Ask(c.mailbox)
	}
}

// trim puts back what is too much for one packet.
func (b *batch) trim(p *Peer, bytes int) {
	for len(b.items) > 1 && (bytes > maxPacket || len(b.items) > MaxItems) {
		last := b.items[len(b.items)-1]
		b.items = b.items[:len(b.items)-1]
		bytes -= len(last.Written.Body)
		p.Ask(last.from)
	}
}

// putBack puts back what was not sent.
func (b *batch) putBack(p *Peer) {
	for _, o := range b.items {
		p.Ask(o.from)
	}
}

// packet writes the batch down.
func (b *batch) packet(d *Directory) MailPacket {
	var m MailPacket
	introduced := map[capabilities.NodeID]bool{}
	for _, o := range b.items {
		m.Items = append(m.Items, o.Written)
		for _, node := range o.Introduces {
			if introduced[node] || node == d.o.ID || node == o.Item.To.Node || len(m.Introduced) == MaxIntroduced {
				continue
			}
			introduced[node] = true
			if other, known := d.get(node); known {
				m.Introduced = append(m.Introduced, other.Address())
			}
		}
	}
	return m
}

// failed puts the batch back.
func (b *batch) failed(p *Peer) {
	for _, o := range b.items {
		p.done(o)
		p.Ask(o.from)
	}
}

// settle passes the acks on to the mailboxes that the items came from.
func (b *batch) settle(p *Peer, acks []Ack) {
	for i, o := range b.items {
		r := acks[i]
		if !r.Status.final() {
			p.done(o)
			p.Ask(o.from)
			continue
		}
		refused := ""
		if r.Status == AckRefused {
			refused = r.refusal()
		}
		p.Add(o.from, -1)
		p.d.node.Acknowledge(o.from, o.Item, refused)
		p.done(o)
	}
}

// isDelayed reports whether an item could not be stored.
func isDelayed(acks []Ack) bool {
	return slices.ContainsFunc(acks, func(r Ack) bool { return !r.Status.final() })
}

// isRefused reports whether a copy was refused.
func (b *batch) isRefused(acks []Ack) bool {
	for i, o := range b.items {
		if o.Item.Kind == events.OutboxCopy && acks[i].Status == AckRefused {
			return true
		}
	}
	return false
}

// refusal returns the reason of a refusal, in words.
func (r Ack) refusal() string {
	e := parley.AsError(RemoteError(r.Code, r.Text))
	return string(e.Code) + ": " + e.Message
}

// deliver sends a packet and returns its acks.
func (p *Peer) deliver(ctx context.Context, epoch, number uint64, b *batch) ([]Ack, error) {
	packet := b.packet(p.d)
	packet.Epoch, packet.Number = epoch, number
	body, err := WritePacket(packet)
	if err != nil {
		return nil, err
	}
	answer, err := p.call(ctx, KindMail, body)
	if err != nil {
		return nil, err
	}
	acks, err := ReadPacket[AckPacket](answer.Body)
	if err != nil || answer.Kind != KindAcks || len(acks.Acks) != len(b.items) {
		return nil, errMalformedPacket
	}
	p.raise(acks.Epoch)
	p.mailOut.Add(uint64(len(acks.Acks)))
	return acks.Acks, nil
}

// markInFlight notes that items are on their way.
func (p *Peer) markInFlight(all []outbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range all {
		seqs := p.inFlight[o.from]
		if seqs == nil {
			seqs = map[uint64]bool{}
			p.inFlight[o.from] = seqs
		}
		seqs[o.Item.Seq] = true
	}
}

// done notes that an item is no longer on its way.
func (p *Peer) done(o outbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seqs := p.inFlight[o.from]; seqs != nil {
		if delete(seqs, o.Item.Seq); len(seqs) == 0 {
			delete(p.inFlight, o.from)
		}
	}
}

// addInFlight adds a mailbox's items that are on their way to those that are not to be sent.
func (p *Peer) addInFlight(id capabilities.ID, taken map[uint64]bool) map[uint64]bool {
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
