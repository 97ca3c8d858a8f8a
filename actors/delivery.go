package actors

import (
	"sync/atomic"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// deliver takes parcels to the mailboxes that they are owed to, which confirm them. Between mailboxes of a
// node this does not wait for the disk: the receiver's events come later in the one order than what they
// follow from. After a crash the parcels that are still in the outbox are delivered again, and the receiver
// knows what it has.
//
// What is owed to other nodes is for their peers to come for.
func (b *mailboxActor) deliver(parcels []mailbox.OutboxItem) {
	abroad, here := map[capabilities.NodeID]int{}, false
	for _, p := range parcels {
		switch {
		case p.To.Node != b.node.id:
			abroad[p.To.Node]++
		case b.redeliver:
			here = true
		default:
			b.hand(p, b.lineTo(p.To))
		}
	}
	for node, n := range abroad {
		b.node.peers.of(node).addOwed(b.reg.id, n)
	}
	if here { // the journal came back with this message: the next delivers these, after what came before them
		b.node.registry.tell(b.reg.id, 0, activate{})
	}
}

// announceOutbox tells the peers what the mailbox owes to their nodes, when it was made from the log.
func (b *mailboxActor) announceOutbox() {
	owed := map[capabilities.NodeID]int{}
	for _, p := range b.state.Outbox() {
		if p.To.Node != b.node.id {
			owed[p.To.Node]++
		}
	}
	for node, n := range owed {
		p := b.node.peers.of(node)
		p.setOwed(b.reg.id, n)
		p.ask(b.reg.id)
	}
}

// recount says anew what is owed to the homes, on other nodes, of forms that have ended: what was on its way there
// about them no longer is.
func (b *mailboxActor) recount(evs []events.Event) {
	for _, e := range evs {
		form, ended := endOf(e)
		if ended && form.Node != b.node.id { // a form's ID is of its home
			b.node.peers.of(form.Node).setOwed(b.reg.id, b.countOwed(form.Node))
		}
	}
}

// resumeAfterMint has the peers ask again for parcels that waited until a grant was known.
func (b *mailboxActor) resumeAfterMint(rs []ack) {
	minted := false
	for _, r := range rs {
		minted = minted || r.parcel.Kind == events.OutboxMint
	}
	if !minted {
		return
	}
	asked := map[capabilities.NodeID]bool{b.node.id: true}
	for _, p := range b.state.Outbox() {
		if !asked[p.To.Node] {
			asked[p.To.Node] = true
			b.node.peers.of(p.To.Node).ask(b.reg.id)
		}
	}
}

// refusedWith returns an error in the words of an ack.
func refusedWith(err error) string {
	code, text := refusal(err)
	return code + ": " + text
}

// acknowledge leaves an ack for a parcel's sender. It returns err if the parcel could not be stored now: then there is no
// ack, and the parcel stays in the outbox.
func (b *mailboxActor) acknowledge(sender capabilities.ID, p mailbox.OutboxItem, err error) error {
	refused := ""
	switch {
	case isTransient(err):
		return err
	case err != nil:
		refused = refusedWith(err)
	}
	b.node.registry.leaveAck(sender, ack{parcel: p, refused: refused, after: b.last})
	return nil
}

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
