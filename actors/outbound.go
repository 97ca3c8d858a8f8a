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
func (b *mailboxActor) pack(p *peer, most int) (all []outgoing, more bool) {
	taken := b.reg.acks.parcels()
	if len(taken) >= ackBatch {
		b.recordAcks()
		taken = b.reg.acks.parcels()
	}
	taken = p.addInFlight(b.reg.id, taken)
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
			b.node.log.Error("parcel", "mailbox", b.reg.id.String(), "error", err)
			b.node.registry.leaveAck(b.reg.id, ack{parcel: owed, refused: refusedWith(err)})
			continue
		}
		bytes += len(o.written.Body)
		all = append(all, o)
	}
	p.setOwed(b.reg.id, b.countOwed(p.id))
	return all, false
}

// countOwed counts the parcels for a node that have not arrived.
func (b *mailboxActor) countOwed(node capabilities.NodeID) int {
	taken, n := b.reg.acks.parcels(), 0
	for _, p := range b.state.Outbox() {
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
	written, err := packParcel(p, b.reg.id, evs)
	return outgoing{from: b.reg.id, parcel: p, written: written, knows: mailbox.Introduces(evs)}, err
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
