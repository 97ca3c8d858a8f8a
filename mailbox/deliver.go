package mailbox

import (
	"iter"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Open gives what is in a parcel: the command for the mailbox that it is owed to.
func (s *State) Open(p Parcel) (Command, error) {
	if p.Kind == events.ParcelRevocation {
		g, ok := s.given.Get(p.Subject)
		if !ok {
			return nil, parley.Refuse(parley.Internal, "parcel of grant %s, which was not given", p.Subject)
		}
		return Lose{Grant: g.ID, By: s.ID, Date: g.Revoked}, nil
	}
	if p.Kind == events.ParcelMint || p.Kind == events.ParcelHandover {
		return s.openGrant(p)
	}
	n, ok := s.byID.get(p.Subject)
	if !ok {
		return nil, parley.Refuse(parley.Internal, "parcel of message %s, which is not here", p.Subject)
	}
	m := s.messages[n]
	switch p.Kind {
	case events.ParcelCopy:
		return s.copyFor(m, p.To), nil
	case events.ParcelAnswer:
		return m.Form.keptAnswer(s.ID)
	case events.ParcelForward:
		return Learn{Form: p.Subject, Forwarded: m.Form.handedBy(p.To)}, nil
	}
	return m.Form.outcomeFor(p.To), nil
}

// Outgoing yields what is owed to mailboxes of another node and can go there, in the order in which it
// has to arrive. What gives a reference away waits, with all that comes after it for the same mailbox, until
// the target knows of the grant: what arrives can be used.
func (s *State) Outgoing(node capabilities.NodeID) iter.Seq[Parcel] {
	return func(yield func(Parcel) bool) {
		unknown := s.unminted()
		held := map[capabilities.ID]bool{}
		for _, p := range s.outbox {
			if p.To.Node != node || held[p.To] {
				continue
			}
			if p.Kind != events.ParcelMint && unknown[p.Subject] {
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
		if p.To == to && p.Kind != events.ParcelMint && unknown[p.Subject] {
			holds[p.Subject] = true
		}
	}
	var nodes []capabilities.NodeID
	for _, p := range s.outbox {
		if g, ok := s.given.Get(p.Subject); ok && p.Kind == events.ParcelMint && (holds[g.Message] || holds[g.ID]) {
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
		if p.Kind != events.ParcelMint {
			continue
		}
		if g, ok := s.given.Get(p.Subject); ok && g.Revoked == 0 { // what is taken back holds up nothing
			unknown[g.Message], unknown[g.ID] = true, true
		}
	}
	return unknown
}

// openGrant gives what is in a parcel about a grant that the agent has made.
func (s *State) openGrant(p Parcel) (Command, error) {
	g, ok := s.given.Get(p.Subject)
	if !ok {
		return nil, parley.Refuse(parley.Internal, "parcel of grant %s, which was not given", p.Subject)
	}
	if p.Kind == events.ParcelHandover {
		return Handover{Form: g.Message, By: s.ID, To: g.Target, Via: g.ID}, nil
	}
	g.Name = "" // the giver's own business
	return Mint{Grant: g, Via: s.presented(g.Parent, g.Target)}, nil
}

// keptAnswer gives what the agent has said to a form, with what is secret still sealed.
func (f *Form) keptAnswer(by capabilities.ID) (Command, error) {
	e := f.Answering
	if e == nil {
		return nil, parley.Refuse(parley.Internal, "parcel of an answer to form %s, which has none", f.FormRequested.Form)
	}
	values, _ := e.Values.AsRecord()
	return Settle{Form: e.Form, By: by, Reason: e.Reason, Note: e.Note, Values: values, Grants: e.Grants, Answer: e.Answer}, nil
}

// copyFor gives the copy for one who may answer: without what is the asker's own business, and with the
// way that it came.
func (s *State) copyFor(m *Message, to capabilities.ID) Command {
	if m.Posted != nil {
		c := *m.Posted
		c.Via, c.Facet = s.presented(c.Via, to), capabilities.Facet{}
		return Receive{Posted: &c}
	}
	c := *m.Form.FormRequested
	via := c.Via
	strip(&c)
	for _, h := range m.Form.Handed {
		if h.To == to {
			via = h.Via
		}
	}
	c.Via = s.presented(via, to)
	for at := to; at != c.To; {
		i := slices.IndexFunc(m.Form.Handed, func(h events.FormForwarded) bool { return h.To == at })
		if i < 0 {
			break
		}
		at = m.Form.Handed[i].By
		if c.Forwarder.IsZero() {
			c.Forwarder = at
		}
		c.Chain = append([]capabilities.ID{at}, c.Chain...)
	}
	return Receive{Form: &c, own: true}
}

// strip takes out of a form what is its asker's own business.
func strip(e *events.FormRequested) {
	e.Via, e.Facet, e.Key, e.Result = capabilities.ID{}, capabilities.Facet{}, "", ""
}

// handedBy gives all the times that a holder handed the form on.
func (f *Form) handedBy(by capabilities.ID) []events.FormForwarded {
	var handed []events.FormForwarded
	for _, h := range f.Handed {
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
		return Learn{Form: e.Form, Cancelled: &e}
	}
	a := *f.Answered
	if a.By != holder {
		a.Values, a.Grants, a.Withheld, a.Answer = capabilities.Null(), nil, true, capabilities.ID{}
	}
	return Learn{Form: a.Form, Answered: &a}
}
