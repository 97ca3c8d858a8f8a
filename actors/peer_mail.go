package actors

import (
	"context"
	"errors"

	"parley"
	"parley/actors/peers"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Accept implements peers.Node.
func (n peerNode) Accept(ctx context.Context, d *peers.Delivery) {
	var err error
	if _, there := n.journal.Mailbox(d.To); !there {
		err = parley.Refuse(parley.AgentNotFound, "there is no such agent")
	}
	if err == nil {
		d.Command, err = n.confirmed(ctx, d)
	}
	if err != nil {
		d.Done(err)
		return
	}
	n.registry.tell(d.To, 0, acceptDelivery{d})
}

// acceptDelivery has a mailbox decide on an item of another node.
type acceptDelivery struct{ *peers.Delivery }

// handle puts the item off while the state may lack a commit in doubt: what is refused now is final, and could be wrong.
func (m acceptDelivery) handle(b *mailboxActor) {
	if b.doubtful || !m.Admitted(b.failures) {
		m.Done(peers.ErrDelayed)
		return
	}
	err := peers.ErrDelayed
	if _, isCopy := m.Command.(mailbox.RemoteDelivery); isCopy || !m.FollowsRefusal() {
		err = acceptWithin(b, m.Delivery)
	}
	m.Decided(err)
	b.release(func(lost error) {
		if lost != nil {
			err = lost
		}
		m.Done(err)
	})
}

func (m acceptDelivery) fail(err error) { m.Done(err) }

// confirmed returns a delivery without what it says of agents of this node that their logs do not confirm. What an agent
// did is in its log before another node can know of it.
func (n peerNode) confirmed(ctx context.Context, d *peers.Delivery) (mailbox.Command, error) {
	var standing []events.VoteCast
	if votes, ok := d.Command.(mailbox.RemoteVotes); ok {
		var err error
		if standing, err = call(ctx, &Agent{node: n.Node, id: d.To}, queryVotes{votes.Form}); err != nil {
			return nil, peers.ErrDelayed // nothing is known: the item comes again
		}
	}
	return mailbox.Confirmed(d.Command, d.To, standing, func(r mailbox.Report) (bool, error) {
		confirmed := false
		if _, there := n.journal.Mailbox(r.Agent); there {
			var err error
			if confirmed, err = call(ctx, &Agent{node: n.Node, id: r.Agent}, confirmReport{r}); err != nil {
				return false, peers.ErrDelayed
			}
		}
		if !confirmed {
			n.warnUnconfirmed(d, r)
		}
		return confirmed, nil
	})
}

// warnUnconfirmed logs what another node says of an agent of this one, and the agent's log does not have.
func (n *Node) warnUnconfirmed(d *peers.Delivery, r mailbox.Report) {
	n.log.Warn("a node says what an agent's log does not have", "node", d.From.String(), "agent", r.Agent.String(), "event", events.Name(r.Event), "to", d.To.String())
}

// confirmReport reports whether the agent's log has what is reported of the agent.
type confirmReport struct{ mailbox.Report }

func (m confirmReport) handle(b *mailboxActor) (bool, error) { return b.state.Confirms(m.Report) }

// queryVotes returns the votes that stand on the agent's copy of a form; none if it has no copy.
type queryVotes struct{ form capabilities.ID }

func (m queryVotes) handle(b *mailboxActor) ([]events.VoteCast, error) {
	f, err := b.state.Mail.FindFormID(m.form)
	switch parley.CodeOf(err) {
	case "":
		return f.Form.Votes().Standing, nil // nothing changes it
	case parley.NoSuchMessage, parley.NotAForm:
		return nil, nil
	}
	return nil, err
}

// acceptWithin has the mailbox decide on a command of another node, within the node's quotas and share of the
// processor. An effort that is too much for now is put off. So is a copy that follows a refused one and would be accepted.
func acceptWithin(b *mailboxActor, d *peers.Delivery) (err error) {
	from := d.From
	c := b.node.accounts.quotaed(ofNode(from), d.Command)
	if r, ok := c.(mailbox.RemoteDelivery); ok && r.Form != nil {
		known, err := recalled(b.old, func() (bool, error) { return b.state.Mail.Index.Has(r.Form.ID) })
		if err != nil {
			return err
		}
		if !known {
			if r.Schema, err = compileFields(b.node, ofNode(from), r.Form.Fields); err != nil {
				return later(err)
			}
			c = r
		}
	}
	if r, ok := c.(mailbox.RemoteAmendment); ok {
		news, err := recalled(b.old, func() (bool, error) { return r.IsNews(b.state) })
		if err != nil {
			return err
		}
		if news {
			if r.Schema, err = compileFields(b.node, ofNode(from), r.Amendment.Fields); err != nil {
				return later(err)
			}
			c = r
		}
	}
	settle, isAnswer := c.(mailbox.RemoteAnswer)
	switch {
	case isAnswer:
		err = acceptAnswer(b, settle)
	case d.FollowsRefusal():
		err = b.refuse(c)
	default:
		err = decideReported(b, d, c)
	}
	if err == nil {
		holdFor(b, from)
	}
	return err
}

// decideReported has the mailbox decide on a command of another node. What that says of the mailbox's own agent, and its
// log does not have, is logged.
func decideReported(b *mailboxActor, d *peers.Delivery, c mailbox.Command) error {
	evs, err := b.decide(c)
	if o, ok := c.(mailbox.RemoteOutcome); ok && len(evs) > 0 {
		said := events.Event(o.Answered)
		if o.Answered == nil {
			said = o.Cancelled
		}
		if e, ended := evs[0].(*events.FormCancelled); ended && e.By == o.Home && (o.Answered != nil || o.Cancelled.By != e.By) {
			b.node.warnUnconfirmed(d, mailbox.Report{Agent: b.reg.id, Event: said})
		}
	}
	return err
}

// refuse returns the error with which the mailbox refuses a command, or ErrDelayed if it would accept it.
func (b *mailboxActor) refuse(c mailbox.Command) error {
	evs, err := b.propose(c, b.node.now())
	if len(evs) > 0 {
		err = peers.ErrDelayed
	}
	return err
}

// acceptAnswer has the home of a form decide on an answer of another node.
func acceptAnswer(b *mailboxActor, settle mailbox.RemoteAnswer) error {
	if err := b.seal(&settle.SettleForm); err != nil {
		return err
	}
	if m, found := b.state.Mail.FindFormID(settle.Form); found == nil && m.Form.IsOpen() {
		var err error
		if settle.Schema, err = b.schema(settle.By, m.Form, settle.Values, nil); err != nil {
			return later(err)
		}
	}
	_, err := b.decide(settle)
	return err
}

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
	taken := b.reg.acks.items(b.node.journal.Lost)
	if len(taken) >= ackBatch || b.reg.acks.refused() {
		b.recordAcks()
		taken = b.reg.acks.items(b.node.journal.Lost)
	}
	if b.reg.acks.refused() { // a crash would have the refused item sent again, after those that follow it
		return nil, false, peers.ErrDelayed
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
			b.node.registry.leaveAck(b.reg.id, ack{Item: item, Refused: refusedWith(err)})
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
	taken, n := b.reg.acks.items(b.node.journal.Lost), 0
	for _, item := range b.state.Outbox.Items() {
		if item.To.Node == node && !taken[item.Seq] {
			n++
		}
	}
	return n
}

// writeItem returns an item as it is sent.
func writeItem(b *mailboxActor, item mailbox.OutboxItem) (peers.Outgoing, error) {
	c, err := recalled(b.old, func() (mailbox.Command, error) { return b.state.CommandFor(item) })
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
	n.registry.leaveAck(mailbox, ack{Item: item, Refused: refused})
}
