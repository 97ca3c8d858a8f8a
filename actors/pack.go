package actors

import (
	"parley/capabilities"
	"parley/mailbox"
)

// outgoing is what a mailbox gave to be carried.
type outgoing struct {
	from    capabilities.ID
	parcel  mailbox.OutboxItem
	written parcelPacket
	knows   []capabilities.NodeID // to be introduced
}

// pack gives what the mailbox owes to a node and can go there now, up to a number of bytes, and whether
// there is more.
func (b *box) pack(p *peer, most int) (all []outgoing, more bool) {
	taken := b.seat.receipts.parcels()
	if len(taken) >= receiptsAtOnce {
		b.noteReceipts()
		taken = b.seat.receipts.parcels()
	}
	taken = p.onTheWay(b.seat.id, taken)
	bytes := 0
	for owed := range b.state.Outgoing(p.id) {
		if taken[owed.Seq] {
			continue
		}
		if len(all) == packetParcels || bytes > most {
			return all, true
		}
		o, err := b.packOne(owed)
		if err != nil { // it never will go: better said than tried for ever
			b.node.log.Error("parcel", "mailbox", b.seat.id.String(), "error", err)
			b.node.roster.receipt(b.seat.id, receipt{parcel: owed, refused: refusedWith(err)})
			continue
		}
		bytes += len(o.written.Body)
		all = append(all, o)
	}
	p.owesJust(b.seat.id, b.owes(p.id))
	return all, false
}

// owes counts the parcels for a node that have not arrived.
func (b *box) owes(node capabilities.NodeID) int {
	taken, n := b.seat.receipts.parcels(), 0
	for _, p := range b.state.Outbox() {
		if p.To.Node == node && !taken[p.Seq] {
			n++
		}
	}
	return n
}

func (b *box) packOne(p mailbox.OutboxItem) (outgoing, error) {
	c, err := b.state.CommandFor(p)
	if err != nil {
		return outgoing{}, err
	}
	if s, ok := c.(mailbox.SettleForm); ok {
		if c, err = b.node.vault.openSettle(s); err != nil {
			return outgoing{}, err
		}
	}
	evs := mailbox.Pack(c)
	written, err := packParcel(p, b.seat.id, evs)
	return outgoing{from: b.seat.id, parcel: p, written: written, knows: mailbox.Introduces(evs)}, err
}
