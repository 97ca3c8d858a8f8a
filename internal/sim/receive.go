package sim

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// receiveWindow admits the packets of a node in the order of their numbers.
type receiveWindow struct {
	epoch, next uint64
	failed      bool
	failures    uint64
	refused     map[route]bool // of which a copy was refused in the epoch
}

// route is the way from a mailbox of another node to one of this node.
type route struct {
	from capabilities.ID
	to   *box
}

// look reports whether it is a packet's turn, and whether that is over.
func (l *receiveWindow) look(epoch, number, failures uint64) (turn, over bool) {
	if epoch > l.epoch && number == 1 {
		*l = receiveWindow{epoch: epoch, next: 1, failures: failures}
	}
	switch {
	case epoch < l.epoch, epoch == l.epoch && (l.failed || number < l.next):
		return false, true
	case epoch == l.epoch && number == l.next:
		return true, false
	}
	return false, false
}

func (l *receiveWindow) fail(epoch uint64) {
	if epoch == l.epoch {
		l.failed = true
	}
}

func (l *receiveWindow) hasFailed(epoch, failures uint64) bool {
	return epoch == l.epoch && (l.failed || l.failures != failures)
}

func (l *receiveWindow) refuse(epoch uint64, r route) {
	if epoch != l.epoch {
		return
	}
	if l.refused == nil {
		l.refused = map[route]bool{}
	}
	l.refused[r] = true
}

func (l *receiveWindow) hasRefused(epoch uint64, r route) bool {
	return epoch == l.epoch && l.refused[r]
}

// receive takes a packet from the wire.
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
	turn, over := p.receives.look(m.epoch, m.number, n.journal.times)
	switch {
	case turn:
		n.accept(p, m)
		n.admitHeld()
	case over:
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
	p.receives.fail(m.epoch)
	results := make([]result, len(m.items))
	for i := range results {
		results[i].again = true
	}
	n.reply(m, results)
}

func (n *node) reply(m *packet, results []result) {
	n.world.wire = append(n.world.wire, &packet{from: n, to: m.from, call: m.call, response: true, results: results, newest: n.peer(m.from).receives.epoch})
	n.world.progress++
}

// admitHeld looks again at the packets that came before their turn.
func (n *node) admitHeld() {
	for again := true; again; {
		again = false
		for i, m := range n.held {
			p := n.peer(m.from)
			turn, over := p.receives.look(m.epoch, m.number, n.journal.times)
			if !turn && !over {
				continue
			}
			n.held = slices.Delete(n.held, i, i+1)
			if turn {
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

// accept has the boxes decide on the items of a packet. The response is sent when all is durable.
func (n *node) accept(p *peer, m *packet) {
	w := n.world
	in := &intake{node: n, peer: p, packet: m, results: make([]result, len(m.items)), open: len(m.items), failed: map[*box]bool{}}
	for i, it := range m.items {
		c := w.unpack(it)
		if d, ok := c.(mailbox.RemoteDelivery); ok && d.Form != nil && !n.forwarded(d.Form, it.to) {
			in.done(i, parley.Refuse(parley.NotPermitted, "not forwarded"))
			continue
		}
		it.to.tell(0, "remote "+nameOf(c), func(b *box) {
			if b.doubtful || in.failed[b] || p.receives.hasFailed(m.epoch, b.failures) {
				in.done(i, errFull)
				return
			}
			if isAnswered(b, c) {
				w.sometimes(answerDoubled)
			}
			_, isCopy := c.(mailbox.RemoteDelivery)
			way := route{it.from, b}
			err := b.admit(p.receives.hasRefused(m.epoch, way), isCopy, w.quotaed(w.host(m.from), b, c))
			switch {
			case isTransient(err):
				in.fail(b)
			case err != nil && isCopy:
				p.receives.refuse(m.epoch, way)
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
	p.receives.next++
	w.progress++
}

// forwarded reports whether the agents of this node that a form names as its forwarders did forward it.
func (n *node) forwarded(f *events.FormRequested, to *box) bool {
	for i, by := range f.Chain {
		if n.world.nodeOf(by) != n {
			continue
		}
		next := to.id
		if i+1 < len(f.Chain) {
			next = f.Chain[i+1]
		}
		b := n.world.box(by)
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
	failed  map[*box]bool
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

// fail accepts nothing more for a box, nor of the window.
func (in *intake) fail(to *box) {
	in.failed[to] = true
	in.peer.receives.fail(in.packet.epoch)
}
