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
	if copied, ok := d.Command.(mailbox.RemoteDelivery); ok && err == nil && copied.Form != nil {
		err = n.checkForwarders(ctx, copied.Form, d.To)
	}
	if err != nil {
		d.Done(0, err)
		return
	}
	n.registry.tell(d.To, 0, acceptDelivery{d})
}

// acceptDelivery has a mailbox decide on an item of another node.
type acceptDelivery struct{ *peers.Delivery }

// handle puts the item off while the state may lack a commit in doubt: what is refused now is final, and could be wrong.
func (m acceptDelivery) handle(b *mailboxActor) {
	if b.doubtful || !m.Admitted(b.failures) {
		m.Done(0, peers.ErrDelayed)
		return
	}
	at, err := capabilities.Time(0), peers.ErrDelayed
	if _, isCopy := m.Command.(mailbox.RemoteDelivery); isCopy || !m.FollowsRefusal() {
		at, err = acceptWithin(b, m.Delivery)
	}
	m.Decided(err)
	b.release(func(lost error) {
		if lost != nil {
			err = lost
		}
		m.Done(at, err)
	})
}

func (m acceptDelivery) fail(err error) { m.Done(0, err) }

// checkForwarders refuses a form of another node that names a forwarder of this node, if that agent did
// not. A forward is in the forwarder's log before the form's home can know of it.
func (n peerNode) checkForwarders(ctx context.Context, form *events.FormRequested, to capabilities.ID) error {
	if len(form.Chain) > mailbox.MaxHolders {
		return nil // the mailbox refuses it
	}
	for i, by := range form.Chain {
		if by.Node != n.id {
			continue
		}
		next := to
		if i+1 < len(form.Chain) {
			next = form.Chain[i+1]
		}
		if _, there := n.journal.Mailbox(by); there {
			forwarded, err := call(ctx, &Agent{node: n.Node, id: by}, queryForwarded{form.ID, next})
			if err != nil {
				return peers.ErrDelayed // nothing is known: the item comes again
			}
			if forwarded {
				continue
			}
		}
		return parley.Refuse(parley.NotPermitted, "the form says that an agent of this node forwarded it, which it did not")
	}
	return nil
}

// queryForwarded reports whether the agent forwarded a form to another.
type queryForwarded struct{ form, to capabilities.ID }

func (m queryForwarded) handle(b *mailboxActor) (bool, error) {
	return b.state.HasForwarded(m.form, m.to)
}

// acceptWithin has the mailbox decide on a command of another node, within the node's quotas and share of the
// processor. An effort that is too much for now is put off. So is a copy that follows a refused one and would be
// accepted. It returns when a form was settled by the command.
func acceptWithin(b *mailboxActor, d *peers.Delivery) (at capabilities.Time, err error) {
	from := d.From
	c := b.node.accounts.quotaed(ofNode(from), d.Command)
	if r, ok := c.(mailbox.RemoteDelivery); ok && r.Form != nil {
		known, err := recalled(b.old, func() (bool, error) { return b.state.Mail.Index.Has(r.Form.ID) })
		if err != nil {
			return 0, err
		}
		if !known {
			if r.Schema, err = compileFields(b.node, ofNode(from), r.Form.Fields); err != nil {
				return 0, later(err)
			}
			c = r
		}
	}
	if r, ok := c.(mailbox.RemoteAmendment); ok {
		news, err := recalled(b.old, func() (bool, error) { return r.IsNews(b.state) })
		if err != nil {
			return 0, err
		}
		if news {
			if r.Schema, err = compileFields(b.node, ofNode(from), r.Amendment.Fields); err != nil {
				return 0, later(err)
			}
			c = r
		}
	}
	settle, isAnswer := c.(mailbox.RemoteAnswer)
	switch {
	case isAnswer:
		at, err = acceptAnswer(b, settle)
	case d.FollowsRefusal():
		err = b.refuse(c)
	default:
		_, err = b.decide(c)
	}
	if err == nil {
		holdFor(b, from)
	}
	return at, err
}

// refuse returns the error with which the mailbox refuses a command, or ErrDelayed if it would accept it.
func (b *mailboxActor) refuse(c mailbox.Command) error {
	evs, err := b.propose(c, b.node.now())
	if len(evs) > 0 {
		err = peers.ErrDelayed
	}
	return err
}

// acceptAnswer has the home of a form decide on an answer of another node. It returns when the form was settled.
func acceptAnswer(b *mailboxActor, settle mailbox.RemoteAnswer) (at capabilities.Time, err error) {
	if err := b.seal(&settle.SettleForm); err != nil {
		return 0, err
	}
	if m, found := b.state.Mail.FindFormID(settle.Form); found == nil && m.Form.IsOpen() {
		if settle.Schema, err = b.schema(settle.By, m.Form, settle.Values, nil); err != nil {
			return 0, later(err)
		}
	}
	_, err = b.decide(settle)
	m, found := b.formOf(settle.Form)
	if found != nil {
		return 0, err
	}
	if err != nil && settle.Answer.IsZero() && isRepeated(b, m.Form, settle.SettleForm) {
		err = nil
	}
	if a := m.Form.Answered; a != nil {
		at = a.Date
	} else if e := m.Form.Ended; e != nil {
		at = e.Date
	}
	return at, err
}

// isRepeated reports whether a form was settled by the same settlement before, of which the reply was lost. It is for
// settlements without IDs, which programs before this one send.
func isRepeated(b *mailboxActor, f *mailbox.Form, c mailbox.SettleForm) bool {
	if e := f.Ended; e != nil {
		return c.Reason == e.Reason && c.By == e.By && c.Note == e.Note
	}
	a := f.Answered
	if a == nil || c.Reason != "" || a.By != c.By || len(a.Grants) != len(c.Grants) {
		return false
	}
	was, err := b.node.secrets.Open(a.Values)
	if err != nil {
		return false
	}
	for i, g := range a.Grants {
		if g != c.Grants[i] {
			return false
		}
	}
	return was.Equal(capabilities.Record(c.Values))
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
