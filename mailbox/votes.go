package mailbox

import (
	"fmt"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/vote"
)

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
	Kept []capabilities.ID // agents of this node whose votes stand though the delivery lacks them: their logs have no withdrawal
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
	return c.record(s, nil, now)
}

// record returns the events of the votes. Those of some agents are kept.
func (c RecordVotes) record(s *State, kept []capabilities.ID, now capabilities.Time) ([]events.Event, error) {
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
		if !c.has(v) && !slices.Contains(kept, v.By) {
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

func (c RemoteVotes) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
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
	if err := c.checkPrincipals(); err != nil {
		return nil, err
	}
	own, err := s.confirmOwn(c, m.Form.Votes().Standing)
	if err != nil {
		return nil, err
	}
	c = own.(RemoteVotes)
	return c.record(s, c.Kept, now)
}

// checkPrincipals refuses a vote whose principal is not the voter's node, and one for another agent of another node. The home
// knows the hosts of its own agents alone.
func (c RemoteVotes) checkPrincipals() error {
	for _, v := range c.Votes {
		elsewhere := v.By.Node != c.Home.Node
		if elsewhere && v.Principal != (capabilities.ID{Node: v.By.Node}) || !v.Person.IsZero() && (elsewhere || v.Person.Node != c.Home.Node) {
			return parley.Refuse(parley.InvalidArgument, "a vote on form %s for another node than the voter's", c.Form)
		}
	}
	return nil
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

// voteCast folds a vote in. At the form's home, the votes are enqueued for every holder. In the voter's copy, the vote
// takes the place of the queued answer and of the draft.
func (f fold) voteCast(e *events.VoteCast) error {
	m, err := f.votedForm(e.Form)
	if err != nil {
		return err
	}
	was := m.Form.Votes().Of(e.By)
	again := was != nil && was.Revision == e.Revision && was.Outcome == e.Outcome && was.Note == e.Note
	if e.By == f.ID && !again {
		f.Grants.Answers.Count(e.Form)
	}
	noteVote(m.Form, e)
	endClaim(m.Form, e.By)
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
	if e.By == f.ID {
		f.Grants.Answers.Discount(e.Form)
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
