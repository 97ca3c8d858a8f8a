package mailbox

import (
	"slices"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// RecordOutcome records the progress of a form that the mailbox has a copy of: its answer, its other end, or all
// forwards by the mailbox's agent. Exactly one of the three is set. It comes from a mailbox of this node.
type RecordOutcome struct {
	Form      capabilities.ID
	Answered  *events.FormAnswered
	Cancelled *events.FormCancelled
	Forwarded []events.FormForwarded
}

// RemoteOutcome is a RecordOutcome from another node. Home is its sender there.
type RemoteOutcome struct {
	RecordOutcome

	Home capabilities.ID
}

// maxAhead bounds how far a time of another node may be in the future. Times within it stay as they are, so that all
// holders of a form see the same end.
const maxAhead = 24 * time.Hour

// clampDates returns the outcome with now in place of times that are missing or too far in the future.
func (c RecordOutcome) clampDates(now capabilities.Time) RecordOutcome {
	clamp := func(at capabilities.Time) capabilities.Time {
		if at > 0 && at <= now.Add(maxAhead) {
			return at
		}
		return now
	}
	if c.Answered != nil {
		c.Answered = new(*c.Answered)
		c.Answered.Date = clamp(c.Answered.Date)
	}
	if c.Cancelled != nil {
		c.Cancelled = new(*c.Cancelled)
		c.Cancelled.Date = clamp(c.Cancelled.Date)
	}
	c.Forwarded = slices.Clone(c.Forwarded)
	for i := range c.Forwarded {
		c.Forwarded[i].Date = clamp(c.Forwarded[i].Date)
	}
	return c
}

func (c RecordOutcome) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	return c.record(s, m.Form, c.answered, func(events.FormForwarded) error { return nil })
}

func (c RemoteOutcome) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.From != c.Home {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not asked by the one who brings its news", c.Form)
	}
	return c.clampDates(now).record(s, m.Form, answeredRemotely, func(h events.FormForwarded) error { return checkForwarded(s, h) })
}

// record returns the events of the outcome. Answered returns those of an answer, and check refuses a forward that the
// agent did not make.
func (c RecordOutcome) record(s *State, f *Form, answered func(*State, *events.FormAnswered) ([]events.Event, error), check func(events.FormForwarded) error) ([]events.Event, error) {
	if f.From == s.ID { // its home settles it, by other commands
		return nil, parley.Refuse(parley.NotPermitted, "form %s was asked here", c.Form)
	}
	switch {
	case c.Answered != nil && c.Cancelled == nil && len(c.Forwarded) == 0:
		if err := f.checkAnswered(c.Answered, s.ID); err != nil || !f.IsOpen() {
			return nil, err
		}
		return answered(s, c.Answered)
	case c.Cancelled != nil && c.Answered == nil && len(c.Forwarded) == 0:
		return c.cancelled(f)
	case c.Cancelled == nil && c.Answered == nil && len(c.Forwarded) > 0:
		return c.forwarded(s, f, check)
	}
	return nil, parley.Refuse(parley.InvalidArgument, "the news of form %s has to be of one thing", c.Form)
}

// answered returns the events of an answer that was settled on this node.
func (RecordOutcome) answered(s *State, a *events.FormAnswered) ([]events.Event, error) {
	evs := []events.Event{a}
	if a.By == s.ID { // its grants count as given from now on
		evs = append(evs, grantEvents(a.Grants)...)
	}
	return evs, nil
}

// answeredRemotely returns the events of an answer that was settled on another node. Values that are sealed there are
// dropped: they cannot be opened here, and must not be taken for values sealed here.
func answeredRemotely(s *State, answered *events.FormAnswered) ([]events.Event, error) {
	a := *answered
	if err := checkAnswerGrants(s, &a); err != nil {
		return nil, err
	}
	a.Values, _ = a.Values.Map(maskSealed) // the function returns no error, so neither does Map
	return []events.Event{&a}, nil
}

// checkForwarded refuses a forward by a grant that the agent did not make for it.
func checkForwarded(s *State, h events.FormForwarded) error {
	if own, ok := s.Grants.given.Get(h.Via); !ok || own.Target != h.To || own.Message != h.Form {
		return parley.Refuse(parley.NotPermitted, "the news of form %s is of a forward that was not wanted", h.Form)
	}
	return nil
}

// checkAnswerGrants refuses an answer from another node with grants that the agent did not make. A grant is recorded
// before its answer leaves.
func checkAnswerGrants(s *State, a *events.FormAnswered) error {
	for _, g := range a.Grants {
		if own, ok := s.Grants.given.Get(g.ID); !ok || own.Ref() != g.Ref() || own.To != g.To || own.Message != a.Form {
			return parley.Refuse(parley.NotPermitted, "the news of form %s is of a grant that was not made", a.Form)
		}
	}
	given := func(r capabilities.Ref) bool {
		return slices.ContainsFunc(a.Grants, func(g capabilities.Grant) bool { return g.Ref() == r })
	}
	if !visitRefs(a.Values, given) {
		return parley.Refuse(parley.NotPermitted, "the news of form %s brings what the agent has not given", a.Form)
	}
	return nil
}

// checkAnswered checks an answer by the rules of outcomeFor: only the answerer receives the values.
func (f *Form) checkAnswered(a *events.FormAnswered, holder capabilities.ID) error {
	mine := a.By == holder
	if a.Form != f.ID || a.By.IsZero() || a.Withheld == mine {
		return mismatchedOutcome(f)
	}
	if !mine {
		if !a.Values.IsNull() || len(a.Grants) > 0 {
			return mismatchedOutcome(f)
		}
		return nil
	}
	values, ok := a.Values.AsRecord()
	if !ok {
		return mismatchedOutcome(f)
	}
	if err := a.Values.Check(); err != nil {
		return err
	}
	return f.checkGrants(values, holder, a.Grants)
}

// mismatchedOutcome returns the error for an outcome of another form, or for another agent.
func mismatchedOutcome(f *Form) error {
	return parley.Refuse(parley.InvalidArgument, "this is no news of form %s for the agent that it came to", f.ID)
}

func (c RecordOutcome) cancelled(f *Form) ([]events.Event, error) {
	e := c.Cancelled
	known := []events.Reason{events.Cancelled, events.Declined, events.Expired, events.Superseded}
	if e.Form != f.ID || !slices.Contains(known, e.Reason) {
		return nil, mismatchedOutcome(f)
	}
	if err := checkText("a reason", e.Note, maxReason); err != nil || !f.IsOpen() {
		return nil, err
	}
	return []events.Event{e}, nil
}

func (c RecordOutcome) forwarded(s *State, f *Form, check func(events.FormForwarded) error) ([]events.Event, error) {
	var evs []events.Event
	for _, h := range c.Forwarded {
		if h.Form != f.ID || h.By != s.ID || h.To.IsZero() {
			return nil, mismatchedOutcome(f)
		}
		if slices.ContainsFunc(f.Forwarded, func(was events.FormForwarded) bool { return was.To == h.To && was.Via == h.Via }) {
			continue
		}
		if err := check(h); err != nil {
			return nil, err
		}
		evs = append(evs, &h)
		if n := len(f.Forwarded) + len(evs); n > MaxHolders {
			return nil, parley.Refuse(parley.TooLarge, "the form was handed on %d times", n)
		}
	}
	return evs, nil
}

// forwardedBy returns all forwards of the form by a holder.
func (f *Form) forwardedBy(by capabilities.ID) []events.FormForwarded {
	var handed []events.FormForwarded
	for _, h := range f.Forwarded {
		if h.By == by {
			handed = append(handed, h)
		}
	}
	return handed
}

// queuedForward returns the index of a queued forward by its grant; -1 if there is none.
func (f *Form) queuedForward(via capabilities.ID) int {
	return slices.IndexFunc(f.QueuedForwards, func(w events.ForwardQueued) bool { return w.Via == via })
}

func (f *Form) dropQueuedForward(via capabilities.ID) {
	if i := f.queuedForward(via); i >= 0 {
		f.QueuedForwards = slices.Delete(f.QueuedForwards, i, i+1)
	}
}

// wasForwarded reports whether the same forward was recorded before. Each forward from another node has its own grant.
func (f *Form) wasForwarded(c ForwardForm) bool {
	return !c.Via.IsZero() && slices.ContainsFunc(f.Forwarded, func(h events.FormForwarded) bool {
		return h.By == c.By && h.To == c.To && h.Via == c.Via
	})
}

// QueueForward records a forward in the forwarder's own log until the form's home, on another node, has decided on it.
// To is a path, ID or locator. The home gets a grant by which it can reach that agent.
type QueueForward struct {
	Form capabilities.FormRef
	To   string
}

func (c QueueForward) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	h, home, err := s.DraftForward(c.Form, c.To, now)
	if err != nil {
		return nil, err
	}
	ref, err := s.holder(capabilities.UseAsk, now).reach(c.To)
	if err != nil {
		return nil, err
	}
	if err := s.permit(ref, capabilities.UseGive, now); err != nil {
		return nil, err
	}
	return s.forwardBy(ref, h.Form, home, now, ids)
}

// forwardFacet narrows a facet to asking one form.
func forwardFacet(held capabilities.Facet) capabilities.Facet {
	return held.Narrow(capabilities.Facet{Mode: capabilities.AskOnly, Uses: 1})
}

// ForwardForm lets another agent answer a form, for a holder. It is decided at the form's home.
type ForwardForm struct {
	Form capabilities.ID
	By   capabilities.ID
	To   capabilities.ID
	Via  capabilities.ID // the grant by which the home can reach To; zero if it needs none
}

// MaxHolders bounds the agents that may answer one form.
const MaxHolders = 32

// DraftForward returns the command that forwards a form to another agent, and the form's home.
func (s *State) DraftForward(form capabilities.FormRef, to string, now capabilities.Time) (ForwardForm, capabilities.ID, error) {
	m, err := s.answerable(form)
	if err != nil {
		return ForwardForm{}, capabilities.ID{}, err
	}
	if m.Form.NoForward {
		return ForwardForm{}, capabilities.ID{}, parley.Refuse(parley.NotPermitted, "the asker forbade forwarding form %d", m.Number)
	}
	ref, err := s.holder(capabilities.UseAsk, now).reach(to)
	if err != nil {
		return ForwardForm{}, capabilities.ID{}, err
	}
	if ref.Facet.Uses != 0 && !ref.Grant.IsZero() { // the home asks then, and cannot count the agent's uses
		return ForwardForm{}, capabilities.ID{}, parley.Refuse(parley.NotPermitted, "a form cannot be forwarded by a reference for %d uses", ref.Facet.Uses)
	}
	h := ForwardForm{Form: m.Form.ID, By: s.ID, To: ref.Target, Via: s.Grants.presented(ref.Known(), ref.Target)}
	return h, m.Form.From, nil
}

// RemoteForward is a ForwardForm from another node. It needs a grant that was made there. Without one, the form would
// be sent by a grant of this node.
type RemoteForward struct{ ForwardForm }

func (c RemoteForward) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	evs, err := c.ForwardForm.decide(s, now, ids)
	if len(evs) > 0 && c.Via.Node != c.By.Node {
		return nil, parley.Refuse(parley.NotPermitted, "the form is forwarded by a grant that its holder's node has not made")
	}
	return evs, err
}

func (c ForwardForm) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	switch {
	case f.From != s.ID || !f.mayAnswer(c.By):
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not put to %s", c.Form, c.By)
	case f.wasForwarded(c):
		return nil, nil // its acknowledgement was lost
	case !f.IsOpen():
		return nil, f.endedForOthers()
	case f.NoForward:
		return nil, parley.Refuse(parley.NotPermitted, "the asker forbade forwarding the form")
	case c.To.IsZero():
		return nil, parley.Refuse(parley.InvalidArgument, "a form is forwarded to nobody")
	case c.To == s.ID:
		return nil, parley.Refuse(parley.NotPermitted, "a form cannot be forwarded to its asker")
	case f.mayAnswer(c.To):
		return nil, parley.Refuse(parley.NotPermitted, "%s has the form already", c.To)
	case len(f.Holders) >= MaxHolders:
		return nil, parley.Refuse(parley.TooLarge, "the form was handed on %d times", len(f.Holders)-1)
	}
	return []events.Event{&events.FormForwarded{Form: c.Form, By: c.By, To: c.To, Via: c.Via, Date: now}}, nil
}

// HasForwarded reports whether the agent has forwarded a form to another, or asked its home to. If the home is on
// another node, it looks for the grant that such a request makes. It fails with Absent.
func (s *State) HasForwarded(form, to capabilities.ID) (bool, error) {
	m, err := s.Mail.FindFormID(form)
	switch parley.CodeOf(err) {
	case "":
	case parley.NoSuchMessage, parley.NotAForm:
		return false, nil
	default:
		return false, err
	}
	if slices.ContainsFunc(m.Form.Forwarded, func(h events.FormForwarded) bool { return h.By == s.ID && h.To == to }) {
		return true, nil
	}
	return s.isRemote(m.Form.From) && s.Grants.given.Any(func(g capabilities.Grant) bool {
		return g.Message == form && g.Target == to && g.Facet == forwardFacet(g.Facet)
	}), nil
}
