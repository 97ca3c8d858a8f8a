package actors

import (
	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// propose has the state decide on a command within the agent's quotas.
func (b *mailboxActor) propose(c mailbox.Command, now capabilities.Time) ([]events.Event, error) {
	if !mailbox.Spends(c) {
		return b.state.Decide(c, now, b.node.newID)
	}
	evs, err := b.state.DecideWithin(b.node.accounts.limits(b.reg.id, now), c, now, b.node.newID)
	if err != nil {
		return nil, err
	}
	for _, e := range evs {
		if to, sends := recipientOf(e); sends {
			if err := b.checkRecipient(to); err != nil {
				return nil, err
			}
		}
	}
	return evs, nil
}

// recipientOf returns to whom an event sends mail.
func recipientOf(e events.Event) (to capabilities.ID, sends bool) {
	switch e := e.(type) {
	case *events.FormRequested:
		return e.To, true
	case *events.MessagePosted:
		return e.To, true
	}
	return to, false
}

// checkRecipient refuses mail that is known not to be taken.
func (b *mailboxActor) checkRecipient(to capabilities.ID) error {
	if to.Node == b.node.id {
		if b.node.accounts.isFull(b.reg.id, to) {
			return fullSender()
		}
		return nil
	}
	if b.node.peers.isDropped(to.Node) {
		return parley.Refuse(parley.NodeUnknown, "node %s was dropped", to.Node).WithHint("parley accept takes up an invitation of it")
	}
	return nil
}

// openAccount notes what a mailbox that was just read uses. The other mailboxes of its account are read too.
func (b *mailboxActor) openAccount() {
	b.holding, b.use = nil, b.state.Usage()
	for by, amounts := range b.state.UseBy(b.node.now()) {
		if by.ULID == (capabilities.ID{}).ULID {
			b.holding = append(b.holding, by.Node)
			b.node.accounts.hold(b.reg.id, by.Node, amounts)
		}
	}
	for _, id := range b.node.accounts.put(b.state) {
		b.node.registry.tell(id, 0, activate{})
	}
}

// account notes what the agent, and other nodes, use after some events.
func (b *mailboxActor) account(evs []events.Event) {
	if use := b.state.Usage(); use != b.use {
		b.use = use
		b.node.accounts.put(b.state)
	}
	var now capabilities.Time
	if len(b.holding) > 0 {
		now = b.node.now()
	}
	for _, node := range b.holding {
		b.node.accounts.hold(b.reg.id, node, b.state.UsedBy(ofNode(node), now))
	}
	for _, e := range evs {
		if _, ended := endOf(e); ended {
			b.node.accounts.empty(b.reg.id)
		}
		if _, dismissed := e.(*events.MessageDismissed); dismissed {
			b.node.accounts.empty(b.reg.id)
		}
	}
}

// quotaed adds the quotas of a sender to what brings its mail.
func (a *accounts) quotaed(from capabilities.ID, c mailbox.Command) mailbox.Command {
	switch c := c.(type) {
	case mailbox.AcceptDelivery:
		c.Quotas = a.ofSender(from)
		return c
	case mailbox.RemoteDelivery:
		c.Quotas = a.ofSender(from)
		return c
	case mailbox.MintCapability:
		c.Quotas = a.ofSender(from)
		return c
	}
	return c
}

// takeInWithin is takeIn within the quotas of the node that it comes from. Its effort for patterns is bounded too: what
// is too much for now is taken in later.
func (b *mailboxActor) takeInWithin(from capabilities.NodeID, c mailbox.Command, evs []events.Event) (capabilities.Time, error) {
	c = b.node.accounts.quotaed(ofNode(from), c)
	if r, ok := c.(mailbox.RemoteDelivery); ok && r.Form != nil && !b.state.Has(r.Form.ID) {
		contract, err := b.node.compile(ofNode(from), r.Form.Fields)
		if err != nil {
			return 0, later(err)
		}
		r.Schema, c = contract, r
	}
	at, err := b.takeIn(c, evs)
	if err == nil {
		b.holds(from)
	}
	return at, err
}

// holds notes what the mailbox holds for another node.
func (b *mailboxActor) holds(node capabilities.NodeID) {
	for _, n := range b.holding {
		if n == node {
			return // account sees to it
		}
	}
	if used := b.state.UsedBy(ofNode(node), b.node.now()); used != (mailbox.Amounts{}) {
		b.holding = append(b.holding, node)
		b.node.accounts.hold(b.reg.id, node, used)
	}
}

// later turns a refusal for now into one that the other node takes as that: it sends the mail again.
func later(err error) error {
	if parley.CodeOf(err) != parley.QuotaExceeded {
		return err
	}
	return parley.Refuse(parley.RateLimited, "%s", parley.AsError(err).Message)
}
