package mailbox

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/vote"
)

// A node proves by its signature what its own agents say. What it says of the agents of this node is a report: that one of
// them answered a form, voted on it, forwarded it, or was asked it before. It is recorded as the agent's deed only if the
// agent's own log confirms it. An agent's answer is in its log before it leaves for the form's home. So a true report is
// always confirmed, unless the log was restored from a backup.
//
// What a node says of agents of a third node cannot be looked up here. It is the asker's word.

// Report is what a delivery of another node says that an agent of this node did with a form. Event is the deed:
// FormAnswered, FormCancelled, VoteCast, VoteWithdrawn, FormForwarded and FormClaimed, or FormRequested for an agent that was asked. It is
// MessageUnreached for an agent that a message of the receiver is said not to have reached.
type Report struct {
	Agent capabilities.ID
	Event events.Event
}

// Confirmed returns a delivery without what the logs of agents do not confirm: see unconfirmed. The agents are those of the
// receiver's node, but for the receiver. Standing has the votes on the form that stand in the receiver's mailbox: a
// delivery of votes without one of them says that it was withdrawn. Confirms asks the agent's mailbox, and an error of it is
// returned. Confirmed refuses what no asker can say, as deciding the delivery does.
func Confirmed(c Command, receiver capabilities.ID, standing []events.VoteCast, confirms func(Report) (bool, error)) (Command, error) {
	var err error
	switch c := c.(type) {
	case RemoteOutcome:
		err = c.checkEnd(receiver)
	case RemoteVotes:
		err = c.checkPrincipals()
	}
	if err != nil {
		return nil, err
	}
	return confirmed(c, receiver, standing, func(r Report) (bool, error) {
		if r.Agent.Node != receiver.Node || r.Agent == receiver {
			return true, nil
		}
		return confirms(r)
	})
}

// confirmOwn is Confirmed for what a delivery says of the agent itself.
func (s *State) confirmOwn(c Command, standing []events.VoteCast) (Command, error) {
	return confirmed(c, s.ID, standing, func(r Report) (bool, error) {
		if r.Agent != s.ID {
			return true, nil
		}
		return s.Confirms(r)
	})
}

func confirmed(c Command, receiver capabilities.ID, standing []events.VoteCast, confirms func(Report) (bool, error)) (Command, error) {
	for again := true; again; {
		again = false
		for _, r := range reports(c, receiver, standing) {
			ok, err := confirms(r)
			if err == nil && !ok {
				c, err = unconfirmed(c, r)
				again = true
			}
			if err != nil {
				return nil, err
			}
			if again { // it says something else now
				break
			}
		}
	}
	return c, nil
}

// reports returns what a delivery says of agents of any node.
func reports(c Command, receiver capabilities.ID, standing []events.VoteCast) (all []Report) {
	switch c := c.(type) {
	case RemoteDelivery:
		if c.Form == nil || len(c.Form.Chain) > MaxHolders {
			return nil // the mailbox refuses such a chain
		}
		if steps := c.Form.Steps.List(); len(steps) > 0 && steps[0].Cause == events.Escalated {
			all = append(all, Report{steps[0].By, &events.FormRequested{ID: c.Form.ID}})
		}
		for i, by := range c.Form.Chain {
			next := receiver
			if i+1 < len(c.Form.Chain) {
				next = c.Form.Chain[i+1]
			}
			all = append(all, Report{by, &events.FormForwarded{Form: c.Form.ID, By: by, To: next}})
		}
	case RemoteOutcome:
		switch {
		case c.Answered != nil:
			all = append(all, Report{c.Answered.By, c.Answered})
		case c.Cancelled != nil && !c.Cancelled.By.IsZero():
			all = append(all, Report{c.Cancelled.By, c.Cancelled})
		}
	case RemoteUnreached:
		for i := range c.Agents {
			e := c.Agents[i]
			e.Message, e.By = c.Message, c.By
			all = append(all, Report{e.Agent, &e})
		}
	case RemoteVotes:
		for i := range c.Votes {
			all = append(all, Report{c.Votes[i].By, &c.Votes[i]})
		}
		for _, v := range standing {
			if !c.has(v) && !slices.Contains(c.Kept, v.By) {
				all = append(all, Report{v.By, &events.VoteWithdrawn{Form: v.Form, By: v.By, Answer: v.Answer}})
			}
		}
	case RemoteClaim:
		for _, by := range []capabilities.ID{c.Claim.By, c.Claim.Was} {
			if !by.IsZero() {
				all = append(all, Report{by, &events.FormClaimed{Form: c.Claim.Form, By: by}})
			}
		}
	}
	return all
}

// has reports whether a vote of the same principal is among those of the delivery.
func (c RecordVotes) has(v events.VoteCast) bool {
	return slices.ContainsFunc(c.Votes, func(w events.VoteCast) bool { return w.Principal == v.Principal })
}

// unconfirmed returns a delivery without a report that the agent's log does not confirm. It refuses with NOT_PERMITTED a
// form that the agent is said to have forwarded: nothing shows why it came then. A form that ended by such a deed was ended
// by its asker. An escalated form was put to its receiver. Nobody is on a form that the agent is said to be on.
func unconfirmed(c Command, r Report) (Command, error) {
	switch e := r.Event.(type) {
	case *events.FormForwarded:
		return nil, parley.Refuse(parley.NotPermitted, "the form says that an agent of this node forwarded it, which it did not")
	case *events.FormRequested:
		d := c.(RemoteDelivery)
		d.Form = new(*d.Form)
		rest := events.CopySteps(d.Form.Steps.List()[1:])
		if d.Form.Steps = &rest; len(rest) == 0 {
			d.Form.Steps = nil
		}
		return d, nil
	case *events.FormAnswered:
		return c.(RemoteOutcome).endedByAsker(e.Date), nil
	case *events.FormCancelled:
		return c.(RemoteOutcome).endedByAsker(e.Date), nil
	case *events.VoteCast:
		votes := c.(RemoteVotes)
		votes.Votes = slices.DeleteFunc(slices.Clone(votes.Votes), func(v events.VoteCast) bool { return v.By == e.By })
		votes.Kept = append(slices.Clip(votes.Kept), e.By)
		return votes, nil
	case *events.VoteWithdrawn:
		votes := c.(RemoteVotes)
		votes.Kept = append(slices.Clip(votes.Kept), e.By)
		return votes, nil
	case *events.MessageUnreached:
		missed := c.(RemoteUnreached)
		missed.Agents = slices.DeleteFunc(slices.Clone(missed.Agents), func(u events.MessageUnreached) bool { return u.Agent == e.Agent })
		return missed, nil
	case *events.FormClaimed:
		claim := c.(RemoteClaim)
		if claim.Claim.Was = (capabilities.ID{}); e.By == claim.Claim.By {
			claim.Claim.By, claim.Claim.Until = claim.Home, 0 // nobody is on it
		}
		return claim, nil
	}
	return c, nil
}

// unconfirmedNote is the comment on a form that ended by an unconfirmed report.
const unconfirmedNote = "says that an agent of this node ended it, which the log of that agent does not have"

// endedByAsker returns the end of the form by its asker.
func (c RemoteOutcome) endedByAsker(at capabilities.Time) RemoteOutcome {
	c.Answered, c.Cancelled = nil, &events.FormCancelled{Form: c.Form, Reason: events.Cancelled, By: c.Home, Note: unconfirmedNote, Date: at}
	return c
}

// Confirms reports whether the agent's log has what is reported of the agent. It fails with PagedOut.
func (s *State) Confirms(r Report) (bool, error) {
	switch e := r.Event.(type) {
	case *events.FormForwarded:
		return s.HasForwarded(e.Form, e.To)
	case *events.MessageUnreached:
		return s.isUnreached(e)
	}
	m, err := s.Mail.FindFormID(reportedForm(r.Event))
	switch parley.CodeOf(err) {
	case "":
	case parley.NoSuchMessage, parley.NotAForm:
		return false, nil
	default:
		return false, err
	}
	f := m.Form
	switch e := r.Event.(type) {
	case *events.FormRequested:
		return true, nil
	case *events.FormClaimed:
		return slices.Contains(f.passed.get().Claims.By, s.ID), nil
	case *events.FormAnswered:
		return f.Answered != nil && f.Answered.By == s.ID && (e.Values.IsNull() || !e.Withheld || e.Values.Equal(f.sharedDecision(f.Answered))) || f.hasSaid(func(q events.AnswerQueued) bool { return q.Reason == "" && f.isPresent(q) && f.answers(q, e) }), nil
	case *events.FormCancelled:
		declined := func(q events.AnswerQueued) bool {
			return q.Reason == events.Declined && f.isPresent(q) && q.Note == e.Note && (e.Answer.IsZero() || q.Answer == e.Answer)
		}
		return e.Reason == events.Declined && (f.Ended != nil && f.Ended.By == s.ID && f.Ended.Note == e.Note || f.hasSaid(declined)), nil
	case *events.VoteCast:
		return f.hasVoted(*e) || f.hasSaid(func(q events.AnswerQueued) bool { return f.isVote(q, *e) }), nil
	case *events.VoteWithdrawn:
		stands := f.Votes().Of(s.ID)
		spent := func(v vote.Spent) bool { return v.By == s.ID }
		return stands == nil && slices.ContainsFunc(f.Votes().Spent, spent) ||
			f.hasSaid(func(q events.AnswerQueued) bool {
				return q.Reason == events.Withdrawn && (stands == nil || q.Answer == stands.Answer)
			}), nil
	}
	return false, nil
}

// reportedForm returns the form of a report but that of a forward.
func reportedForm(e events.Event) capabilities.ID {
	switch e := e.(type) {
	case *events.FormRequested:
		return e.ID
	case *events.FormAnswered:
		return e.Form
	case *events.FormCancelled:
		return e.Form
	case *events.VoteCast:
		return e.Form
	case *events.VoteWithdrawn:
		return e.Form
	case *events.FormClaimed:
		return e.Form
	}
	return capabilities.ID{}
}

// hasSaid reports whether something that the agent said to the form's home is such a thing. A vote that the home has replaced or
// taken back since is not said any more.
func (f *Form) hasSaid(such func(events.AnswerQueued) bool) bool {
	isSpent := func(q events.AnswerQueued) bool {
		return q.Reason != events.Withdrawn && slices.ContainsFunc(f.Votes().Spent, func(v vote.Spent) bool { return v.Answer == q.Answer })
	}
	return slices.ContainsFunc(f.Queued().Said, func(q events.AnswerQueued) bool { return such(q) && !isSpent(q) })
}

// isPresent reports whether something that was said is about the question as it is now. The form's home takes nothing else,
// and changes no question that was answered. So an answer to an earlier question is never what ended the form.
func (f *Form) isPresent(q events.AnswerQueued) bool { return max(q.Revision, 1) == f.Revision() }

// answers reports whether an answer is the reported one. Of one that is withheld, the decision alone may be told.
func (f *Form) answers(q events.AnswerQueued, e *events.FormAnswered) bool {
	if e.Withheld {
		return e.Values.IsNull() || e.Values.Equal(f.sharedDecision(&events.FormAnswered{Values: q.Values}))
	}
	said, _ := q.Values.Map(maskSealed) // maskSealed returns no error, so Map does not
	told, _ := e.Values.Map(maskSealed)
	return q.Answer == e.Answer && said.Equal(told)
}

// hasVoted reports whether a vote is among those of its agent that were confirmed before.
func (f *Form) hasVoted(v events.VoteCast) bool {
	votes := slices.Concat(f.Votes().Standing, f.Votes().Void)
	return slices.ContainsFunc(votes, func(w events.VoteCast) bool {
		return w.By == v.By && w.Outcome == v.Outcome && w.Note == v.Note && w.Revision == v.Revision && w.Digest == v.Digest && (v.Answer.IsZero() || w.Answer == v.Answer)
	})
}

// isVote reports whether an answer of the agent makes a vote.
func (f *Form) isVote(q events.AnswerQueued, v events.VoteCast) bool {
	if q.Reason == events.Withdrawn || !v.Answer.IsZero() && q.Answer != v.Answer || max(q.Revision, 1) != v.Revision ||
		v.Revision == f.Revision() && v.Digest != f.QuestionDigest() {
		return false
	}
	outcome, note := f.voteOf(q.Reason, q.Note, q.Values)
	return v.Outcome == outcome && v.Note == note
}

// voteOf returns what an answer or decline is for as a vote, and the comment on it.
func (f *Form) voteOf(reason events.Reason, note string, values capabilities.Value) (events.VoteOutcome, string) {
	if reason != "" {
		return events.VoteDeclined, note
	}
	if f.Kind == events.Approval {
		decision, why := ReadDecision(values)
		return events.VoteOutcome(decision), parley.Shown(why, maxReason/4)
	}
	return events.VoteAnswered, note
}

// reportedOn returns the message of the agent's that a recipient of it reports on. It refuses a report of any other with NOT_PERMITTED.
func reportedOn(s *State, message, by capabilities.ID) (*Message, error) {
	m, err := s.Mail.byOwnID(message)
	if err != nil {
		return nil, err
	}
	if m.Posted == nil || m.From() != s.ID || !m.isFor(by) {
		return nil, parley.Refuse(parley.NotPermitted, "message %s was not sent to the one who reports on it", message)
	}
	if m.Posted.Original.IsZero() {
		return m, nil
	}
	return s.Mail.byOwnID(takenID(m.Posted))
}
