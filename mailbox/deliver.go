package mailbox

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Receive takes in a copy of a form or message from its sender: one of the two is there. Its number is of
// no account. A copy that is here already changes nothing, however often and late it comes.
type Receive struct {
	Form   *events.FormRequested
	Posted *events.MessagePosted
}

func (c Receive) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if c.Form != nil {
		if _, here := s.byID[c.Form.Form]; here {
			return nil, nil
		}
		e := *c.Form
		e.Number = uint64(len(s.messages))
		return []events.Event{&e}, nil
	}
	if _, here := s.byID[c.Posted.Message]; here {
		return nil, nil
	}
	e := *c.Posted
	e.Number = uint64(len(s.messages))
	return []events.Event{&e}, nil
}

// Learn takes in what became of a form that the mailbox has a copy of: that it ended one way or the other,
// or all the times that the mailbox's agent handed it on.
type Learn struct {
	Form      capabilities.ID
	Answered  *events.FormAnswered
	Cancelled *events.FormCancelled
	Forwarded []events.FormForwarded
}

func (c Learn) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	var evs []events.Event
	for _, h := range c.Forwarded {
		if !slices.Contains(f.Handed, h) {
			evs = append(evs, &h)
		}
	}
	switch {
	case c.Forwarded != nil:
		return evs, nil
	case !f.IsOpen():
		return nil, nil
	case c.Cancelled != nil:
		return []events.Event{c.Cancelled}, nil
	}
	evs = append(evs, c.Answered)
	if c.Answered.By == s.ID { // what it gave away is on its books from now on
		evs = append(evs, granted(c.Answered.Grants)...)
	}
	return evs, nil
}

// Lose takes in that a grant which the agent was given is revoked.
type Lose struct {
	Grant capabilities.ID
	By    capabilities.ID
	Date  capabilities.Time
}

func (c Lose) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if _, gone := s.revoked[c.Grant]; gone {
		return nil, nil
	}
	return []events.Event{&events.CapabilityRevoked{Grant: c.Grant, By: c.By, Date: c.Date}}, nil
}

// Delivered notes that a parcel has arrived, or that the other would not have it.
type Delivered struct {
	Parcel  Parcel
	Refused string
}

func (c Delivered) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if !slices.Contains(s.outbox, c.Parcel) {
		return nil, nil
	}
	return []events.Event{&events.MessageDelivered{
		Parcel: c.Parcel.Kind, Subject: c.Parcel.Subject, To: c.Parcel.To, Refused: c.Refused,
	}}, nil
}

// Open gives what is in a parcel: the command for the mailbox that it is owed to.
func (s *State) Open(p Parcel) (Command, error) {
	if p.Kind == events.ParcelRevocation {
		g, ok := s.given.Get(p.Subject)
		if !ok {
			return nil, parley.Refuse(parley.Internal, "parcel of grant %s, which was not given", p.Subject)
		}
		return Lose{Grant: g.ID, By: s.ID, Date: g.Revoked}, nil
	}
	n, ok := s.byID[p.Subject]
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
		return Receive{Posted: m.Posted}
	}
	c := *m.Form.FormRequested
	c.Key, c.Result = "", ""
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
	return Receive{Form: &c}
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
