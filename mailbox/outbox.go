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

// OutboxItem is something that a mailbox owes to another. It is in the outbox until the other has it. Seq is its
// number among all that the mailbox ever owed, so that a receipt that comes twice is for one parcel.
type OutboxItem struct {
	Seq     uint64
	Kind    events.OutboxKind
	Subject capabilities.ID // the form, message or grant; of a handover, the grant made for it
	To      capabilities.ID
}

// CommandFor gives what is in a parcel: the command for the mailbox that it is owed to.
func (s *State) CommandFor(p OutboxItem) (Command, error) {
	if p.Kind == events.OutboxRevocation {
		g, ok := s.given.Get(p.Subject)
		if !ok {
			return nil, parley.Refuse(parley.Internal, "parcel of grant %s, which was not given", p.Subject)
		}
		return RecordRevocation{Grant: g.ID, By: s.ID, Date: g.Revoked}, nil
	}
	if p.Kind == events.OutboxMint || p.Kind == events.OutboxForward {
		return s.openGrant(p)
	}
	n, ok := s.byID.get(p.Subject)
	if !ok {
		return nil, parley.Refuse(parley.Internal, "parcel of message %s, which is not here", p.Subject)
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

// Outgoing yields what is owed to mailboxes of another node and can go there, in the order in which it
// has to arrive. What gives a reference away waits, with all that comes after it for the same mailbox, until
// the target knows of the grant: what arrives can be used.
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

// HeldFor gives the nodes that have to know of a grant before the mail for an agent can go there.
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

// unminted gives the mail, and the handovers, that give what its target does not know of yet.
func (s *State) unminted() map[capabilities.ID]bool {
	if s.minting == 0 {
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

// openGrant gives what is in a parcel about a grant that the agent has made.
func (s *State) openGrant(p OutboxItem) (Command, error) {
	g, ok := s.given.Get(p.Subject)
	if !ok {
		return nil, parley.Refuse(parley.Internal, "parcel of grant %s, which was not given", p.Subject)
	}
	if p.Kind == events.OutboxForward {
		return ForwardForm{Form: g.Message, By: s.ID, To: g.Target, Via: g.ID}, nil
	}
	g.Name = "" // the giver's own business
	return MintCapability{Grant: g, Via: s.presented(g.Parent, g.Target)}, nil
}

// queuedAnswer gives what the agent has said to a form, with what is secret still sealed.
func (f *Form) queuedAnswer(by capabilities.ID) (Command, error) {
	e := f.QueuedAnswer
	if e == nil {
		return nil, parley.Refuse(parley.Internal, "parcel of an answer to form %s, which has none", f.ID)
	}
	values, _ := e.Values.AsRecord()
	return SettleForm{Form: e.Form, By: by, Reason: e.Reason, Note: e.Note, Values: values, Grants: e.Grants, Answer: e.Answer}, nil
}

// copyFor gives the copy for one who may answer: without what is the asker's own business, and with the
// way that it came.
func (s *State) copyFor(m *Message, to capabilities.ID) Command {
	if m.Posted != nil {
		c := *m.Posted
		c.Via, c.Facet = s.presented(c.Via, to), capabilities.Facet{}
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
	c.Via = s.presented(via, to)
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

// strip takes out of a form what is its asker's own business.
func strip(e *events.FormRequested) {
	e.Via, e.Facet, e.Key, e.Result = capabilities.ID{}, capabilities.Facet{}, "", ""
}

// outcomeFor gives the outcome as a holder may see it: only who answered sees the values again, and by which of its
// answers they came.
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
		s.itemGone(p, e.Refused, at)
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
		return fmt.Errorf("%w: parcel %d is not owed", ErrNonsense, arrived[0])
	}
	for _, p := range gone {
		s.itemGone(p, e.Refused, at)
	}
	return nil
}

// itemGone does what follows when a parcel has arrived, or the other would not have it.
func (s *State) itemGone(p OutboxItem, refused string, at capabilities.Time) {
	if p.Kind == events.OutboxMint {
		s.minting--
	}
	if refused != "" {
		s.refused(p, refused, at)
		return
	}
	s.arrived(p)
}

// enqueue puts a parcel in the outbox. An agent owes itself nothing: it has it.
func (s *State) enqueue(kind events.OutboxKind, subject, to capabilities.ID) {
	if to != s.ID {
		s.lastSeq++
		s.outbox = append(s.outbox, OutboxItem{Seq: s.lastSeq, Kind: kind, Subject: subject, To: to})
	}
}

// isQueued finds a parcel in the outbox, which is in the order of their numbers.
func (s *State) isQueued(p OutboxItem) (int, bool) {
	i, found := slices.BinarySearchFunc(s.outbox, p.Seq, func(o OutboxItem, seq uint64) int { return cmp.Compare(o.Seq, seq) })
	return i, found && s.outbox[i] == p
}

// refused does what follows when the other would not have a parcel.
func (s *State) refused(p OutboxItem, why string, at capabilities.Time) {
	switch p.Kind {
	case events.OutboxCopy:
		if n, ok := s.byID.get(p.Subject); ok && s.messages[n].Posted != nil { // a form ends by it
			s.messages[n].Refused, s.messages[n].Changed = why, s.Version
		}
	case events.OutboxAnswer:
		if m, err := s.form(p.Subject); err == nil && m.Form.QueuedAnswer != nil {
			f := m.Form
			m.Changed = s.Version
			s.takeBack(f.QueuedAnswer.Grants, at)
			f.QueuedAnswer, f.Refused = nil, why
		}
	case events.OutboxForward:
		g, ok := s.given.Get(p.Subject)
		if !ok {
			return
		}
		s.takeBack([]capabilities.Grant{g}, at)
		if m, err := s.form(g.Message); err == nil {
			m.Changed = s.Version
			m.Form.dropQueuedForward(p.Subject)
			m.Form.Refused = why
		}
	}
}

// arrived does what follows when the other has a parcel.
func (s *State) arrived(p OutboxItem) {
	if p.Kind != events.OutboxForward {
		return
	}
	if g, ok := s.given.Get(p.Subject); ok {
		if m, err := s.form(g.Message); err == nil {
			m.Form.dropQueuedForward(p.Subject)
		}
	}
}

// maxRefused is how many characters are kept of why a parcel was refused.
const maxRefused = 200

// RecordDelivery notes that parcels have arrived, or that the other would not have them. A receipt for what is no
// longer owed changes nothing.
type RecordDelivery struct {
	Items   []OutboxItem
	Refused string
}

func (c RecordDelivery) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	seqs := make([]uint64, 0, len(c.Items))
	var evs []events.Event
	for _, p := range c.Items {
		if _, owed := s.isQueued(p); !owed {
			continue
		}
		seqs = append(seqs, p.Seq)
		if e := s.unwanted(p, c.Refused, now); e != nil {
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

// unwanted ends a form that the only one who could have answered it would not have.
func (s *State) unwanted(p OutboxItem, refused string, now capabilities.Time) events.Event {
	if refused == "" || p.Kind != events.OutboxCopy {
		return nil
	}
	m, err := s.form(p.Subject)
	if err != nil || !m.Form.IsOpen() || len(m.Form.Holders) != 1 {
		return nil
	}
	return &events.FormCancelled{Form: p.Subject, Reason: events.Declined, By: p.To, Note: "not accepted: " + parley.Shown(refused, maxRefused), Date: now}
}

// Undelivered gives the messages that have not arrived where they were sent first.
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

// LastSeq returns the number of the newest parcel that the mailbox has ever owed.
func (s *State) LastSeq() uint64 { return s.lastSeq }

// Outbox returns what the mailbox owes, oldest first. The slice is the state's own.
func (s *State) Outbox() []OutboxItem { return s.outbox }

// OutboxAfter returns what is in it of the parcels after a number. The slice is the state's own.
func (s *State) OutboxAfter(seq uint64) []OutboxItem {
	first, _ := slices.BinarySearchFunc(s.outbox, seq+1, func(p OutboxItem, seq uint64) int { return cmp.Compare(p.Seq, seq) })
	return s.outbox[first:]
}
