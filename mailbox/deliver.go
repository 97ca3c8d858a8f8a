package mailbox

import (
	"iter"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

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
	return AcceptDelivery{Form: &c, own: true}
}

// strip takes out of a form what is its asker's own business.
func strip(e *events.FormRequested) {
	e.Via, e.Facet, e.Key, e.Result = capabilities.ID{}, capabilities.Facet{}, "", ""
}

// forwardedBy gives all the times that a holder handed the form on.
func (f *Form) forwardedBy(by capabilities.ID) []events.FormForwarded {
	var handed []events.FormForwarded
	for _, h := range f.Forwarded {
		if h.By == by {
			handed = append(handed, h)
		}
	}
	return handed
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
