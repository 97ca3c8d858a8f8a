package actors

import (
	"parley"
	"parley/capabilities"
	"parley/mailbox"
)

// deliver takes parcels to the mailboxes that they are owed to, which confirm them. Between mailboxes of a
// node this does not wait for the disk: the receiver's events come later in the one order than what they
// follow from. After a crash the parcels that are still in the outbox are delivered again, and the receiver
// knows what it has.
func (b *box) deliver(parcels []mailbox.Parcel) {
	for _, p := range parcels {
		c, err := b.state.Open(p)
		if err != nil {
			b.node.log.Error("parcel", "mailbox", b.seat.id.String(), "error", err)
			continue
		}
		b.hand(p, c)
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
	switch code := parley.CodeOf(err); code {
	case "":
	case parley.ReadOnly, parley.CorruptLog, parley.Internal:
		b.node.log.Warn("parcel not delivered", "to", b.seat.id.String(), "error", err)
		return
	default:
		refused = string(code)
	}
	b.node.roster.receipt(sender, receipt{parcel: p, refused: refused, after: b.last})
}
