package mailbox

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/vote"
)

// OutboxItem is a delivery to another mailbox. It stays in the outbox until the other mailbox has accepted or refused
// it. Seq numbers all items that the mailbox ever enqueued, so a repeated acknowledgement is recognized.
type OutboxItem struct {
	Seq     uint64
	Kind    events.OutboxKind
	Subject capabilities.ID // a form, message or grant; of a queued forward, the grant made for it
	To      capabilities.ID
}

// Outbox holds the items that their mailboxes have not accepted or refused yet, oldest first.
type Outbox struct {
	self    capabilities.ID
	items   []OutboxItem
	lastSeq uint64 // of the newest item that was ever enqueued
	mints   int    // items that record a grant at its target

	bySubject map[capabilities.ID]int // items by their message or form
}

// Items returns the items, oldest first. The slice belongs to the state.
func (o *Outbox) Items() []OutboxItem { return o.items }

// LastSeq returns the number of the newest item that was ever enqueued.
func (o *Outbox) LastSeq() uint64 { return o.lastSeq }

// After returns the items after a number. The slice belongs to the state.
func (o *Outbox) After(seq uint64) []OutboxItem {
	first, _ := slices.BinarySearchFunc(o.items, seq+1, func(p OutboxItem, seq uint64) int { return cmp.Compare(p.Seq, seq) })
	return o.items[first:]
}

// enqueue adds an item. An agent has no items for itself.
func (o *Outbox) enqueue(kind events.OutboxKind, subject, to capabilities.ID) {
	if to == o.self {
		return
	}
	o.lastSeq++
	p := OutboxItem{Seq: o.lastSeq, Kind: kind, Subject: subject, To: to}
	o.items = append(o.items, p)
	o.count(p, 1)
}

// count counts an item that was added or removed.
func (o *Outbox) count(p OutboxItem, change int) {
	switch p.Kind {
	case events.OutboxMint:
		o.mints += change
	case events.OutboxCopy, events.OutboxAnswer, events.OutboxOutcome, events.OutboxForwarded, events.OutboxAmendment, events.OutboxReminder,
		events.OutboxVotes, events.OutboxWithdrawal, events.OutboxReceipt, events.OutboxUnreached, events.OutboxMembers, events.OutboxClaim, events.OutboxClaiming:
		if o.bySubject == nil {
			o.bySubject = map[capabilities.ID]int{}
		}
		if o.bySubject[p.Subject] += change; o.bySubject[p.Subject] == 0 {
			delete(o.bySubject, p.Subject)
		}
	}
}

// has reports whether an item is in the outbox.
func (o *Outbox) has(p OutboxItem) bool {
	i, found := slices.BinarySearchFunc(o.items, p.Seq, func(q OutboxItem, seq uint64) int { return cmp.Compare(q.Seq, seq) })
	return found && o.items[i] == p
}

// remove removes the items with the given numbers, which are in order, and calls fn for each. It fails with ErrNonsense
// for a number that is not in the outbox.
func (o *Outbox) remove(seqs []uint64, fn func(OutboxItem)) error {
	for len(seqs) > 0 && len(o.items) > 0 && o.items[0].Seq == seqs[0] { // nearly always all of them
		p := o.items[0]
		o.items, seqs = o.items[1:], seqs[1:]
		o.count(p, -1)
		fn(p)
	}
	if len(seqs) == 0 {
		return nil
	}
	var gone []OutboxItem
	left := o.items[:0]
	for _, p := range o.items {
		if len(seqs) > 0 && p.Seq == seqs[0] {
			gone, seqs = append(gone, p), seqs[1:]
			continue
		}
		left = append(left, p)
	}
	o.items = left
	if len(seqs) > 0 {
		return fmt.Errorf("%w: item %d is not in the outbox", ErrNonsense, seqs[0])
	}
	for _, p := range gone {
		o.count(p, -1)
		fn(p)
	}
	return nil
}

// isAnswer reports whether an item is the queued answer of a form, or the withdrawal of a vote.
func (p OutboxItem) isAnswer() bool {
	return p.Kind == events.OutboxAnswer || p.Kind == events.OutboxWithdrawal
}

// dropQueued removes the queued answer and forwards of a form.
func (o *Outbox) dropQueued(form capabilities.ID, queued *Queued) {
	o.items = slices.DeleteFunc(o.items, func(p OutboxItem) bool {
		drop := (p.isAnswer() || p.Kind == events.OutboxClaiming) && p.Subject == form || p.Kind == events.OutboxForward && queued.forward(p.Subject) >= 0
		if drop {
			o.count(p, -1)
		}
		return drop
	})
}

// dropCopy removes the copy of a form for an agent.
func (o *Outbox) dropCopy(form, to capabilities.ID) {
	o.items = slices.DeleteFunc(o.items, func(p OutboxItem) bool {
		drop := p.Kind == events.OutboxCopy && p.Subject == form && p.To == to
		if drop {
			o.count(p, -1)
		}
		return drop
	})
}

// dropAnswer removes the queued answer of a form.
func (o *Outbox) dropAnswer(f *Form) {
	o.items = slices.DeleteFunc(o.items, func(p OutboxItem) bool {
		drop := p.isAnswer() && p.Subject == f.ID
		if drop {
			o.count(p, -1)
		}
		return drop
	})
}

// involves reports whether an item goes to a node.
func (o *Outbox) involves(node capabilities.NodeID) bool {
	return slices.ContainsFunc(o.items, func(p OutboxItem) bool { return p.To.Node == node })
}

// unminted returns the messages and forwards that give a reference whose target does not know of the grant yet.
func (o *Outbox) unminted(grants *Grants) map[capabilities.ID]bool {
	if o.mints == 0 {
		return nil
	}
	unknown := map[capabilities.ID]bool{}
	for _, p := range o.items {
		if p.Kind != events.OutboxMint {
			continue
		}
		if g, ok := grants.given.Get(p.Subject); ok && g.Revoked == 0 { // a revoked grant holds up nothing
			unknown[g.Message], unknown[g.ID] = true, true
		}
	}
	return unknown
}

// CommandFor returns the command that an item brings to its mailbox.
func (s *State) CommandFor(p OutboxItem) (Command, error) {
	if p.Kind == events.OutboxRevocation {
		g, ok := s.Grants.given.Get(p.Subject)
		if !ok {
			return nil, parley.Refuse(parley.Internal, "outbox item of grant %s, which was not given", p.Subject)
		}
		return revocationOf(s, g), nil
	}
	if p.Kind == events.OutboxMint || p.Kind == events.OutboxForward {
		return p.ofGrant(s)
	}
	m, err := s.Mail.byOwnID(p.Subject)
	if parley.CodeOf(err) == parley.NoSuchMessage {
		return nil, parley.Refuse(parley.Internal, "outbox item of message %s, which is not here", p.Subject)
	} else if err != nil {
		return nil, err
	}
	switch p.Kind {
	case events.OutboxCopy:
		return copyFor(s, m, p.To), nil
	case events.OutboxReceipt:
		return m.report(s), nil
	case events.OutboxUnreached:
		return m.unreachedReport(s), nil
	case events.OutboxMembers:
		return m.membersReport(s), nil
	case events.OutboxAnswer, events.OutboxWithdrawal:
		return m.Form.queuedAnswer(s.ID)
	case events.OutboxAmendment:
		return RecordAmendment{Amendment: m.Form.Amended()}, nil
	case events.OutboxReminder:
		return RecordReminder{Reminder: m.Form.Reminded()}, nil
	case events.OutboxVotes:
		return m.Form.votesFor(p.To), nil
	case events.OutboxClaim:
		return m.Form.claimFor(), nil
	case events.OutboxClaiming:
		return m.Form.queuedClaim(s.ID)
	case events.OutboxForwarded:
		return RecordOutcome{Form: p.Subject, Forwarded: m.Form.forwardedBy(p.To)}, nil
	}
	return m.Form.outcomeFor(p.To), nil
}

// Outgoing yields the items for another node that can be sent now. They are in the order in which they have to arrive.
// An item that gives a reference waits until the reference's target knows of the grant. All later items for the same
// mailbox wait with it.
func (s *State) Outgoing(node capabilities.NodeID) iter.Seq[OutboxItem] {
	return func(yield func(OutboxItem) bool) {
		unknown := s.Outbox.unminted(&s.Grants)
		held := map[capabilities.ID]bool{}
		for _, p := range s.Outbox.items {
			if p.To.Node != node || held[p.To] {
				continue
			}
			if p.Kind != events.OutboxMint && unknown[p.Subject] {
				held[p.To] = true
				continue
			}
			if !yield(p) {
				return
			}
		}
	}
}

// HeldFor returns the nodes that have to know of a grant before mail for an agent can be sent.
func (s *State) HeldFor(to capabilities.ID) []capabilities.NodeID {
	unknown := s.Outbox.unminted(&s.Grants)
	if len(unknown) == 0 {
		return nil
	}
	waiting := map[capabilities.ID]bool{} // messages and forwards
	for _, p := range s.Outbox.items {
		if p.To == to && p.Kind != events.OutboxMint && unknown[p.Subject] {
			waiting[p.Subject] = true
		}
	}
	var nodes []capabilities.NodeID
	for _, p := range s.Outbox.items {
		if g, ok := s.Grants.given.Get(p.Subject); ok && p.Kind == events.OutboxMint && (waiting[g.Message] || waiting[g.ID]) {
			nodes = append(nodes, p.To.Node)
		}
	}
	return nodes
}

// ofGrant returns the command of an item about a grant that the agent made.
func (p OutboxItem) ofGrant(s *State) (Command, error) {
	g, ok := s.Grants.given.Get(p.Subject)
	if !ok {
		return nil, parley.Refuse(parley.Internal, "outbox item of grant %s, which was not given", p.Subject)
	}
	if p.Kind == events.OutboxForward {
		via := g.ID
		if !s.isRemote(g.To) && s.isRemote(g.Target) { // nothing holds the copy back until the target knows of the new grant
			via = s.Grants.presented(g.Parent, g.Target)
		}
		c := ForwardForm{Form: g.Message, By: s.ID, To: g.Target, Via: via}
		if m, err := s.Mail.form(g.Message); err == nil {
			queued := m.Form.Queued()
			if i := queued.forward(g.ID); i >= 0 {
				c.Because = queued.Forwards[i].Because
			}
		}
		return c, nil
	}
	g.Name = ""              // private to the giver
	if g.Kind.IsResource() { // its home knows all grants
		return MintCapability{Grant: g, Via: g.Parent}, nil
	}
	return MintCapability{Grant: g, Via: s.Grants.presented(g.Parent, g.Target)}, nil
}

// queuedAnswer returns the answer or the withdrawal that the agent queued. Secret values in it are sealed.
func (f *Form) queuedAnswer(by capabilities.ID) (Command, error) {
	e := f.Queued().Answer
	if e == nil {
		return nil, parley.Refuse(parley.Internal, "outbox item of an answer to form %s, which has none", f.ID)
	}
	values, _ := e.Values.AsRecord()
	settle := SettleForm{Form: e.Form, By: by, Reason: e.Reason, Note: e.Note, Values: values, Grants: e.Grants, Answer: e.Answer, Revision: e.Revision}
	if e.Reason == "" && f.AsksPasskey() {
		settle.Signed = Signed(f)
	}
	_, c := settle.Delivery()
	return c, nil
}

// copyFor returns the copy of a message for one of its recipients. It leaves out what is private to the sender, and
// adds the chain of forwards. The copy of an amended form is the form as it was asked: the amendment follows it.
func copyFor(s *State, m *Message, to capabilities.ID) Command {
	if m.Posted != nil {
		c := *m.Posted
		c.Text = textFor(&c, to)
		c.To, c.Via, c.Facet = to, s.Grants.presented(m.refToOne(to, s.ID).Grant, to), capabilities.Facet{}
		c.Escalate, c.Recipients = nil, slices.Clone(c.Recipients)
		for i, r := range c.Recipients {
			c.Recipients[i] = events.Recipient{Agent: r.Agent, Name: r.Name}
		}
		return AcceptDelivery{Posted: &c}
	}
	if m.Form.Review().By() == to {
		return reviewCopy(m.Form)
	}
	c := *m.Form.asAsked()
	via := c.Via
	strip(&c)
	for _, h := range m.Form.Forwarded() {
		if h.To == to {
			via = h.Via
		}
	}
	at := to
	var steps events.CopySteps
	for at != c.To && m.Form.routedTo(at) == nil {
		i := slices.IndexFunc(m.Form.Forwarded(), func(h events.FormForwarded) bool { return h.To == at })
		if i < 0 {
			break
		}
		h := m.Form.Forwarded()[i]
		at = h.By
		if c.Forwarder.IsZero() {
			c.Forwarder = at
		}
		c.Chain = append([]capabilities.ID{at}, c.Chain...)
		steps = append(events.CopySteps{{By: at, Cause: h.Because.Cause, Date: h.Date, Until: h.Because.Until}}, steps...)
	}
	if r := m.Form.routedTo(at); r != nil { // it was put to that agent, by the route
		if after := m.Form.delayOf(r); after > 0 {
			steps = append(events.CopySteps{{By: c.To, Cause: events.Escalated, Date: r.Date, After: after}}, steps...)
		}
		c.To = at
		if at == to {
			via = r.Via
		}
	}
	if slices.ContainsFunc(steps, func(s events.CopyStep) bool { return s.Cause != "" }) { // by hand, the chain says it all
		c.Steps = &steps
	}
	c.Via = s.Grants.presented(via, to)
	if s.isRemote(to) {
		return AcceptDelivery{Form: &c}
	}
	return AcceptDelivery{Form: &c, with: m.Form.afterReview()}
}

// strip removes the parts of a form that are private to its asker.
func strip(e *events.FormRequested) {
	e.Via, e.Facet, e.Key, e.Result, e.Route = capabilities.ID{}, nil, "", "", copied(e.Route)
}

// outcomeFor returns the outcome as a holder may see it. Only the answerer sees the values, and the ID of its answer.
func (f *Form) outcomeFor(holder capabilities.ID) Command {
	if e := f.Superseded(holder); e != nil {
		return RecordOutcome{Form: f.ID, Cancelled: e}
	}
	if f.Ended != nil {
		e := *f.Ended
		if e.By != holder {
			e.Answer = capabilities.ID{}
		}
		return RecordOutcome{Form: e.Form, Cancelled: &e}
	}
	a, signed := *f.Answered, Signed(f)
	if a.By != holder {
		a.Values, a.Grants, a.Withheld, a.Answer, signed = f.sharedDecision(&a), nil, true, capabilities.ID{}, nil
	}
	return RecordOutcome{Form: a.Form, Answered: &a, Signed: signed}
}

// delivered applies the acknowledgement of items, which were accepted or refused.
func (f fold) delivered(e *events.MessageDelivered) error {
	return f.Outbox.remove(e.Items, func(p OutboxItem) {
		if e.Refused != "" {
			f.refused(p, e.Refused)
		} else if p.isAnswer() {
			f.answerAccepted(p)
		}
		if p.Kind == events.OutboxClaiming {
			f.claimDecided(p, e.Refused)
		}
		if n, ok := f.Mail.Index.entries.FindOpen(p.Subject); ok && f.Mail.live[n] != nil {
			f.retire(f.Mail.live[n])
		}
	})
}

// refused applies the refusal of an item by its mailbox.
func (f fold) refused(p OutboxItem, why string) {
	switch p.Kind {
	case events.OutboxCopy:
		if m, err := f.Mail.byOwnID(p.Subject); err == nil && m.Posted != nil && !m.toSeveral(f.ID) { // a form is declined by an event of its own, and one of several recipients noted
			m.Refused = why
			delete(f.Mail.acks, m.Number)
			f.Mail.Index.entries.Note(m.Number, f.Version)
			f.Mail.touch(m, f.Version)
		}
	case events.OutboxAmendment:
		if m, err := f.Mail.form(p.Subject); err == nil && m.Form.IsOpen() {
			m.Form.queued.edit().Refused = why
			f.Mail.touch(m, f.Version)
		}
	case events.OutboxAnswer, events.OutboxWithdrawal:
		if m, err := f.Mail.form(p.Subject); err == nil && m.Form.Queued().Answer != nil {
			f.Mail.touch(m, f.Version)
			queued := m.Form.queued.edit()
			f.revokeUnused(queued.Answer.Grants, f.at)
			queued.takeBack(why)
		}
	case events.OutboxForward:
		g, ok := f.Grants.given.Get(p.Subject)
		if !ok {
			return
		}
		f.revokeUnused([]capabilities.Grant{g}, f.at)
		if m, err := f.Mail.form(g.Message); err == nil {
			f.Mail.touch(m, f.Version)
			queued := m.Form.queued.edit()
			queued.dropForward(p.Subject)
			queued.Refused = why
		}
	}
}

// maxRefused bounds the reason for a refusal that is kept, in characters.
const maxRefused = 200

// RecordDelivery notes that items were accepted, or refused. Items that are no longer in the outbox are ignored.
type RecordDelivery struct {
	Items   []OutboxItem
	Refused string
}

func (c RecordDelivery) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	seqs := make([]uint64, 0, len(c.Items))
	var evs []events.Event
	for _, p := range c.Items {
		if !s.Outbox.has(p) {
			continue
		}
		seqs = append(seqs, p.Seq)
		if e := c.decline(s, p, now); e != nil {
			evs = append(evs, e)
		}
		missed, err := c.unreached(s, p, now)
		if err != nil {
			return nil, err
		}
		evs = append(evs, missed...)
	}
	if len(seqs) == 0 {
		return nil, nil
	}
	slices.Sort(seqs)
	arrived := &events.MessageDelivered{Items: slices.Compact(seqs), Refused: parley.Shown(c.Refused, maxRefused)}
	return append([]events.Event{arrived}, evs...), nil
}

// decline returns the event that declines a form whose only holder refused its copy; nil for any other item.
func (c RecordDelivery) decline(s *State, p OutboxItem, now capabilities.Time) events.Event {
	if c.Refused == "" || p.Kind != events.OutboxCopy {
		return nil
	}
	m, err := s.Mail.form(p.Subject)
	if err == nil && m.Form.isReviewed(p.To) {
		return &events.ReviewEnded{Form: p.Subject, Reviewer: p.To, How: events.ReviewUnreachable, Date: now}
	}
	if err != nil || !m.Form.IsOpen() || len(m.Form.Holders) != 1 {
		return nil
	}
	return &events.FormCancelled{Form: p.Subject, Reason: events.Declined, By: p.To, Note: "not accepted: " + parley.Shown(c.Refused, maxRefused), Date: now}
}

// Undelivered returns the messages that have not arrived at their first recipient.
func (s *State) Undelivered() map[*Message]bool {
	waiting := map[*Message]bool{}
	for _, p := range s.Outbox.items {
		if p.Kind != events.OutboxCopy {
			continue
		}
		if m, err := s.Mail.byOwnID(p.Subject); err == nil && (m.To() == p.To || m.toSeveral(s.ID)) {
			waiting[m] = true
		}
	}
	return waiting
}

// Queued has the answer and the forwards of a copy whose home is on another node. They are on their way there. Said has
// the answers and withdrawals that the home has not refused, oldest first, until the form ends.
type Queued struct {
	Answer   *events.AnswerQueued
	Forwards []events.ForwardQueued
	Refused  string // why the home refused the last
	Said     []events.AnswerQueued
	Claim    *events.ClaimQueued // that waits for the home
}

// say adds an answer or a withdrawal.
func (w *Queued) say(e *events.AnswerQueued) {
	w.Answer, w.Refused = e, ""
	w.Said = append(w.Said[max(0, len(w.Said)+1-2*vote.MostOf):], *e) // a home refuses more
}

// takeBack drops the answer that waits, which the home has refused.
func (w *Queued) takeBack(why string) {
	q := w.Answer
	var said []events.AnswerQueued
	for _, e := range w.Said {
		if e.Answer != q.Answer || e.Reason != q.Reason {
			said = append(said, e)
		}
	}
	w.Answer, w.Refused, w.Said = nil, why, said
}
