package mailbox

import (
	"maps"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// What a holder says to a form whose home is on another node is kept in its own log, and owed to the home,
// when it cannot be said there at once, or when it gives away what others have to know of first.

// KeepAnswer keeps a settlement that DraftAnswer or DraftDecline has made. Sealed values stand in the place
// of secret ones. It changes nothing if the form has ended by just that settlement.
type KeepAnswer struct{ Settle Settle }

func (c KeepAnswer) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.FindFormID(c.Settle.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.EndedBy(c.Settle.Answer) {
		return nil, nil
	}
	if err := s.mayDraft(m); err != nil {
		return nil, err
	}
	e := &events.FormAnswering{
		Form: c.Settle.Form, Reason: c.Settle.Reason, Note: c.Settle.Note, Grants: c.Settle.Grants, Date: now, Answer: c.Settle.Answer,
	}
	if e.Reason == "" {
		e.Values = c.Settle.Masked()
	}
	return append(granted(e.Grants), e), nil
}

// Masked is the values of an answer as a record, with what is secret sealed.
func (c Settle) Masked() capabilities.Value {
	values := maps.Clone(c.Values)
	if values == nil {
		values = map[string]capabilities.Value{}
	}
	maps.Copy(values, c.Sealed)
	return capabilities.Record(values)
}

// mayDraft refuses a form that has ended, or to which something is being said already.
func (s *State) mayDraft(m *Message) error {
	if !m.Form.IsOpen() {
		return s.already(m)
	}
	if d := m.Form.Answering; d != nil {
		return pending(m, d.Date)
	}
	return nil
}

// MaySettle refuses a form that has ended, and with ANSWER_PENDING one to which the agent has said something that is on
// its way.
func (s *State) MaySettle(form capabilities.ID) error {
	m, err := s.FindFormID(form)
	if err != nil {
		return err
	}
	return s.mayDraft(m)
}

// Pending returns the error for a form to which the agent says something since a time, of which nothing is known yet.
func (s *State) Pending(form capabilities.ID, since capabilities.Time) error {
	m, err := s.FindFormID(form)
	if err != nil {
		return err
	}
	return pending(m, since)
}

func pending(m *Message, since capabilities.Time) error {
	e := parley.Refuse(parley.AnswerPending, "what this agent said to form %d at %s is on its way", m.Number, since).
		WithHint("the form is open until that arrives; parley await %d shows how it ends", m.Number)
	e.Fields = map[string]string{"form": m.ID().String()}
	return e
}

// KeepHandover keeps the wish to hand a form on. To is a path, ID or locator. The home gets a grant, by which
// it can reach the one that the form is handed to.
type KeepHandover struct {
	Which string
	To    string
}

func (c KeepHandover) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	h, home, err := s.DraftForward(c.Which, c.To, now)
	if err != nil {
		return nil, err
	}
	ref, err := s.reach(c.To, capabilities.UseAsk, now)
	if err != nil {
		return nil, err
	}
	if err := s.permit(ref, capabilities.UseGive, now); err != nil {
		return nil, err
	}
	g := capabilities.Grant{
		ID: ids(), Parent: ref.Grant, Target: ref.Target, Kind: ref.Kind, Facet: handoverFacet(ref.Facet),
		Name: s.giftName(ref, "forward"), To: home, By: s.ID, Message: h.Form, At: now,
	}
	return []events.Event{
		&events.CapabilityGranted{Grant: g},
		&events.FormForwarding{Form: h.Form, To: h.To, Via: g.ID, Date: now},
	}, nil
}

// handoverFacet narrows how an agent is held to what it takes to put one form to it.
func handoverFacet(held capabilities.Facet) capabilities.Facet {
	return held.Narrow(capabilities.Facet{Mode: capabilities.AskOnly, Uses: 1})
}

func (s *State) applyAnswering(e *events.FormAnswering) error {
	m, err := s.unsettled(e.Form)
	if err != nil {
		return err
	}
	m.Changed = s.Version
	m.Form.Answering, m.Form.Refused = e, ""
	s.owe(events.ParcelAnswer, e.Form, m.Form.From)
	return nil
}

func (s *State) applyForwarding(e *events.FormForwarding) error {
	m, err := s.unsettled(e.Form)
	if err != nil {
		return err
	}
	m.Changed = s.Version
	m.Form.Forwarding = append(m.Form.Forwarding, *e)
	s.owe(events.ParcelHandover, e.Via, m.Form.From)
	return nil
}

// draftEnds drops, when a form has ended, what was still on its way to its home, and takes back what that
// would have given and the outcome does not.
func (s *State) draftEnds(f *Form, at capabilities.Time) {
	if f.Answering == nil && len(f.Forwarding) == 0 {
		return
	}
	s.outbox = slices.DeleteFunc(s.outbox, func(p Parcel) bool {
		return p.Kind == events.ParcelAnswer && p.Subject == f.FormRequested.Form ||
			p.Kind == events.ParcelHandover && f.forwarding(p.Subject) >= 0
	})
	if f.Answering != nil && !s.isOutcome(f, f.Answering) {
		s.takeBack(f.Answering.Grants, at)
	}
	for _, w := range f.Forwarding {
		if g, ok := s.given.Get(w.Via); ok {
			s.takeBack([]capabilities.Grant{g}, at)
		}
	}
	f.Answering, f.Forwarding = nil, nil
}

// isOutcome reports whether a form has ended by what the agent kept. What was kept without an ID, by programs before
// this one, is known by its agent alone.
func (s *State) isOutcome(f *Form, kept *events.FormAnswering) bool {
	if kept.Answer.IsZero() || f.Answered != nil && f.Answered.Answer.IsZero() {
		return f.Answered != nil && f.Answered.By == s.ID
	}
	return f.EndedBy(kept.Answer)
}

// takeBack ends grants that came to nothing.
func (s *State) takeBack(grants []capabilities.Grant, at capabilities.Time) {
	for _, g := range grants {
		if own, ok := s.given.Get(g.ID); ok && own.Revoked == 0 {
			s.fall(own, at)
		}
	}
}

// forwarding finds a pending handover by its grant.
func (f *Form) forwarding(via capabilities.ID) int {
	return slices.IndexFunc(f.Forwarding, func(w events.FormForwarding) bool { return w.Via == via })
}

// refused does what follows when the other would not have a parcel.
func (s *State) refused(p Parcel, why string, at capabilities.Time) {
	switch p.Kind {
	case events.ParcelCopy:
		if n, ok := s.byID.get(p.Subject); ok && s.messages[n].Posted != nil { // a form ends by it
			s.messages[n].Refused, s.messages[n].Changed = why, s.Version
		}
	case events.ParcelAnswer:
		if m, err := s.form(p.Subject); err == nil && m.Form.Answering != nil {
			f := m.Form
			m.Changed = s.Version
			s.takeBack(f.Answering.Grants, at)
			f.Answering, f.Refused = nil, why
		}
	case events.ParcelHandover:
		g, ok := s.given.Get(p.Subject)
		if !ok {
			return
		}
		s.takeBack([]capabilities.Grant{g}, at)
		if m, err := s.form(g.Message); err == nil {
			m.Changed = s.Version
			m.Form.dropForwarding(p.Subject)
			m.Form.Refused = why
		}
	}
}

// arrived does what follows when the other has a parcel.
func (s *State) arrived(p Parcel) {
	if p.Kind != events.ParcelHandover {
		return
	}
	if g, ok := s.given.Get(p.Subject); ok {
		if m, err := s.form(g.Message); err == nil {
			m.Form.dropForwarding(p.Subject)
		}
	}
}

func (f *Form) dropForwarding(via capabilities.ID) {
	if i := f.forwarding(via); i >= 0 {
		f.Forwarding = slices.Delete(f.Forwarding, i, i+1)
	}
}
