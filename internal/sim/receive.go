package sim

import (
	"slices"

	"parley"
	"parley/actors/peers/window"
	"parley/events"
	"parley/mailbox"
)

// turn returns the turn of a packet that has come.
func (p *peer) turn(m *packet) window.Turn {
	p.receives.Begin(m.epoch, m.number, p.node.journal.times)
	return p.receives.Look(m.epoch, m.number)
}

// receive handles a packet that has arrived.
func (n *node) receive(m *packet) {
	w := n.world
	if n.down {
		return
	}
	p := n.peer(m.from)
	if m.response {
		p.respond(m)
		return
	}
	switch p.turn(m) {
	case window.Now:
		n.accept(p, m)
		n.admitHeld()
	case window.Over:
		w.sometimes(packetLate)
		n.refuse(p, m)
	default:
		w.sometimes(packetEarly)
		w.trace("%s holds packet %d of epoch %d", n.name, m.number, m.epoch)
		n.held = append(n.held, m)
	}
}

// refuse has a packet sent again.
func (n *node) refuse(p *peer, m *packet) {
	p.receives.Fail(m.epoch)
	results := make([]result, len(m.items))
	for i := range results {
		results[i].again = true
	}
	n.reply(m, results)
}

func (n *node) reply(m *packet, results []result) {
	n.world.packets = append(n.world.packets, &packet{from: n, to: m.from, call: m.call, response: true, results: results, newest: n.peer(m.from).receives.Newest()})
	n.world.progress++
}

// admitHeld looks again at the packets that came before their turn.
func (n *node) admitHeld() {
	for again := true; again; {
		again = false
		for i, m := range n.held {
			p := n.peer(m.from)
			turn := p.turn(m)
			if turn == window.Early {
				continue
			}
			n.held = slices.Delete(n.held, i, i+1)
			if turn == window.Now {
				n.accept(p, m)
			} else {
				n.refuse(p, m)
			}
			again = true
			break
		}
	}
}

// giveUp refuses a packet that has waited for its turn too long.
func (n *node) giveUp(i int) {
	m := n.held[i]
	n.held = slices.Delete(n.held, i, i+1)
	n.refuse(n.peer(m.from), m)
	n.admitHeld()
}

// accept has the mailboxes decide on the items of a packet. The response is sent when all is durable.
func (n *node) accept(p *peer, m *packet) {
	w := n.world
	in := &intake{node: n, peer: p, packet: m, results: make([]result, len(m.items)), open: len(m.items), failed: map[*mailboxActor]bool{}}
	for i, it := range m.items {
		c := w.unpack(it)
		if d, ok := c.(mailbox.RemoteDelivery); ok && d.Form != nil && !n.forwarded(d.Form, it.to) {
			in.done(i, parley.Refuse(parley.NotPermitted, "not forwarded"))
			continue
		}
		it.to.tell(0, "remote "+nameOf(c), func(b *mailboxActor) {
			if b.doubtful || in.failed[b] || p.receives.HasFailed(m.epoch, b.failures) {
				in.done(i, errFull)
				return
			}
			if isAnswered(b, c) {
				w.sometimes(answerDoubled)
			}
			_, isCopy := c.(mailbox.RemoteDelivery)
			way := window.Route{From: it.from, To: b.id}
			err := b.admit(p.receives.HasRefused(m.epoch, way), isCopy, w.quotaed(w.host(m.from), b, c))
			switch {
			case isTransient(err):
				in.fail(b)
			case err != nil && isCopy:
				p.receives.Refuse(m.epoch, way)
			}
			w.noteSettlement(b, c, err)
			version := b.state.Version
			b.release(func(lost error) {
				if lost != nil {
					err = lost
				}
				if lost == nil && b.shadow.version < version {
					w.failf("%s acknowledges an item that is not durable", b.name)
				}
				in.done(i, err)
			})
		}, func(err error) { in.done(i, err) })
	}
	p.receives.Admit(m.epoch, m.number)
	w.progress++
}

// forwarded reports whether the agents of this node that a form names as its forwarders did forward it.
func (n *node) forwarded(f *events.FormRequested, to *mailboxActor) bool {
	for i, by := range f.Chain {
		if n.world.nodeOf(by) != n {
			continue
		}
		next := to.id
		if i+1 < len(f.Chain) {
			next = f.Chain[i+1]
		}
		b := n.world.mailbox(by)
		if b.ready(0) != nil {
			return false
		}
		ok, err := recalled(b, b.state, func() (bool, error) { return b.state.HasForwarded(f.ID, next) })
		if err != nil || !ok {
			return false
		}
	}
	return true
}

// intake is a packet that is being accepted.
type intake struct {
	node    *node
	peer    *peer
	packet  *packet
	results []result
	open    int
	failed  map[*mailboxActor]bool
}

// done notes the result of an item.
func (in *intake) done(i int, err error) {
	if isTransient(err) {
		in.fail(in.packet.items[i].to)
		in.results[i].again = true
	} else {
		in.results[i] = result{refused: refusal(err), code: parley.CodeOf(err)}
	}
	if in.open--; in.open == 0 {
		in.node.reply(in.packet, in.results)
	}
}

// fail accepts nothing more for a mailbox, nor of the window.
func (in *intake) fail(to *mailboxActor) {
	in.failed[to] = true
	in.peer.receives.Fail(in.packet.epoch)
}
