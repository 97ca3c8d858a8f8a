package sim

import (
	"fmt"

	"parley"
	"parley/actors/outbox"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// line carries items to another mailbox of the node, in order.
type line struct {
	*outbox.Line
	to *mailboxActor
}

func (b *mailboxActor) lineTo(to capabilities.ID) *line {
	l := b.lines[to]
	if l == nil {
		if b.lines == nil {
			b.lines = map[capabilities.ID]*line{}
		}
		l = &line{Line: outbox.NewLine(b.failures), to: b.node.world.mailbox(to)}
		b.lines[to] = l
	}
	return l
}

// hand sends an item along a line.
func (b *mailboxActor) hand(p mailbox.OutboxItem, l *line) {
	if l.IsBroken() {
		return
	}
	c, err := recalled(b, b.state, func() (mailbox.Command, error) { return b.state.CommandFor(p) })
	if err != nil {
		b.node.world.failf("%s: item %+v cannot be sent: %v", b.name, p, err)
	}
	from := b
	l.to.tell(b.last, fmt.Sprintf("item %d of %s: %T", p.Seq, b.name, c), func(b *mailboxActor) {
		if !l.Takes(b.failures) {
			return
		}
		_, isCopy := c.(mailbox.AcceptDelivery)
		err := b.admit(l.HasRefused(), isCopy, b.node.world.quotaed(from, b, c))
		b.node.world.noteSettlement(b, c, err)
		switch {
		case err == errFollows:
			l.Break()
			from.retryLine(l)
			return
		case isTransient(err):
			from.breakLine(l)
			return
		}
		if isCopy && err != nil {
			l.Refuse()
		}
		from.leaveAck(ack{Item: p, Refused: refusal(err), After: b.last})
	}, func(error) { from.breakLine(l) })
}

// errFollows is the error of an item that would be accepted and follows a refused copy.
var errFollows error = parley.Refuse(parley.Internal, "it follows a refused copy")

// admit decides on an item of another mailbox. One that follows a refused copy is not accepted before the refusal is in its
// sender's log.
func (b *mailboxActor) admit(follows, isCopy bool, c mailbox.Command) error {
	switch outbox.TurnOf(follows, isCopy) {
	case outbox.Decide:
		_, err := b.decide(c)
		return err
	case outbox.Delay:
		return errFollows
	}
	evs, err := recalled(b, b.state, func() ([]events.Event, error) {
		return b.state.DecideWithin(b.limits(), c, b.node.now(), b.node.newID)
	})
	if len(evs) > 0 {
		b.node.world.sometimes(followsRefusal)
		err = errFollows
	}
	return err
}

// commitAcks writes the mailbox's acks.
func (b *mailboxActor) commitAcks() {
	if b.acks.Len() > 0 && b.node.journal.failure == nil {
		_ = b.commit(b.node.now(), nil)
	}
}

// breakLine ends a line. A later one carries all items for its mailbox.
func (b *mailboxActor) breakLine(l *line) {
	if !l.Break() || !l.Retries(b.node.journal.times) {
		return
	}
	b.node.world.sometimes(lineBroken)
	b.node.later("retry line", func() { b.retryLine(l) })
}

func (b *mailboxActor) retryLine(l *line) {
	b.tell(0, "retry line", func(b *mailboxActor) {
		if b.redeliver || b.lines[l.to.id] != l {
			return
		}
		if b.acks.HasRefusedCopy() {
			b.commitAcks()
		}
		if b.acks.HasRefusedCopy() {
			b.node.later("retry line", func() { b.retryLine(l) })
			return
		}
		delete(b.lines, l.to.id)
		for _, p := range b.state.Outbox.Items() {
			if p.To == l.to.id {
				b.hand(p, b.lineTo(p.To))
			}
		}
	}, func(error) {})
}

// redeliverLocal delivers all items for mailboxes of the node again, after a failure of the journal or a load.
func (b *mailboxActor) redeliverLocal() {
	if !b.redeliver || b.node.journal.failure != nil {
		return
	}
	if b.acks.HasRefusedCopy() {
		b.commitAcks()
	}
	if b.acks.HasRefusedCopy() {
		return
	}
	b.redeliver, b.lines = false, nil
	for _, p := range b.state.Outbox.Items() {
		if b.node.world.nodeOf(p.To) == b.node {
			b.hand(p, b.lineTo(p.To))
		}
	}
}
