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

// QueueAnswer keeps a settlement that DraftAnswer or DraftDecline has made. Sealed values stand in the place
// of secret ones. It changes nothing if the form has ended by just that settlement.
type QueueAnswer struct{ Answer SettleForm }

func (c QueueAnswer) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.FindFormID(c.Answer.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.EndedBy(c.Answer.Answer) {
		return nil, nil
	}
	if err := s.mayDraft(m); err != nil {
		return nil, err
	}
	e := &events.AnswerQueued{
		Form: c.Answer.Form, Reason: c.Answer.Reason, Note: c.Answer.Note, Grants: c.Answer.Grants, Date: now, Answer: c.Answer.Answer,
	}
	if e.Reason == "" {
		e.Values = c.Answer.Masked()
	}
	return append(granted(e.Grants), e), nil
}

// Masked is the values of an answer as a record, with what is secret sealed.
func (c SettleForm) Masked() capabilities.Value {
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
	if d := m.Form.QueuedAnswer; d != nil {
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

// QueueForward keeps the wish to hand a form on. To is a path, ID or locator. The home gets a grant, by which
// it can reach the one that the form is handed to.
type QueueForward struct {
	Which string
	To    string
}

func (c QueueForward) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
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
		ID: ids(), Parent: ref.Grant, Target: ref.Target, Kind: ref.Kind, Facet: forwardFacet(ref.Facet),
		Name: s.giftName(ref, "forward"), To: home, By: s.ID, Message: h.Form, At: now,
	}
	return []events.Event{
		&events.CapabilityGranted{Grant: g},
		&events.ForwardQueued{Form: h.Form, To: h.To, Via: g.ID, Date: now},
	}, nil
}

// forwardFacet narrows how an agent is held to what it takes to put one form to it.
func forwardFacet(held capabilities.Facet) capabilities.Facet {
	return held.Narrow(capabilities.Facet{Mode: capabilities.AskOnly, Uses: 1})
}

func (s *State) applyAnswerQueued(e *events.AnswerQueued) error {
	m, err := s.unsettled(e.Form)
	if err != nil {
		return err
	}
	m.Changed = s.Version
	m.Form.QueuedAnswer, m.Form.Refused = e, ""
	s.enqueue(events.OutboxAnswer, e.Form, m.Form.From)
	return nil
}

func (s *State) applyForwardQueued(e *events.ForwardQueued) error {
	m, err := s.unsettled(e.Form)
	if err != nil {
		return err
	}
	m.Changed = s.Version
	m.Form.QueuedForwards = append(m.Form.QueuedForwards, *e)
	s.enqueue(events.OutboxForward, e.Via, m.Form.From)
	return nil
}

// draftEnds drops, when a form has ended, what was still on its way to its home, and takes back what that
// would have given and the outcome does not.
func (s *State) draftEnds(f *Form, at capabilities.Time) {
	if f.QueuedAnswer == nil && len(f.QueuedForwards) == 0 {
		return
	}
	s.outbox = slices.DeleteFunc(s.outbox, func(p OutboxItem) bool {
		return p.Kind == events.OutboxAnswer && p.Subject == f.ID ||
			p.Kind == events.OutboxForward && f.queuedForward(p.Subject) >= 0
	})
	if f.QueuedAnswer != nil && !s.isOutcome(f, f.QueuedAnswer) {
		s.takeBack(f.QueuedAnswer.Grants, at)
	}
	for _, w := range f.QueuedForwards {
		if g, ok := s.given.Get(w.Via); ok {
			s.takeBack([]capabilities.Grant{g}, at)
		}
	}
	f.QueuedAnswer, f.QueuedForwards = nil, nil
}

// isOutcome reports whether a form has ended by what the agent kept. What was kept without an ID, by programs before
// this one, is known by its agent alone.
func (s *State) isOutcome(f *Form, kept *events.AnswerQueued) bool {
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

// queuedForward finds a pending handover by its grant.
func (f *Form) queuedForward(via capabilities.ID) int {
	return slices.IndexFunc(f.QueuedForwards, func(w events.ForwardQueued) bool { return w.Via == via })
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

func (f *Form) dropQueuedForward(via capabilities.ID) {
	if i := f.queuedForward(via); i >= 0 {
		f.QueuedForwards = slices.Delete(f.QueuedForwards, i, i+1)
	}
}
