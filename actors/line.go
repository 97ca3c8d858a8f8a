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
	b.node.registry.tell(p.To, b.last, &acceptParcel{node: b.node, from: b.reg.id, parcel: p, command: c, line: l})
}

// acceptParcel delivers a parcel of a mailbox of the same node.
type acceptParcel struct {
	node    *Node
	from    capabilities.ID
	parcel  mailbox.OutboxItem
	command mailbox.Command // of the parcel
	line    *line
}

func (m *acceptParcel) handle(b *mailboxActor) {
	if m.line.broken.Load() || m.line.failures != b.failures {
		return
	}
	_, err := b.decide(m.node.accounts.quotaed(m.from, m.command))
	if parley.CodeOf(err) == parley.QuotaExceeded {
		m.node.accounts.fill(m.from, m.parcel.To)
	}
	if err = b.acknowledge(m.from, m.parcel, err); err != nil {
		m.node.breaks(m.line, m.from, err)
	}
}

func (m *acceptParcel) fail(err error) {
	if isTransient(err) {
		m.node.breaks(m.line, m.from, err)
		return
	}
	m.node.registry.leaveAck(m.from, ack{parcel: m.parcel, refused: refusedWith(err)}) // there is no such mailbox
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
		n.registry.tell(sender, 0, retryLine{l})
	})
}

// retryLine delivers the parcels for a line that broke along another, unless that was done meanwhile.
type retryLine struct{ line *line }

func (m retryLine) handle(b *mailboxActor) {
	l := m.line
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

func (retryLine) fail(error) {}

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
