package mailbox

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/vote"
)

// RecordOutcome records the progress of a form that the mailbox has a copy of: its answer, its other end, or all
// forwards by the mailbox's agent. Exactly one of the three is set. It comes from a mailbox of this node.
type RecordOutcome struct {
	Form      capabilities.ID
	Answered  *events.FormAnswered
	Cancelled *events.FormCancelled
	Forwarded []events.FormForwarded

	Signed *events.DecisionSigned // of the answer, for who gave it; nil for none. It is not sent to another node, which has it
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
	c.RecordOutcome = c.clampDates(now)
	if err := c.checkEnd(s.ID); err != nil {
		return nil, err
	}
	if a := c.Answered; a != nil {
		if err := cmp.Or(m.Form.checkAnswered(a, s.ID), checkAnswerGrants(s, a)); err != nil {
			return nil, err
		}
	}
	own, err := s.confirmOwn(c, nil)
	if err != nil {
		return nil, err
	}
	c = own.(RemoteOutcome)
	return c.record(s, m.Form, answeredRemotely, func(h events.FormForwarded) error { return checkForwarded(s, m.Form, h) })
}

// checkEnd refuses an end that the asker cannot tell: one by another agent than may bring it about, and the ID of a
// settlement that is not the receiver's.
func (c RemoteOutcome) checkEnd(receiver capabilities.ID) error {
	wrong := false
	switch a, e := c.Answered, c.Cancelled; {
	case a != nil:
		mine := a.By == receiver
		wrong = a.By.IsZero() || a.Withheld == mine || !mine && (!a.Answer.IsZero() || !isShared(a.Values) || len(a.Grants) > 0)
	case e != nil && e.Reason == events.Declined:
		wrong = e.By.IsZero() || e.By != receiver && !e.Answer.IsZero()
	case e != nil && e.Reason == events.Expired:
		wrong = !e.By.IsZero() || !e.Answer.IsZero()
	case e != nil:
		wrong = e.By != c.Home || !e.Answer.IsZero()
	}
	if wrong {
		return parley.Refuse(parley.NotPermitted, "form %s did not end as its asker says", c.Form)
	}
	return nil
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
		evs, err := answered(s, c.Answered)
		if c.Signed != nil && Signed(f) == nil && err == nil { // an answer that was queued has it
			evs = slices.Insert(evs, 0, events.Event(c.Signed))
		}
		return evs, err
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
func answeredRemotely(_ *State, answered *events.FormAnswered) ([]events.Event, error) {
	a := *answered
	a.Values, _ = a.Values.Map(maskSealed) // the function returns no error, so neither does Map
	return []events.Event{&a}, nil
}

// checkForwarded refuses a forward that the agent did not queue: by another grant, to another agent, or for another cause.
func checkForwarded(s *State, f *Form, h events.FormForwarded) error {
	if err := checkCause(h.Because); err != nil {
		return err
	}
	own, ok := s.Grants.given.Get(h.Via)
	if i := f.Queued().forward(h.Via); !ok || own.Target != h.To || own.Message != h.Form || i < 0 || f.Queued().Forwards[i].Because != h.Because {
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

// sharedDecision returns what of an answer those learn who did not give it: of a call that several decide, whether it was allowed. Else
// who has voted could not know whether that was followed.
func (f *Form) sharedDecision(a *events.FormAnswered) capabilities.Value {
	decision, _ := ReadDecision(a.Values)
	if f.Kind != events.Approval || vote.Needs(f.Route) == 1 || decision == "" {
		return capabilities.Null()
	}
	return capabilities.Record(map[string]capabilities.Value{decisionField: capabilities.String(decision)})
}

// isShared reports whether a value is what sharedDecision may return.
func isShared(v capabilities.Value) bool {
	decision, _ := ReadDecision(v)
	return v.IsNull() || (decision == Once || decision == Deny) && v.Equal(capabilities.Record(map[string]capabilities.Value{decisionField: capabilities.String(decision)}))
}

// checkAnswered checks an answer by the rules of outcomeFor: only the answerer receives the values.
func (f *Form) checkAnswered(a *events.FormAnswered, holder capabilities.ID) error {
	mine := a.By == holder
	if a.Form != f.ID || a.By.IsZero() || a.Withheld == mine {
		return mismatchedOutcome(f)
	}
	if !mine {
		if !a.Values.Equal(f.sharedDecision(a)) || len(a.Grants) > 0 {
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
		if slices.ContainsFunc(f.Forwarded(), func(was events.FormForwarded) bool { return was.To == h.To && was.Via == h.Via }) {
			continue
		}
		if err := check(h); err != nil {
			return nil, err
		}
		evs = append(evs, &h)
		if n := len(f.Forwarded()) + len(evs); n > MaxHolders {
			return nil, parley.Refuse(parley.TooLarge, "the form was handed on %d times", n)
		}
	}
	return evs, nil
}

// checkOpen refuses a form that has ended for an agent that may answer it. It says whether that agent's vote counted.
func (f *Form) checkOpen(by capabilities.ID, now capabilities.Time) error {
	switch {
	case !f.IsOpen():
		return f.late(f.endedForOthers(), by)
	case f.isExpired(now): // ExpireForms has not run yet
		return parley.Refuse(parley.AlreadyExpired, "the form expired at %s", f.Deadline)
	}
	return nil
}

// late returns the error for a form that has ended, with a hint on whether the agent's vote counted.
func (f *Form) late(err error, by capabilities.ID) error {
	e, refused := errors.AsType[*parley.Error](err)
	switch {
	case !refused || vote.Needs(f.Route) == 1:
		return err
	case f.Counted(by):
		return e.WithHint("your vote counted")
	}
	return e.WithHint("your answer does not count: the form had ended")
}

// Counted reports whether the answer of an agent is among those that decided the form.
func (f *Form) Counted(by capabilities.ID) bool {
	v := f.Votes().Of(by)
	switch {
	case f.IsOpen():
		return false
	case f.endedBy() == by:
		return true
	case v == nil || f.Ended != nil && f.Ended.Reason != events.Declined:
		return false
	case f.Ended != nil:
		return vote.Denies(v.Outcome)
	case f.Kind == events.Approval:
		decision, _ := ReadDecision(f.Answered.Values)
		return v.Outcome == events.VoteOutcome(decision)
	}
	return !vote.Denies(v.Outcome)
}
