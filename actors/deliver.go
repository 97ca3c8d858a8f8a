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
func (b *mailboxActor) deliver(parcels []mailbox.OutboxItem) {
	abroad, here := map[capabilities.NodeID]int{}, false
	for _, p := range parcels {
		switch {
		case p.To.Node != b.node.id:
			abroad[p.To.Node]++
		case b.redeliver:
			here = true
		default:
			b.hand(p, b.lineTo(p.To))
		}
	}
	for node, n := range abroad {
		b.node.peers.of(node).addOwed(b.reg.id, n)
	}
	if here { // the journal came back with this message: the next delivers these, after what came before them
		b.node.registry.tell(b.reg.id, 0, activate{})
	}
}

// announceOutbox tells the peers what the mailbox owes to their nodes, when it was made from the log.
func (b *mailboxActor) announceOutbox() {
	owed := map[capabilities.NodeID]int{}
	for _, p := range b.state.Outbox() {
		if p.To.Node != b.node.id {
			owed[p.To.Node]++
		}
	}
	for node, n := range owed {
		p := b.node.peers.of(node)
		p.setOwed(b.reg.id, n)
		p.ask(b.reg.id)
	}
}

// recount says anew what is owed to the homes, on other nodes, of forms that have ended: what was on its way there
// about them no longer is.
func (b *mailboxActor) recount(evs []events.Event) {
	for _, e := range evs {
		form, ended := endOf(e)
		if ended && form.Node != b.node.id { // a form's ID is of its home
			b.node.peers.of(form.Node).setOwed(b.reg.id, b.countOwed(form.Node))
		}
	}
}

// resumeAfterMint has the peers ask again for parcels that waited until a grant was known.
func (b *mailboxActor) resumeAfterMint(rs []ack) {
	minted := false
	for _, r := range rs {
		minted = minted || r.parcel.Kind == events.OutboxMint
	}
	if !minted {
		return
	}
	asked := map[capabilities.NodeID]bool{b.node.id: true}
	for _, p := range b.state.Outbox() {
		if !asked[p.To.Node] {
			asked[p.To.Node] = true
			b.node.peers.of(p.To.Node).ask(b.reg.id)
		}
	}
}

// refusedWith returns an error in the words of an ack.
func refusedWith(err error) string {
	code, text := refusal(err)
	return code + ": " + text
}

// acknowledge leaves an ack for a parcel's sender. It returns err if the parcel could not be stored now: then there is no
// ack, and the parcel stays in the outbox.
func (b *mailboxActor) acknowledge(sender capabilities.ID, p mailbox.OutboxItem, err error) error {
	refused := ""
	switch {
	case isTransient(err):
		return err
	case err != nil:
		refused = refusedWith(err)
	}
	b.node.registry.leaveAck(sender, ack{parcel: p, refused: refused, after: b.last})
	return nil
}
