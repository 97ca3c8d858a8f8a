package actors

import (
	"context"

	"parley"
	"parley/capabilities"
	"parley/mailbox"
)

// outgoing is what a mailbox gave to be carried.
type outgoing struct {
	from    capabilities.ID
	item    mailbox.OutboxItem
	written packetItem
	knows   []capabilities.NodeID // to be introduced
}

// pack gives what the mailbox owes to a node and can go there now, up to a number of bytes, and whether
// there is more.
func (b *mailboxActor) pack(p *peer, most int) (all []outgoing, more bool) {
	taken := b.reg.acks.items()
	if len(taken) >= ackBatch {
		b.recordAcks()
		taken = b.reg.acks.items()
	}
	taken = p.addInFlight(b.reg.id, taken)
	bytes := 0
	for owed := range b.state.Outgoing(p.id) {
		if taken[owed.Seq] {
			continue
		}
		if len(all) == packetItems || bytes > most {
			return all, true
		}
		o, err := b.packOne(owed)
		if err != nil { // it never will go: better said than tried for ever
			b.node.log.Error("an outbox item cannot be sent", "mailbox", b.reg.id.String(), "error", err)
			b.node.registry.leaveAck(b.reg.id, ack{item: owed, refused: refusedWith(err)})
			continue
		}
		bytes += len(o.written.Body)
		all = append(all, o)
	}
	p.setOwed(b.reg.id, b.countOwed(p.id))
	return all, false
}

// countOwed counts the items for a node that have not arrived.
func (b *mailboxActor) countOwed(node capabilities.NodeID) int {
	taken, n := b.reg.acks.items(), 0
	for _, p := range b.state.Outbox.Items() {
		if p.To.Node == node && !taken[p.Seq] {
			n++
		}
	}
	return n
}

func (b *mailboxActor) packOne(p mailbox.OutboxItem) (outgoing, error) {
	c, err := b.state.CommandFor(p)
	if err != nil {
		return outgoing{}, err
	}
	if s, ok := c.(mailbox.SettleForm); ok {
		if c, err = b.openSettle(s); err != nil {
			return outgoing{}, err
		}
	}
	evs := mailbox.Pack(c)
	written, err := packItem(p, b.reg.id, evs)
	return outgoing{from: b.reg.id, item: p, written: written, knows: mailbox.Introduces(evs)}, err
}

// openSettle returns a queued settlement with its secret values opened. It is sent under seal, to its home alone.
func (b *mailboxActor) openSettle(c mailbox.SettleForm) (mailbox.SettleForm, error) {
	opened, err := b.node.secrets.Open(capabilities.Record(c.Values))
	if err != nil {
		return c, err
	}
	c.Values, _ = opened.AsRecord()
	return c, nil
}

// batch is what goes to another node in one packet.
type batch struct {
	items   []outgoing
	direct  []*directSend
	delayed bool
}

// gather asks the mailboxes for what they owe, as many as fill a packet. What it gets is on disk.
func (p *peer) gather(ctx context.Context) *batch {
	b := &batch{}
	p.mu.Lock()
	n := min(len(p.direct), packetItems)
	b.direct, p.direct = p.direct[:n:n], p.direct[n:]
	p.mu.Unlock()

	bytes := 0
	for _, e := range b.direct {
		bytes += len(e.item.Body)
	}
	for ctx.Err() == nil && bytes < packetBytes && len(b.items)+len(b.direct) < packetItems {
		asked := p.collect(ctx, packetItems-len(b.items)-len(b.direct))
		if len(asked) == 0 {
			break
		}
		for _, o := range asked {
			bytes += len(o.written.Body)
		}
		b.items = append(b.items, asked...)
	}
	b.trim(p, bytes)
	p.markInFlight(b.items)
	return b
}

func (b *batch) size() int { return len(b.direct) + len(b.items) }

// trim puts back what is too much for one packet.
func (b *batch) trim(p *peer, bytes int) {
	for len(b.items) > 1 && (bytes > maxPacket || len(b.items)+len(b.direct) > packetItems) {
		last := b.items[len(b.items)-1]
		b.items = b.items[:len(b.items)-1]
		bytes -= len(last.written.Body)
		p.ask(last.from)
	}
}

// gathered is what one mailbox gave.
type gathered struct {
	from capabilities.ID
	out  []outgoing
	more bool
	err  error
}

// collect asks some mailboxes at once.
func (p *peer) collect(ctx context.Context, room int) []outgoing {
	ids := p.next(room)
	came := make(chan gathered, len(ids))
	for _, id := range ids {
		p.collectFrom(id, packetBytes/len(ids), came)
	}
	var all []outgoing
	for range ids {
		select {
		case g := <-came:
			if g.err != nil {
				p.node.log.Warn("mail not taken up", "mailbox", g.from.String(), "error", g.err)
				p.node.later(retryMost, func() { p.ask(g.from) })
				continue
			}
			all = append(all, g.out...)
			if g.more {
				p.ask(g.from)
			}
		case <-ctx.Done():
			return nil
		}
	}
	return all
}

func (p *peer) collectFrom(id capabilities.ID, bytes int, came chan<- gathered) {
	p.node.registry.tell(id, 0, collectItems{p, id, bytes, came})
}

// collectItems asks a mailbox for the items that it owes to a node, up to a number of bytes.
type collectItems struct {
	peer    *peer
	mailbox capabilities.ID
	bytes   int
	came    chan<- gathered
}

func (m collectItems) handle(b *mailboxActor) {
	out, more := b.pack(m.peer, m.bytes)
	b.release(func(lost error) { m.came <- gathered{m.mailbox, out, more, lost} })
}

func (m collectItems) fail(err error) { m.came <- gathered{from: m.mailbox, err: err} }

// packet writes the batch down.
func (b *batch) packet(n *Node) mailPacket {
	var l mailPacket
	introduced := map[capabilities.NodeID]bool{}
	for _, e := range b.direct {
		l.Items = append(l.Items, e.item)
	}
	for _, o := range b.items {
		l.Items = append(l.Items, o.written)
		for _, node := range o.knows {
			if introduced[node] || node == n.id || node == o.item.To.Node || len(l.Introduced) == maxIntroduced {
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
	for _, e := range b.direct {
		e.result <- sendResult{err: parley.Refuse(parley.NodeUnreachable, "node %s: %v", p.id, why)}
	}
	for _, o := range b.items {
		p.done(o)
		p.ask(o.from)
	}
}

// settle leaves the acks where the items came from.
func (b *batch) settle(p *peer, acks []itemAck) {
	for i, e := range b.direct {
		e.result <- acks[i].result(p.id)
	}
	for i, o := range b.items {
		r := acks[len(b.direct)+i]
		if !r.Status.final() {
			b.delayed = true
			p.done(o)
			p.ask(o.from)
			continue
		}
		refused := ""
		if r.Status == ackRefused {
			refused = refusedWords(r)
		}
		p.addOwed(o.from, -1)
		p.node.registry.leaveAck(o.from, ack{item: o.item, refused: refused})
		p.done(o)
	}
}

func refusedWords(r itemAck) string {
	e := parley.AsError(refused(r.Code, r.Text))
	return string(e.Code) + ": " + e.Message
}

func (r itemAck) result(node capabilities.NodeID) sendResult {
	switch r.Status {
	case ackAccepted:
		return sendResult{at: r.At}
	case ackRefused:
		return sendResult{err: refused(r.Code, r.Text)}
	}
	return sendResult{err: parley.Refuse(parley.NodeUnreachable, "node %s cannot store it now", node)}
}
