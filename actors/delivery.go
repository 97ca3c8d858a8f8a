package actors

import (
	"strings"
	"sync"
	"time"

	"parley"
	"parley/actors/outbox"
	"parley/actors/peers"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// deliver sends items to the mailboxes that they are for. Between mailboxes of the node that does not wait for the
// disk: the receiver's events come later in the log than the sender's. After a crash the items that are still in the
// outbox are delivered again, and the receiver recognizes them.
//
// Peers collect the items for other nodes.
func (b *mailboxActor) deliver(items []mailbox.OutboxItem) {
	remote, here := map[capabilities.NodeID]int{}, false
	for _, p := range items {
		switch {
		case p.To.Node != b.node.id:
			remote[p.To.Node]++
		case b.redeliver:
			here = true
		default:
			b.hand(p, b.lineTo(p.To))
		}
	}
	for node, n := range remote {
		b.node.peers.Peer(node).Add(b.reg.id, n)
	}
	if here { // the journal has just recovered: redeliverLocal delivers these after the earlier items
		b.node.registry.tell(b.reg.id, 0, activate{})
	}
}

// announceOutbox tells the peers how many items the mailbox has for their nodes. It is called after the state was made
// from the log.
func announceOutbox(b *mailboxActor) {
	waiting := map[capabilities.NodeID]int{}
	for _, p := range b.state.Outbox.Items() {
		if p.To.Node != b.node.id {
			waiting[p.To.Node]++
		}
	}
	for node, n := range waiting {
		p := b.node.peers.Peer(node)
		p.Set(b.reg.id, n)
		p.Ask(b.reg.id)
	}
}

// recountItems updates the number of items for the homes, on other nodes, of forms that have ended. Items about those
// forms have left the outbox.
func recountItems(b *mailboxActor, evs []events.Event) {
	for _, e := range evs {
		form, ended := endOf(e)
		if ended && form.Node != b.node.id { // a form's ID is of its home
			b.node.peers.Peer(form.Node).Set(b.reg.id, countItems(b, form.Node))
		}
	}
}

// resumeAfterMint has the peers ask again for items that waited for the ack of a grant.
func resumeAfterMint(b *mailboxActor, rs []ack) {
	minted := false
	for _, r := range rs {
		minted = minted || r.Item.Kind == events.OutboxMint
	}
	if !minted {
		return
	}
	asked := map[capabilities.NodeID]bool{b.node.id: true}
	for _, p := range b.state.Outbox.Items() {
		if !asked[p.To.Node] {
			asked[p.To.Node] = true
			b.node.peers.Peer(p.To.Node).Ask(b.reg.id)
		}
	}
}

// refusedWith returns an error as the reason in an ack.
func refusedWith(err error) string {
	code, text := peers.Refusal(err)
	return code + ": " + text
}

// acknowledge leaves an ack for an item's sender. It returns err if the item could not be stored now: then there is no
// ack, and the item stays in the outbox.
func acknowledge(b *mailboxActor, sender capabilities.ID, p mailbox.OutboxItem, err error) error {
	refused := ""
	switch {
	case peers.IsTransient(err):
		return err
	case err != nil:
		refused = refusedWith(err)
	}
	b.node.registry.leaveAck(sender, ack{Item: p, Refused: refused, After: b.last})
	return nil
}

// line is a line to a mailbox of the same node.
type line struct {
	*outbox.Line
	to    capabilities.ID
	tries int // how many lines before it broke, one after another
}

// lineTo returns the line to a mailbox, and begins one if there is none.
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
	l := &line{Line: outbox.NewLine(b.failures), to: to, tries: tries}
	b.lines[to] = l
	return l
}

// hand sends an item along a line. An item that cannot be sent stays in the outbox, for the next line.
func (b *mailboxActor) hand(p mailbox.OutboxItem, l *line) {
	if l.IsBroken() {
		return
	}
	c, err := recalled(b.old, func() (mailbox.Command, error) { return b.state.CommandFor(p) })
	if err != nil {
		b.node.log.Error("an outbox item cannot be sent", "mailbox", b.reg.id.String(), "error", err)
		return
	}
	b.node.registry.tell(p.To, b.last, &acceptItem{node: b.node, from: b.reg.id, item: p, command: c, line: l})
}

// acceptItem delivers an item of a mailbox of the same node.
type acceptItem struct {
	node    *Node
	from    capabilities.ID
	item    mailbox.OutboxItem
	command mailbox.Command // of the item
	line    *line
}

func (m *acceptItem) handle(b *mailboxActor) {
	if !m.line.Takes(b.failures) {
		return
	}
	c := m.node.accounts.quotaed(m.from, m.command)
	_, isCopy := c.(mailbox.AcceptDelivery)
	var err error
	switch outbox.TurnOf(m.line.HasRefused(), isCopy) {
	case outbox.Decide:
		_, err = b.decide(c)
	case outbox.Refuse:
		err = b.refuse(c)
	default:
		err = peers.ErrDelayed
	}
	if err == peers.ErrDelayed {
		m.waitForRefusal()
		return
	}
	if isCopy && err != nil && !peers.IsTransient(err) {
		m.line.Refuse()
	}
	if parley.CodeOf(err) == parley.QuotaExceeded {
		payer := m.from
		if d, ok := c.(mailbox.AcceptDelivery); ok {
			payer = d.Payer()
		}
		m.node.accounts.fill(payer, m.item.To)
	}
	if err = acknowledge(b, m.from, m.item, err); err != nil {
		breakLine(m.node, m.line, m.from, err)
	}
}

// waitForRefusal has the sender begin another line when the refusal is in its log. If a crash lost the refusal, the copy
// would be delivered again, and might be accepted after this item.
func (m *acceptItem) waitForRefusal() {
	if m.line.Break() {
		m.node.registry.tell(m.from, 0, retryLine{m.line})
	}
}

func (m *acceptItem) fail(err error) {
	if peers.IsTransient(err) {
		breakLine(m.node, m.line, m.from, err)
		return
	}
	m.node.registry.leaveAck(m.from, ack{Item: m.item, Refused: refusedWith(err)}) // the mailbox does not exist
}

// breakLine breaks a line, and has the sender begin another after a pause. It does not for a quarantined receiver. Nor
// does it while the journal has failed: resume delivers the items then.
func breakLine(n *Node, l *line, sender capabilities.ID, why error) {
	if !l.Break() || !l.Retries(n.journal.Failures()) {
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

// retryLine delivers the items for a line that broke along another, unless that was done meanwhile.
type retryLine struct{ line *line }

func (m retryLine) handle(b *mailboxActor) {
	l := m.line
	if b.redeliver || b.lines[l.to] != l {
		return
	}
	tries := l.tries + 1
	if l.HasRefused() {
		tries = l.tries
		if b.recordAcks(); b.reg.acks.refused() {
			b.node.later(retryFirst, func() { b.node.registry.tell(b.reg.id, 0, m) })
			return
		}
	}
	next := b.beginLine(l.to, tries)
	for _, p := range b.state.Outbox.Items() {
		if p.To == l.to {
			b.hand(p, next)
		}
	}
}

func (retryLine) fail(error) {}

// redeliverLocal delivers all items for mailboxes of this node. It is called after the state was made from the log, and
// after the journal has failed. While the journal is failed it does nothing, since no mailbox could accept items:
// resume calls it again.
func (b *mailboxActor) redeliverLocal() {
	if !b.redeliver || b.node.journal.Err() != nil {
		return
	}
	if b.reg.acks.refused() { // a refused copy might be accepted now
		if b.recordAcks(); b.reg.acks.refused() {
			return
		}
	}
	b.redeliver, b.lines = false, nil
	for _, p := range b.state.Outbox.Items() {
		if p.To.Node == b.node.id {
			b.hand(p, b.lineTo(p.To))
		}
	}
}

// ack acknowledges an item of a mailbox.
type ack = outbox.Ack[persistence.Position]

// acks holds the acks of a mailbox's items that its log does not have yet. Adding one starts no actor: the mailbox
// writes them with its next events. It does so once there are ackBatch of them, or when the scheduler asks for it. It
// is safe for concurrent use.
type acks struct {
	mu      sync.Mutex
	pending outbox.Acks[persistence.Position]
}

// ackBatch is the number of acks that are worth an event. It also bounds the deliveries that a crash repeats.
const ackBatch = 32

func (r *acks) add(rs ...ack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending.Add(rs...)
}

// take moves the acks to the end of rs if there are as many as at least.
func (r *acks) take(rs []ack, atLeast int) []ack {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending.Take(rs, atLeast)
}

// items returns the sequence numbers of the acknowledged items.
func (r *acks) items(lost func(persistence.Position) bool) map[uint64]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending.Seqs(lost)
}

// refused reports whether a copy was refused.
func (r *acks) refused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending.HasRefusedCopy()
}

func (r *acks) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending.Len() > 0
}

// leaveAck adds an ack to a mailbox. It starts the actor only if the mailbox is passive or the ack is urgent.
func (r *registry) leaveAck(to capabilities.ID, rc ack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, awake := r.registrations[to]
	if !awake {
		s = r.registration(to)
	}
	r.addAcks(s, rc)
	if !awake || rc.IsUrgent() {
		r.send(s, delivery{message: recordAcks{}})
	}
}

// addAcks adds acks to a registration, and notes that it has some. The caller has the lock.
func (r *registry) addAcks(s *registration, rs ...ack) {
	s.acks.add(rs...)
	if !s.acked {
		s.acked = true
		r.acked = append(r.acked, s)
	}
}

// returnAcks adds acks again that could not be written.
func (r *registry) returnAcks(s *registration, rs []ack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addAcks(s, rs...)
}

// putBackRefusals returns the acks that are no refusals, and puts the others back. Those are urgent, so a message of its
// own records them.
func (r *registry) putBackRefusals(s *registration, rs []ack) []ack {
	arrived, refused := outbox.Split(rs)
	if len(refused) > 0 {
		r.returnAcks(s, refused)
	}
	return arrived
}

// notifyRemoteWaiters sends the replies of other nodes to the callers that wait for them.
func notifyRemoteWaiters(b *mailboxActor, rs []ack) {
	for _, r := range rs {
		forward := r.Item.Kind == events.OutboxForward || r.Item.Kind == events.OutboxClaiming
		answer := r.Item.Kind == events.OutboxAnswer || r.Item.Kind == events.OutboxWithdrawal
		revoked := r.Item.Kind == events.OutboxRevocation && r.Item.To == b.state.Grants.Grant(r.Item.Subject).Target
		if !forward && !revoked && (!answer || r.Refused == "") {
			continue
		}
		for _, w := range b.node.remoteAcks.take(formKey{b.reg.id, r.Item.Subject}) {
			var err error
			if code, text, ok := strings.Cut(r.Refused, ": "); ok {
				err = peers.RemoteError(code, text)
			}
			b.release(func(lost error) {
				if lost != nil {
					err = lost
				}
				w.put(err)
			})
		}
	}
}

// recordAcks has a mailbox write its acks.
type recordAcks struct{}

func (recordAcks) handle(b *mailboxActor) { b.recordAcks() }
func (recordAcks) fail(error)             {} // the items are delivered again, which changes nothing

// recordAcks writes all pending acks to the log, so that readers see the deliveries.
func (b *mailboxActor) recordAcks() {
	if !b.reg.acks.any() || b.node.journal.Err() != nil {
		return
	}
	if err := b.commit(b.node.now(), nil); err != nil {
		b.node.log.Warn("deliveries not noted", "mailbox", b.reg.id.String(), "error", err)
	}
}

// slowDisk is the length of a flush from which on readers do not wait for it.
const slowDisk = 100 * time.Millisecond

// recordAcksToShow writes all pending acks for a reader, unless the reader would have to wait for a slow disk.
func (b *mailboxActor) recordAcksToShow() {
	if b.node.journal.Flushing() < slowDisk {
		b.recordAcks()
	}
}

// recordAllAcks has every mailbox with pending acks write them, and reports whether there were any. It does nothing
// while the journal has failed.
func (r *registry) recordAllAcks() bool {
	if r.node.journal.Err() != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.acked[:0]
	for _, s := range r.acked {
		if s.acked = s.acks.any(); s.acked {
			left = append(left, s)
			r.send(s, delivery{message: recordAcks{}})
		}
	}
	clear(r.acked[len(left):])
	r.acked = left
	return len(left) > 0
}

// ackEvents returns the events for some acks.
func ackEvents(b *mailboxActor, rs []ack, now capabilities.Time) (evs []events.Event) {
	for _, c := range outbox.Records(rs, b.node.journal.Lost) {
		e, err := b.state.Decide(c, now, b.node.newID)
		if err != nil {
			b.node.log.Warn("delivery not noted", "mailbox", b.reg.id.String(), "error", err)
			continue
		}
		evs = append(evs, e...)
	}
	return evs
}
