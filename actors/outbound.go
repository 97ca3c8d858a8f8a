package actors

import (
	"errors"

	"parley/actors/peers"
	"parley/capabilities"
	"parley/mailbox"
)

// Collect implements peers.Node.
func (n peerNode) Collect(mailbox capabilities.ID, r peers.Request, reply func(peers.Collected)) {
	n.registry.tell(mailbox, 0, collectItems{r, reply})
}

// collectItems asks a mailbox for its items for another node.
type collectItems struct {
	request peers.Request
	reply   func(peers.Collected)
}

func (m collectItems) handle(b *mailboxActor) {
	items, more, err := collectFrom(b, m.request)
	if err != nil {
		m.fail(err)
		return
	}
	b.release(func(lost error) { m.reply(peers.Collected{Items: items, More: more, Err: lost}) })
}

func (m collectItems) fail(err error) { m.reply(peers.Collected{Err: err}) }

// collectFrom returns the mailbox's items for a node that can be sent now, and whether there are more. It stops at an
// item whose message cannot be read now, and fails if that is the first one.
func collectFrom(b *mailboxActor, r peers.Request) (all []peers.Outgoing, more bool, err error) {
	taken := b.reg.acks.items()
	if len(taken) >= ackBatch {
		b.recordAcks()
		taken = b.reg.acks.items()
	}
	taken = r.Skip(taken)
	bytes := 0
	for item := range b.state.Outgoing(r.Node) {
		if taken[item.Seq] {
			continue
		}
		if len(all) == peers.MaxItems || bytes > r.Bytes {
			return all, true, nil
		}
		o, err := writeItem(b, item)
		if _, later := errors.AsType[unread](err); later {
			if len(all) == 0 {
				return nil, false, err
			}
			return all, true, nil
		}
		if err != nil { // it never can be sent
			b.node.log.Error("an outbox item cannot be sent", "mailbox", b.reg.id.String(), "error", err)
			b.node.registry.leaveAck(b.reg.id, ack{item: item, refused: refusedWith(err)})
			continue
		}
		bytes += len(o.Written.Body)
		all = append(all, o)
	}
	b.node.peers.Peer(r.Node).Set(b.reg.id, countItems(b, r.Node))
	return all, false, nil
}

// countItems counts the items for a node that have no ack.
func countItems(b *mailboxActor, node capabilities.NodeID) int {
	taken, n := b.reg.acks.items(), 0
	for _, item := range b.state.Outbox.Items() {
		if item.To.Node == node && !taken[item.Seq] {
			n++
		}
	}
	return n
}

// writeItem returns an item as it is sent.
func writeItem(b *mailboxActor, item mailbox.OutboxItem) (peers.Outgoing, error) {
	c, err := recalled(b, func() (mailbox.Command, error) { return b.state.CommandFor(item) })
	if err != nil {
		return peers.Outgoing{}, err
	}
	if s, ok := c.(mailbox.SettleForm); ok {
		if c, err = openSettle(b, s); err != nil {
			return peers.Outgoing{}, err
		}
	}
	evs := mailbox.Pack(c)
	written, err := peers.PackItem(item, b.reg.id, evs)
	return peers.Outgoing{Item: item, Written: written, Introduces: mailbox.Introduces(evs)}, err
}

// openSettle returns a queued settlement with its secret values opened. It is sent under seal, to its home alone.
func openSettle(b *mailboxActor, c mailbox.SettleForm) (mailbox.SettleForm, error) {
	opened, err := b.node.secrets.Open(capabilities.Record(c.Values))
	if err != nil {
		return c, err
	}
	c.Values, _ = opened.AsRecord()
	return c, nil
}

// Acknowledge implements peers.Node.
func (n peerNode) Acknowledge(mailbox capabilities.ID, item mailbox.OutboxItem, refused string) {
	n.registry.leaveAck(mailbox, ack{item: item, refused: refused})
}
