package mailbox

import (
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
	n, ok := s.byID.get(p.Subject)
	if !ok {
		return nil, parley.Refuse(parley.Internal, "parcel of message %s, which is not here", p.Subject)
	}
	m := s.messages[n]
	switch p.Kind {
	case events.ParcelCopy:
		return m.copyFor(p.To), nil
	case events.ParcelForward:
		return Learn{Form: p.Subject, Forwarded: m.Form.handedBy(p.To)}, nil
	}
	return m.Form.outcomeFor(p.To), nil
}

// copyFor gives the copy for one who may answer: without what is the asker's own business, and with the
// way that it came.
func (m *Message) copyFor(to capabilities.ID) Command {
	if m.Posted != nil {
		c := *m.Posted
		c.Via, c.Facet = capabilities.ID{}, capabilities.Facet{}
		return Receive{Posted: &c}
	}
	c := *m.Form.FormRequested
	strip(&c)
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
	return Receive{Form: &c, own: true, contract: m.Form.contract}
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

// outcomeFor gives the outcome as a holder may see it: only who answered sees the values again.
func (f *Form) outcomeFor(holder capabilities.ID) Command {
	if f.Ended != nil {
		return Learn{Form: f.Ended.Form, Cancelled: f.Ended}
	}
	a := *f.Answered
	if a.By != holder {
		a.Values, a.Grants, a.Withheld = capabilities.Null(), nil, true
	}
	return Learn{Form: a.Form, Answered: &a}
}
