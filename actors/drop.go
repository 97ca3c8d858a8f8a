package actors

import (
	"context"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// DropPeer ends what this node has to do with another: its connection is cut, its mail is refused, what waits for it is
// given up, and what its agents were given is revoked. A new invitation brings it back. Only the node's host may.
func (a *Agent) DropPeer(ctx context.Context, node capabilities.NodeID) (view.DroppedPeer, error) {
	done := view.DroppedPeer{Node: node}
	evs, err := call(ctx, a, decide{mailbox.DropNode{Node: node}})
	if err != nil {
		return done, err
	}
	var dropped []mailbox.DroppedPeer
	for _, e := range evs {
		switch e := e.(type) {
		case *events.NodeDropped:
			dropped = append(dropped, mailbox.DroppedPeer{Node: e.Node, At: e.Date})
			a.node.cutOff(e.Node)
		case *events.NameUnbound:
			done.Names++
		}
	}
	done.Introduced = len(dropped) - 1
	for id, m := range a.node.journal.Mailboxes() {
		if !a.node.registry.isAwake(id) && m.Summary.Outbox == 0 {
			continue // it forgets when it is read
		}
		if err := a.node.forget(ctx, id, dropped, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

// forget has a mailbox forget nodes, and counts what it does.
func (n *Node) forget(ctx context.Context, id capabilities.ID, dropped []mailbox.DroppedPeer, done *view.DroppedPeer) error {
	f, err := call(ctx, &Agent{node: n, id: id}, forgetNodes{dropped})
	done.Revoked += f.revoked
	done.Given += f.given
	if parley.CodeOf(err) == parley.CorruptLog {
		return nil // it is put aside, and sends nothing
	}
	return err
}

// cutOff ends the connections with a node, which may not connect again.
func (n *Node) cutOff(node capabilities.NodeID) {
	if n.transport != nil {
		n.transport.Hangup(node)
		n.transport.Disconnect(node)
	}
}

// isAwake reports whether a mailbox is in memory.
func (r *registry) isAwake(id capabilities.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, awake := r.registrations[id]
	return awake
}

// forgotten counts what a mailbox has let go of.
type forgotten struct{ revoked, given int }

// forgetNodes has a mailbox end what it has to do with nodes that were dropped.
type forgetNodes struct{ dropped []mailbox.DroppedPeer }

func (m forgetNodes) handle(b *mailboxActor) (forgotten, error) { return b.forget(m.dropped) }

// forget ends what the mailbox has to do with nodes that were dropped.
func (b *mailboxActor) forget(dropped []mailbox.DroppedPeer) (f forgotten, err error) {
	for _, d := range dropped {
		if !b.state.InvolvesDropped(d) {
			continue
		}
		b.recordAcks()
		owed := b.countOwed(d.Node) // what is said of the grants below is not counted
		n, err := b.repeat(mailbox.RevokePeerGrants{DroppedPeer: d})
		f.revoked += n
		if err != nil {
			return f, err
		}
		if !b.node.peers.isDropped(d.Node) {
			continue // it is back, and what is owed now is for it
		}
		if err := b.releaseParcels(d.Node); err != nil {
			return f, err
		}
		f.given += owed
		b.node.peers.of(d.Node).setOwed(b.reg.id, b.countOwed(d.Node))
	}
	return f, nil
}

// releaseParcels gives up the parcels for a node. Acks for some of them may come meanwhile.
func (b *mailboxActor) releaseParcels(node capabilities.NodeID) error {
	b.releasing = true
	defer func() { b.releasing = false }()
	_, err := b.repeat(mailbox.DropDeliveries{Node: node})
	return err
}

// repeat has the state decide on a command until there is nothing left to do, and counts the events.
func (b *mailboxActor) repeat(c mailbox.Command) (total int, err error) {
	for {
		evs, err := b.decide(c)
		if total += len(evs); err != nil || len(evs) == 0 {
			return total, err
		}
	}
}

// forgetDropped forgets the nodes that were dropped while the mailbox was at rest.
func (b *mailboxActor) forgetDropped() {
	if _, err := b.forget(b.node.peers.everDropped()); err != nil {
		b.node.log.Warn("a node that was dropped is not forgotten", "mailbox", b.reg.id.String(), "error", err)
	}
}
