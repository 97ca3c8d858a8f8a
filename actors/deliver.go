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
func (b *box) deliver(parcels []mailbox.OutboxItem) {
	abroad, here := map[capabilities.NodeID]int{}, false
	for _, p := range parcels {
		switch {
		case p.To.Node != b.node.id:
			abroad[p.To.Node]++
		case b.owing:
			here = true
		default:
			b.hand(p, b.lineTo(p.To))
		}
	}
	for node, n := range abroad {
		b.node.peers.of(node).owes(b.seat.id, n)
	}
	if here { // the journal came back during this visit: the next delivers these, after what came before them
		b.node.roster.tell(b.seat.id, visit{run: func(*box) {}, lost: func(error) {}})
	}
}

// owesAbroad tells the peers what the mailbox owes to their nodes, when it was made from the log.
func (b *box) owesAbroad() {
	owed := map[capabilities.NodeID]int{}
	for _, p := range b.state.Outbox() {
		if p.To.Node != b.node.id {
			owed[p.To.Node]++
		}
	}
	for node, n := range owed {
		p := b.node.peers.of(node)
		p.owesJust(b.seat.id, n)
		p.ask(b.seat.id)
	}
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
		minted = minted || r.parcel.Kind == events.OutboxMint
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

// refusedWith writes an error down as a receipt has it.
func refusedWith(err error) string {
	code, text := refusal(err)
	return code + ": " + text
}

// confirm leaves a parcel's sender a receipt, or why it is not wanted. It returns why the parcel could not be stored:
// then there is no receipt, and it stays in the outbox.
func (b *box) confirm(sender capabilities.ID, p mailbox.OutboxItem, err error) error {
	refused := ""
	switch {
	case isTransient(err):
		return err
	case err != nil:
		refused = refusedWith(err)
	}
	b.node.roster.receipt(sender, receipt{parcel: p, refused: refused, after: b.last})
	return nil
}
