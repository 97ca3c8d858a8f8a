package mailbox

import (
	"errors"
	"fmt"
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
	return checkCause(h.Because)
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

// RecordVotes records the votes that stand on a form in a copy of it. They come from the form's home on this node, which
// sends those that its last amendment made void too: the copy may not know of that yet. Votes on a form that has ended
// have no effect.
type RecordVotes struct {
	Form  capabilities.ID
	Votes []events.VoteCast
}

// RemoteVotes is a RecordVotes from another node. Home is its sender there.
type RemoteVotes struct {
	RecordVotes

	Home capabilities.ID
}

// votesFor returns the votes as a holder may see them. Only the voter sees the ID of its answer.
func (f *Form) votesFor(holder capabilities.ID) Command {
	c := RecordVotes{Form: f.ID, Votes: slices.Concat(f.Votes().Void, f.Votes().Standing)}
	for i := range c.Votes {
		if c.Votes[i].By != holder {
			c.Votes[i].Answer = capabilities.ID{}
		}
	}
	return c
}

// events returns the votes as events.
func (c RecordVotes) events() []events.Event {
	if len(c.Votes) == 0 {
		return []events.Event{&events.VoteWithdrawn{Form: c.Form}}
	}
	evs := make([]events.Event, len(c.Votes))
	for i := range c.Votes {
		evs[i] = &c.Votes[i]
	}
	return evs
}

// unpackVotes returns the command of a delivery of votes, or of the withdrawal of one.
func unpackVotes(evs []events.Event, from capabilities.ID, kind events.OutboxKind) (Command, capabilities.ID, bool) {
	if w, ok := evs[0].(*events.VoteWithdrawn); ok {
		if w.By.IsZero() {
			return RemoteVotes{RecordVotes: RecordVotes{Form: w.Form}, Home: from}, from, kind == events.OutboxVotes && len(evs) == 1
		}
		return RemoteWithdrawal{WithdrawVote{Form: w.Form, By: w.By, Answer: w.Answer}}, w.By, kind == events.OutboxWithdrawal
	}
	c := RemoteVotes{Home: from}
	for _, e := range evs {
		v, ok := e.(*events.VoteCast)
		if !ok {
			return nil, from, false
		}
		c.Form, c.Votes = v.Form, append(c.Votes, *v)
	}
	return c, from, kind == events.OutboxVotes
}

func (c RecordVotes) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	if f.From == s.ID {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was asked here", c.Form)
	}
	if !f.IsOpen() {
		return nil, nil
	}
	var evs []events.Event
	for _, v := range f.Votes().Standing {
		if !slices.ContainsFunc(c.Votes, func(w events.VoteCast) bool { return w.Principal == v.Principal }) {
			evs = append(evs, &events.VoteWithdrawn{Form: c.Form, By: v.By, Date: now, Answer: v.Answer})
		}
	}
	for _, v := range c.Votes {
		if v.Revision >= f.Revision() && !slices.Contains(f.Votes().Standing, v) {
			evs = append(evs, &v)
		}
	}
	return evs, nil
}

func (c RemoteVotes) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.From != c.Home {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not asked by the one who tells of its votes", c.Form)
	}
	if vote.Needs(m.Form.Route) == 1 && len(c.Votes) > 0 || len(c.Votes) > MaxHolders {
		return nil, parley.Refuse(parley.InvalidArgument, "%d votes on form %s, which needs %d", len(c.Votes), c.Form, vote.Needs(m.Form.Route))
	}
	seen := map[capabilities.ID]bool{} // principals and agents
	for i := range c.Votes {
		v := &c.Votes[i]
		if v.Form != c.Form || v.By.IsZero() || v.Principal.IsZero() || seen[v.Principal] || seen[v.By] && v.By != v.Principal || v.Revision == 0 || v.Revision > maxRevision || !m.Form.canDecide(v.Outcome) ||
			v.By != s.ID && !v.Answer.IsZero() {
			return nil, parley.Refuse(parley.InvalidArgument, "a vote on form %s that cannot be one", c.Form)
		}
		if err := checkText("a reason", v.Note, maxReason); err != nil {
			return nil, err
		}
		seen[v.Principal], seen[v.By] = true, true
	}
	return c.RecordVotes.decide(s, now, ids)
}

// WithdrawVote takes the vote of an agent back, before the form ends. It is decided at the form's home. Answer, if it is
// set, is that of the vote.
type WithdrawVote struct {
	Form   capabilities.ID
	By     capabilities.ID
	Answer capabilities.ID
}

// RemoteWithdrawal is a WithdrawVote from another node. It may come twice, so it needs an Answer.
type RemoteWithdrawal struct{ WithdrawVote }

// DraftWithdrawal returns the command that takes the agent's vote on a form back, and the form's home.
func (s *State) DraftWithdrawal(ref capabilities.FormRef) (WithdrawVote, capabilities.ID, error) {
	m, err := s.answerable(ref)
	if err != nil {
		return WithdrawVote{}, capabilities.ID{}, err
	}
	c := WithdrawVote{Form: m.Form.ID, By: s.ID}
	if s.isRemote(m.Form.From) {
		v := m.Form.Votes().Of(s.ID)
		if v == nil {
			return c, m.Form.From, noVote(fmt.Sprintf("form %d", m.Number))
		}
		c.Answer = v.Answer
	}
	return c, m.Form.From, nil
}

func noVote(what string) error {
	return parley.Refuse(parley.InvalidArgument, "%s has no vote of this agent", what)
}

func (c WithdrawVote) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	if err := checkHolder(f, s.ID, c.By); err != nil {
		return nil, err
	}
	if f.Votes().IsWithdrawn(c.By, c.Answer) {
		return nil, nil // its acknowledgement was lost
	}
	if err := f.checkOpen(c.By, now); err != nil {
		return nil, err
	}
	v := f.Votes().Of(c.By)
	if v == nil || !c.Answer.IsZero() && v.Answer != c.Answer {
		return nil, noVote("the form")
	}
	return []events.Event{&events.VoteWithdrawn{Form: c.Form, By: c.By, Date: now, Answer: v.Answer}}, nil
}

func (c RemoteWithdrawal) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if c.Answer.IsZero() {
		return nil, parley.Refuse(parley.InvalidArgument, "the withdrawal of a vote names none")
	}
	return c.WithdrawVote.decide(s, now, ids)
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
	case f.Kind == events.Approval && !f.Answered.Withheld:
		decision, _ := ReadDecision(f.Answered.Values)
		return v.Outcome == events.VoteOutcome(decision)
	}
	return !vote.Denies(v.Outcome)
}

// voteCast folds a vote in. At the form's home, the votes are enqueued for every holder. In the voter's copy, the vote
// takes the place of the queued answer and of the draft.
func (f fold) voteCast(e *events.VoteCast) error {
	m, err := f.votedForm(e.Form)
	if err != nil {
		return err
	}
	m.Form.votes.edit().Cast(*e)
	if e.By == f.ID {
		f.Grants.Answers.Count(e.Form)
	}
	if m.Form.From == f.ID || e.By != f.ID {
		return nil
	}
	if q := m.Form.Queued().Answer; q != nil && q.Answer == e.Answer && q.Reason != events.Withdrawn {
		f.Outbox.dropAnswer(m.Form)
		m.Form.queued.edit().Answer = nil
	}
	if m.Form.Draft != nil {
		m.Form.Draft = nil
		f.Mail.drafts--
	}
	return nil
}

// voteWithdrawn folds the withdrawal of a vote in. In the voter's copy, it takes the place of the queued one.
func (f fold) voteWithdrawn(e *events.VoteWithdrawn) error {
	m, err := f.votedForm(e.Form)
	if err != nil {
		return err
	}
	if !m.Form.votes.edit().Withdraw(*e) {
		return fmt.Errorf("%w: no vote of %s on form %s to withdraw", ErrNonsense, e.By, e.Form)
	}
	if q := m.Form.Queued().Answer; e.By == f.ID && q != nil && q.Reason == events.Withdrawn && q.Answer == e.Answer {
		f.Outbox.dropAnswer(m.Form)
		m.Form.queued.edit().Answer = nil
	}
	return nil
}

// votedForm returns the open form of an event about its votes, which it notes.
func (f fold) votedForm(id capabilities.ID) (*Message, error) {
	m, err := f.Mail.openForm(id)
	if err != nil {
		return nil, err
	}
	f.Mail.touch(m, f.Version)
	f.Mail.Index.entries.Note(m.Number, f.Version)
	if m.Form.From == f.ID {
		for _, h := range m.Form.Holders {
			f.Outbox.enqueue(events.OutboxVotes, id, h)
		}
	}
	return m, nil
}

// answerAccepted drops the queued answer to a form that needs several, or the withdrawal of it. Its home has recorded
// that.
func (f fold) answerAccepted(p OutboxItem) {
	m, err := f.Mail.form(p.Subject)
	if err == nil && m.Form.IsOpen() && m.Form.Queued().Answer != nil && vote.Needs(m.Form.Route) > 1 {
		f.Mail.touch(m, f.Version)
		m.Form.queued.edit().Answer = nil
	}
}
