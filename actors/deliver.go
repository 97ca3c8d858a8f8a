package actors

import (
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// deliver takes parcels to the mailboxes that they are owed to, which confirm them. Between mailboxes of a
// node this does not wait for the disk: the receiver's events come later in the one order than what they
// follow from. After a crash the parcels that are still in the outbox are delivered again, and the receiver
// knows what it has.
//
// What is owed to other nodes is for their peers to come for.
func (b *box) deliver(parcels []mailbox.Parcel) {
	abroad := map[capabilities.NodeID]int{}
	for _, p := range parcels {
		if p.To.Node != b.node.id {
			abroad[p.To.Node]++
			continue
		}
		c, err := b.state.Open(p)
		if err != nil {
			b.node.log.Error("parcel", "mailbox", b.seat.id.String(), "error", err)
			continue
		}
		b.hand(p, c)
	}
	for node, n := range abroad {
		b.node.peers.of(node).owes(b.seat.id, n)
	}
}

// redeliver is deliver for all that the mailbox owes, when it was made from the log.
func (b *box) redeliver() {
	for _, p := range b.state.Outbox() {
		if p.To.Node != b.node.id {
			b.node.peers.of(p.To.Node).owesJust(b.seat.id, 0)
		}
	}
	b.deliver(b.state.Outbox())
}

// recount says anew what is owed to the homes, on other nodes, of forms that have ended: what was on its way there
// about them no longer is.
func (b *box) recount(evs []events.Event) {
	for _, e := range evs {
		form, ended := endOf(e)
		if ended && form.Node != b.node.id { // a form's ID is of its home
			b.node.peers.of(form.Node).owesJust(b.seat.id, b.owes(form.Node))
		}
	}
}

// mintsArrived has the peers look again for what waited until a grant was known.
func (b *box) mintsArrived(rs []receipt) {
	minted := false
	for _, r := range rs {
		minted = minted || r.parcel.Kind == events.ParcelMint
	}
	if !minted {
		return
	}
	asked := map[capabilities.NodeID]bool{b.node.id: true}
	for _, p := range b.state.Outbox() {
		if !asked[p.To.Node] {
			asked[p.To.Node] = true
			b.node.peers.of(p.To.Node).ask(b.seat.id)
		}
	}
}

func (b *box) hand(p mailbox.Parcel, c mailbox.Command) {
	node, from := b.node, b.seat.id
	node.roster.tell(p.To, visit{
		after: b.last,
		run: func(to *box) {
			_, err := to.decide(c)
			to.confirm(from, p, err)
		},
		lost: func(err error) { // it stays in the outbox
			node.log.Warn("parcel not delivered", "to", p.To.String(), "error", err)
		},
	})
}

// confirm leaves a parcel's sender a receipt, or why it is not wanted. A receiver that could not store it
// leaves none: the parcel stays in the outbox.
func (b *box) confirm(sender capabilities.ID, p mailbox.Parcel, err error) {
	refused := ""
	switch {
	case isTransient(err):
		b.node.log.Warn("parcel not delivered", "to", b.seat.id.String(), "error", err)
		return
	case err != nil:
		code, text := refusal(err)
		refused = code + ": " + text
	}
	b.node.roster.receipt(sender, receipt{parcel: p, refused: refused, after: b.last})
}
