package mailbox

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// OutboxItem is a delivery to another mailbox. It stays in the outbox until the other mailbox has it. Seq numbers all
// items that the mailbox ever enqueued, so a repeated acknowledgement is recognized.
type OutboxItem struct {
	Seq     uint64
	Kind    events.OutboxKind
	Subject capabilities.ID // the form, message or grant; of a queued forward, the grant made for it
	To      capabilities.ID
}

// CommandFor returns the command that an item brings to its mailbox.
func (s *State) CommandFor(p OutboxItem) (Command, error) {
	if p.Kind == events.OutboxRevocation {
		g, ok := s.given.Get(p.Subject)
		if !ok {
			return nil, parley.Refuse(parley.Internal, "outbox item of grant %s, which was not given", p.Subject)
		}
		return RecordRevocation{Grant: g.ID, By: s.ID, Date: g.Revoked}, nil
	}
	if p.Kind == events.OutboxMint || p.Kind == events.OutboxForward {
		return s.openGrant(p)
	}
	n, ok := s.byID.get(p.Subject)
	if !ok {
		return nil, parley.Refuse(parley.Internal, "outbox item of message %s, which is not here", p.Subject)
	}
	m := s.messages[n]
	switch p.Kind {
	case events.OutboxCopy:
		return s.copyFor(m, p.To), nil
	case events.OutboxAnswer:
		return m.Form.queuedAnswer(s.ID)
	case events.OutboxForwarded:
		return RecordOutcome{Form: p.Subject, Forwarded: m.Form.forwardedBy(p.To)}, nil
	}
	return m.Form.outcomeFor(p.To), nil
}

// Outgoing yields the items for mailboxes of another node that can go now, in the order in which they have to arrive.
// An item that gives a reference waits until the reference's target knows of the grant. All later items for the same
// mailbox wait with it.
func (s *State) Outgoing(node capabilities.NodeID) iter.Seq[OutboxItem] {
	return func(yield func(OutboxItem) bool) {
		unknown := s.unminted()
		held := map[capabilities.ID]bool{}
		for _, p := range s.outbox {
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

// HeldFor returns the nodes that have to know of a grant before mail for an agent can go there.
func (s *State) HeldFor(to capabilities.ID) []capabilities.NodeID {
	unknown := s.unminted()
	if len(unknown) == 0 {
		return nil
	}
	holds := map[capabilities.ID]bool{} // the mail, and the handovers, that wait
	for _, p := range s.outbox {
		if p.To == to && p.Kind != events.OutboxMint && unknown[p.Subject] {
			holds[p.Subject] = true
		}
	}
	var nodes []capabilities.NodeID
	for _, p := range s.outbox {
		if g, ok := s.given.Get(p.Subject); ok && p.Kind == events.OutboxMint && (holds[g.Message] || holds[g.ID]) {
			nodes = append(nodes, p.To.Node)
		}
	}
	return nodes
}

// unminted returns the messages and forwards that give a reference whose target does not know of the grant yet.
func (s *State) unminted() map[capabilities.ID]bool {
	if s.pendingMints == 0 {
		return nil
	}
	unknown := map[capabilities.ID]bool{}
	for _, p := range s.outbox {
		if p.Kind != events.OutboxMint {
			continue
		}
		if g, ok := s.given.Get(p.Subject); ok && g.Revoked == 0 { // what is taken back holds up nothing
			unknown[g.Message], unknown[g.ID] = true, true
		}
	}
	return unknown
}

// openGrant returns the command of an item about a grant that the agent made.
func (s *State) openGrant(p OutboxItem) (Command, error) {
	g, ok := s.given.Get(p.Subject)
	if !ok {
		return nil, parley.Refuse(parley.Internal, "outbox item of grant %s, which was not given", p.Subject)
	}
	if p.Kind == events.OutboxForward {
		return ForwardForm{Form: g.Message, By: s.ID, To: g.Target, Via: g.ID}, nil
	}
	g.Name = "" // the giver's own business
	return MintCapability{Grant: g, Via: s.presentedGrant(g.Parent, g.Target)}, nil
}

// queuedAnswer returns the answer that the agent queued. Secret values in it are sealed.
func (f *Form) queuedAnswer(by capabilities.ID) (Command, error) {
	e := f.QueuedAnswer
	if e == nil {
		return nil, parley.Refuse(parley.Internal, "outbox item of an answer to form %s, which has none", f.ID)
	}
	values, _ := e.Values.AsRecord()
	return SettleForm{Form: e.Form, By: by, Reason: e.Reason, Note: e.Note, Values: values, Grants: e.Grants, Answer: e.Answer}, nil
}

// copyFor returns the copy for an agent that may answer. It leaves out what concerns the asker alone, and adds the
// chain of forwards.
func (s *State) copyFor(m *Message, to capabilities.ID) Command {
	if m.Posted != nil {
		c := *m.Posted
		c.Via, c.Facet = s.presentedGrant(c.Via, to), capabilities.Facet{}
		return AcceptDelivery{Posted: &c}
	}
	c := *m.Form.FormRequested
	via := c.Via
	strip(&c)
	for _, h := range m.Form.Forwarded {
		if h.To == to {
			via = h.Via
		}
	}
	c.Via = s.presentedGrant(via, to)
	for at := to; at != c.To; {
		i := slices.IndexFunc(m.Form.Forwarded, func(h events.FormForwarded) bool { return h.To == at })
		if i < 0 {
			break
		}
		at = m.Form.Forwarded[i].By
		if c.Forwarder.IsZero() {
			c.Forwarder = at
		}
		c.Chain = append([]capabilities.ID{at}, c.Chain...)
	}
	return AcceptDelivery{Form: &c}
}

// strip removes from a form what concerns its asker alone.
func strip(e *events.FormRequested) {
	e.Via, e.Facet, e.Key, e.Result = capabilities.ID{}, capabilities.Facet{}, "", ""
}

// outcomeFor returns the outcome as a holder may see it. Only the answerer sees the values, and the ID of its answer.
func (f *Form) outcomeFor(holder capabilities.ID) Command {
	if f.Ended != nil {
		e := *f.Ended
		if e.By != holder {
			e.Answer = capabilities.ID{}
		}
		return RecordOutcome{Form: e.Form, Cancelled: &e}
	}
	a := *f.Answered
	if a.By != holder {
		a.Values, a.Grants, a.Withheld, a.Answer = capabilities.Null(), nil, true, capabilities.ID{}
	}
	return RecordOutcome{Form: a.Form, Answered: &a}
}

func (s *State) applyDelivered(e *events.MessageDelivered, at capabilities.Time) error {
	arrived := e.Items
	for len(arrived) > 0 && len(s.outbox) > 0 && s.outbox[0].Seq == arrived[0] { // mostly, all of them
		p := s.outbox[0]
		s.outbox, arrived = s.outbox[1:], arrived[1:]
		s.applyAck(p, e.Refused, at)
	}
	if len(arrived) == 0 {
		return nil
	}
	var gone []OutboxItem
	left := s.outbox[:0]
	for _, p := range s.outbox {
		if len(arrived) > 0 && p.Seq == arrived[0] {
			gone, arrived = append(gone, p), arrived[1:]
			continue
		}
		left = append(left, p)
	}
	s.outbox = left
	if len(arrived) > 0 {
		return fmt.Errorf("%w: item %d is not in the outbox", ErrNonsense, arrived[0])
	}
	for _, p := range gone {
		s.applyAck(p, e.Refused, at)
	}
	return nil
}

// applyAck applies the acknowledgement of an item, which was accepted or refused.
func (s *State) applyAck(p OutboxItem, refused string, at capabilities.Time) {
	if p.Kind == events.OutboxMint {
		s.pendingMints--
	}
	if refused != "" {
		s.applyRefused(p, refused, at)
		return
	}
	s.applyAccepted(p)
}

// enqueue adds an item to the outbox. An agent has no items for itself.
func (s *State) enqueue(kind events.OutboxKind, subject, to capabilities.ID) {
	if to != s.ID {
		s.lastSeq++
		s.outbox = append(s.outbox, OutboxItem{Seq: s.lastSeq, Kind: kind, Subject: subject, To: to})
	}
}

// isQueued finds an item in the outbox by binary search.
func (s *State) isQueued(p OutboxItem) (int, bool) {
	i, found := slices.BinarySearchFunc(s.outbox, p.Seq, func(o OutboxItem, seq uint64) int { return cmp.Compare(o.Seq, seq) })
	return i, found && s.outbox[i] == p
}

// applyRefused applies the refusal of an item by its mailbox.
func (s *State) applyRefused(p OutboxItem, why string, at capabilities.Time) {
	switch p.Kind {
	case events.OutboxCopy:
		if n, ok := s.byID.get(p.Subject); ok && s.messages[n].Posted != nil { // a form ends by it
			s.messages[n].Refused, s.messages[n].Changed = why, s.Version
		}
	case events.OutboxAnswer:
		if m, err := s.form(p.Subject); err == nil && m.Form.QueuedAnswer != nil {
			f := m.Form
			m.Changed = s.Version
			s.revokeUnused(f.QueuedAnswer.Grants, at)
			f.QueuedAnswer, f.Refused = nil, why
		}
	case events.OutboxForward:
		g, ok := s.given.Get(p.Subject)
		if !ok {
			return
		}
		s.revokeUnused([]capabilities.Grant{g}, at)
		if m, err := s.form(g.Message); err == nil {
			m.Changed = s.Version
			m.Form.dropQueuedForward(p.Subject)
			m.Form.Refused = why
		}
	}
}

// applyAccepted applies the acceptance of an item by its mailbox.
func (s *State) applyAccepted(p OutboxItem) {
	if p.Kind != events.OutboxForward {
		return
	}
	if g, ok := s.given.Get(p.Subject); ok {
		if m, err := s.form(g.Message); err == nil {
			m.Form.dropQueuedForward(p.Subject)
		}
	}
}

// maxRefused is the number of characters that are kept of why an item was refused.
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
		if _, queued := s.isQueued(p); !queued {
			continue
		}
		seqs = append(seqs, p.Seq)
		if e := s.declineRefused(p, c.Refused, now); e != nil {
			evs = append(evs, e)
		}
	}
	if len(seqs) == 0 {
		return nil, nil
	}
	slices.Sort(seqs)
	arrived := &events.MessageDelivered{Items: slices.Compact(seqs), Refused: parley.Shown(c.Refused, maxRefused)}
	return append([]events.Event{arrived}, evs...), nil
}

// declineRefused returns the event that declines a form whose only holder refused its copy; nil for any other item.
func (s *State) declineRefused(p OutboxItem, refused string, now capabilities.Time) events.Event {
	if refused == "" || p.Kind != events.OutboxCopy {
		return nil
	}
	m, err := s.form(p.Subject)
	if err != nil || !m.Form.IsOpen() || len(m.Form.Holders) != 1 {
		return nil
	}
	return &events.FormCancelled{Form: p.Subject, Reason: events.Declined, By: p.To, Note: "not accepted: " + parley.Shown(refused, maxRefused), Date: now}
}

// Undelivered returns the messages that have not arrived at their first recipient.
func (s *State) Undelivered() map[*Message]bool {
	waiting := map[*Message]bool{}
	for _, p := range s.outbox {
		if p.Kind != events.OutboxCopy {
			continue
		}
		if n, ok := s.byID.get(p.Subject); ok && s.messages[n].To() == p.To {
			waiting[s.messages[n]] = true
		}
	}
	return waiting
}

// LastSeq returns the number of the newest item that was ever enqueued.
func (s *State) LastSeq() uint64 { return s.lastSeq }

// Outbox returns the items that have not arrived, oldest first. The slice belongs to the state.
func (s *State) Outbox() []OutboxItem { return s.outbox }

// OutboxAfter returns the items of the outbox after a number. The slice belongs to the state.
func (s *State) OutboxAfter(seq uint64) []OutboxItem {
	first, _ := slices.BinarySearchFunc(s.outbox, seq+1, func(p OutboxItem, seq uint64) int { return cmp.Compare(p.Seq, seq) })
	return s.outbox[first:]
}
