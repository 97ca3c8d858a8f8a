package actors

import (
	"sync/atomic"

	"parley"
	"parley/capabilities"
	"parley/mailbox"
)

// line is the way from one mailbox to another of the same node. Parcels go along it in the order of the outbox.
// Once the receiver could not take one in, it takes in none after it: the sender begins another line, with all
// that is in its outbox for that mailbox. So what was sent first arrives first, whatever fails.
//
// A failure of the journal ends every line, because what the receivers took in last may be lost.
type line struct {
	to       capabilities.ID
	failures uint64 // of the journal, when the line began
	tries    int    // how many lines before it broke, one after another
	broken   atomic.Bool
}

// lineTo returns the line to a mailbox, and begins one where there is none.
func (b *mailboxActor) lineTo(to capabilities.ID) *line {
	l := b.lines[to]
	if l == nil {
		l = b.beginLine(to, 0)
	}
	return l
}

func (b *mailboxActor) beginLine(to capabilities.ID, tries int) *line {
	if b.lines == nil {
		b.lines = map[capabilities.ID]*line{}
	}
	l := &line{to: to, failures: b.failures, tries: tries}
	b.lines[to] = l
	return l
}

// hand sends a parcel along a line. What cannot go now stays in the outbox, and goes with those before it.
func (b *mailboxActor) hand(p mailbox.OutboxItem, l *line) {
	if l.broken.Load() {
		return
	}
	c, err := b.state.CommandFor(p)
	if err != nil {
		b.node.log.Error("parcel", "mailbox", b.reg.id.String(), "error", err)
		return
	}
	node, from := b.node, b.reg.id
	node.registry.tell(p.To, visit{
		after: b.last,
		run: func(to *mailboxActor) {
			if l.broken.Load() || l.failures != to.failures {
				return
			}
			_, err := to.decide(node.accounts.quotaed(from, c))
			if parley.CodeOf(err) == parley.QuotaExceeded {
				node.accounts.fill(from, p.To)
			}
			if err = to.acknowledge(from, p, err); err != nil {
				node.breaks(l, from, err)
			}
		},
		lost: func(err error) {
			if isTransient(err) {
				node.breaks(l, from, err)
				return
			}
			node.registry.leaveAck(from, ack{parcel: p, refused: refusedWith(err)}) // there is no such mailbox
		},
	})
}

// breaks lets nothing more along a line, and has the sender begin another after a pause. A mailbox that was put aside
// is not tried again before the node starts anew; nor is any while the journal is failed, which resume makes up for.
func (n *Node) breaks(l *line, sender capabilities.ID, why error) {
	if l.broken.Swap(true) || l.failures != n.journal.Failures() {
		return
	}
	n.log.Warn("mail not delivered", "to", l.to.String(), "error", why)
	if parley.CodeOf(why) == parley.CorruptLog {
		return
	}
	n.later(min(retryFirst<<min(l.tries, 10), retryMost), func() {
		n.registry.tell(sender, visit{run: func(b *mailboxActor) { b.mend(l) }, lost: func(error) {}})
	})
}

// mend delivers anew what is owed along a line that broke, unless that was done meanwhile.
func (b *mailboxActor) mend(l *line) {
	if b.redeliver || b.lines[l.to] != l {
		return
	}
	next := b.beginLine(l.to, l.tries+1)
	for _, p := range b.state.Outbox() {
		if p.To == l.to {
			b.hand(p, next)
		}
	}
}

// redeliverLocal delivers all that is owed to mailboxes of this node: when the state was made from the log, and when the
// journal has failed since. While it is failed nobody could take it in; resume calls again when it is back.
func (b *mailboxActor) redeliverLocal() {
	if !b.redeliver || b.node.journal.Err() != nil {
		return
	}
	b.redeliver, b.lines = false, nil
	for _, p := range b.state.Outbox() {
		if p.To.Node == b.node.id {
			b.hand(p, b.lineTo(p.To))
		}
	}
}
