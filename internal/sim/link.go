package sim

import (
	"slices"

	"parley"
	"parley/actors/peers/window"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// packet is mail on its way to a node, or the response to it. A packet is delivered, lost, delayed or doubled.
type packet struct {
	from, to *node
	call     uint64
	response bool
	epoch    uint64
	number   uint64
	items    []item
	results  []result
	newest   uint64 // in a response, the newest epoch of its sender's window
}

// item is an outbox item as another node gets it.
type item struct {
	kind  events.OutboxKind
	from  capabilities.ID
	to    *mailboxActor
	count int
	body  []byte
}

// result is the result of an item: accepted, refused or to be sent again.
type result struct {
	again   bool
	refused string
	code    parley.Code
}

// peer carries the mail of a node to another, and has the window of what comes from there.
type peer struct {
	node, to *node

	ready    []*mailboxActor
	inFlight map[*mailboxActor]map[uint64]bool
	direct   []*direct
	epoch    uint64
	window   *sendWindow
	calls    map[uint64]*batch

	receives window.Receive
}

func newPeer(n, to *node) *peer {
	return &peer{node: n, to: to, inFlight: map[*mailboxActor]map[uint64]bool{}, calls: map[uint64]*batch{}}
}

// sendWindow is packets on their way, several at once.
type sendWindow struct {
	epoch, sent uint64
	open        int
	failed      bool
	gathering   bool
}

// batch is the content of a packet.
type batch struct {
	window *sendWindow
	direct []*direct
	items  []outgoing
}

type outgoing struct {
	mailbox *mailboxActor
	item    mailbox.OutboxItem
	written item
}

// direct is a forged item: it is in no mailbox of its sender.
type direct struct {
	item    item
	result  func(result)
	settled bool
}

func (d *direct) done(r result) {
	if !d.settled {
		d.settled = true
		d.result(r)
	}
}

const (
	windowSize = 3
	batchItems = 4
)

// ask has the mailbox asked for its items.
func (p *peer) ask(b *mailboxActor) {
	if !slices.Contains(p.ready, b) {
		p.ready = append(p.ready, b)
	}
}

// advance sends the next packet, if there is anything to send. It reports whether it did something.
func (p *peer) advance() bool {
	w := p.window
	switch {
	case w != nil && w.gathering:
		return false
	case w != nil && w.failed && w.open > 0:
		return false
	case w != nil && w.open == 0 && (w.failed || len(p.ready)+len(p.direct) == 0):
		p.window = nil
		return true
	case len(p.ready)+len(p.direct) == 0 || w != nil && w.open >= windowSize:
		return false
	case w == nil:
		p.epoch = window.NextEpoch(p.epoch, p.node.now(), p.node.starts<<10)
		p.inFlight = map[*mailboxActor]map[uint64]bool{}
		w = &sendWindow{epoch: p.epoch}
		p.window = w
	}
	b := &batch{window: w}
	n := min(len(p.direct), batchItems)
	b.direct, p.direct = p.direct[:n:n], p.direct[n:]
	if len(p.ready) == 0 {
		p.send(b)
		return true
	}
	from := p.ready[0]
	p.ready = p.ready[1:]
	w.gathering = true
	from.tell(0, "collect for "+p.to.name, func(from *mailboxActor) {
		if from.acks.HasRefusedCopy() {
			from.commitAcks()
		}
		if from.acks.HasRefusedCopy() {
			w.gathering = false
			p.later(from, b)
			return
		}
		items, more := p.collect(from, batchItems-n)
		version := from.state.Version
		from.release(func(lost error) {
			w.gathering = false
			if lost != nil {
				p.later(from, b)
				return
			}
			if from.shadow.version < version {
				p.node.world.failf("%s: items are sent before they are durable", from.name)
			}
			if w.failed {
				p.later(from, b)
				return
			}
			b.items = items
			if more {
				p.ask(from)
			}
			p.send(b)
		})
	}, func(error) {
		w.gathering = false
		p.later(from, b)
	})
	return true
}

// later puts back what was not sent.
func (p *peer) later(from *mailboxActor, b *batch) {
	p.direct = append(b.direct, p.direct...)
	p.node.later("ask again", func() { p.ask(from) })
}

// collect returns the items of a mailbox that can be sent now, and whether there are more.
func (p *peer) collect(b *mailboxActor, most int) (all []outgoing, more bool) {
	taken := b.acks.Seqs(b.node.journal.lost)
	sent := map[capabilities.ID]bool{}
	for o := range b.state.Outgoing(p.to.id) {
		sent[o.To] = true
		if taken[o.Seq] || p.inFlight[b][o.Seq] {
			continue
		}
		if len(all) == most {
			return all, true
		}
		c, err := recalled(b, b.state, func() (mailbox.Command, error) { return b.state.CommandFor(o) })
		if err != nil {
			b.node.world.failf("%s: item %+v cannot be sent: %v", b.name, o, err)
		}
		all = append(all, outgoing{b, o, b.node.world.pack(b, o, c)})
	}
	for _, o := range b.state.Outbox.Items() {
		if o.To.Node == p.to.id && !sent[o.To] {
			b.node.world.sometimes(heldForMint)
		}
	}
	return all, false
}

// send sends a packet to the link.
func (p *peer) send(b *batch) {
	if len(b.items)+len(b.direct) == 0 {
		return
	}
	w := p.node.world
	b.window.sent++
	b.window.open++
	w.calls++
	p.calls[w.calls] = b
	m := &packet{from: p.node, to: p.to, call: w.calls, epoch: b.window.epoch, number: b.window.sent}
	for _, d := range b.direct {
		m.items = append(m.items, d.item)
	}
	for _, o := range b.items {
		seqs := p.inFlight[o.mailbox]
		if seqs == nil {
			seqs = map[uint64]bool{}
			p.inFlight[o.mailbox] = seqs
		}
		seqs[o.item.Seq] = true
		m.items = append(m.items, o.written)
	}
	w.trace("%s sends packet %d of epoch %d with %d items to %s", p.node.name, m.number, m.epoch, len(m.items), p.to.name)
	w.packets = append(w.packets, m)
	w.progress++
}

// fail ends a call without a response.
func (p *peer) fail(call uint64) {
	b := p.calls[call]
	if b == nil {
		return
	}
	delete(p.calls, call)
	p.node.world.trace("%s has no response from %s to packet of epoch %d", p.node.name, p.to.name, b.window.epoch)
	p.node.world.progress++
	b.window.open--
	b.window.failed = true
	for _, d := range b.direct {
		d.done(result{again: true})
	}
	for _, o := range b.items {
		delete(p.inFlight[o.mailbox], o.item.Seq)
		p.ask(o.mailbox)
	}
}

// respond takes the results of a packet.
func (p *peer) respond(m *packet) {
	b := p.calls[m.call]
	if b == nil {
		return // it came too late, or again
	}
	delete(p.calls, m.call)
	p.epoch = window.Raise(p.epoch, m.newest)
	b.window.open--
	for i, d := range b.direct {
		d.done(m.results[i])
	}
	for i, o := range b.items {
		if o.item.Kind == events.OutboxCopy && m.results[len(b.direct)+i].refused != "" {
			b.window.failed = true
		}
	}
	for i, o := range b.items {
		r := m.results[len(b.direct)+i]
		delete(p.inFlight[o.mailbox], o.item.Seq)
		if r.again {
			b.window.failed = true
			p.ask(o.mailbox)
			continue
		}
		o.mailbox.leaveAck(ack{Item: o.item, Refused: r.refused})
	}
}
