package vote

import (
	"slices"

	"parley/capabilities"
	"parley/events"
)

// MostOf bounds the votes of one agent on one form, those that it withdrew or replaced among them.
const MostOf = 64

// Needs returns the number of principals that have to agree by a route, which may be nil.
func Needs(r *events.Route) int {
	if r == nil {
		return 1
	}
	return max(1, int(r.Need))
}

// Denies reports whether a vote is against what is asked.
func Denies(o events.VoteOutcome) bool {
	return o == events.VoteDeclined || o == "deny" || o == "never"
}

// Tally is the votes on a form. The zero value is that of a form without votes. Its methods never change a slice that
// they have returned.
type Tally struct {
	Standing []events.VoteCast // one of each principal, in the order in which they were cast
	Void     []events.VoteCast // those that the last amendment made void, and that were not cast anew
	Spent    []Spent           // the votes that do not stand any more
}

// Spent is a vote that was withdrawn or replaced, or that is void.
type Spent struct {
	By     capabilities.ID
	Answer capabilities.ID
}

// IsEmpty reports whether there was no vote.
func (t *Tally) IsEmpty() bool { return len(t.Standing)+len(t.Void)+len(t.Spent) == 0 }

// Knows reports whether the vote of an answer was cast before, whether it stands or not. The zero ID is of none.
func (t *Tally) Knows(answer capabilities.ID) bool {
	return !answer.IsZero() && (slices.ContainsFunc(t.Standing, func(v events.VoteCast) bool { return v.Answer == answer }) ||
		slices.ContainsFunc(t.Spent, func(s Spent) bool { return s.Answer == answer }))
}

// IsWithdrawn reports whether the vote of an agent's answer was cast and does not stand any more. The zero ID is of none.
func (t *Tally) IsWithdrawn(by, answer capabilities.ID) bool {
	v := t.Of(by)
	return t.Knows(answer) && (v == nil || v.Answer != answer)
}

// Of returns the standing vote of an agent; nil if there is none.
func (t *Tally) Of(by capabilities.ID) *events.VoteCast { return find(t.Standing, by) }

// VoidOf returns the vote of an agent that the last amendment made void; nil if there is none.
func (t *Tally) VoidOf(by capabilities.ID) *events.VoteCast { return find(t.Void, by) }

func find(votes []events.VoteCast, by capabilities.ID) *events.VoteCast {
	i := slices.IndexFunc(votes, func(v events.VoteCast) bool { return v.By == by })
	if i < 0 {
		return nil
	}
	return &votes[i]
}

// CastBy returns the number of votes that an agent has cast.
func (t *Tally) CastBy(by capabilities.ID) (n int) {
	for _, s := range t.Spent {
		if s.By == by {
			n++
		}
	}
	if t.Of(by) != nil {
		n++
	}
	return n
}

// Alike returns the number of standing votes for an outcome.
func (t *Tally) Alike(o events.VoteOutcome) (n int) {
	for _, v := range t.Standing {
		if v.Outcome == o {
			n++
		}
	}
	return n
}

// Most returns the largest number of standing votes for one outcome that is no denial.
func (t *Tally) Most() (n int) {
	for _, v := range t.Standing {
		if !Denies(v.Outcome) {
			n = max(n, t.Alike(v.Outcome))
		}
	}
	return n
}

// Denials returns the number of standing denials.
func (t *Tally) Denials() (n int) {
	for _, v := range t.Standing {
		if Denies(v.Outcome) {
			n++
		}
	}
	return n
}

// Cast adds a vote in place of those of its principal.
func (t *Tally) Cast(v events.VoteCast) {
	same := func(w events.VoteCast) bool { return w.Principal == v.Principal }
	t.drop(same)
	t.Void = slices.DeleteFunc(slices.Clone(t.Void), same)
	t.Standing = append(t.Standing, v)
}

// Withdraw removes the standing vote of an agent. It reports false if there is none, or another one than that of the
// answer.
func (t *Tally) Withdraw(e events.VoteWithdrawn) bool {
	v := t.Of(e.By)
	if v == nil || v.Answer != e.Answer {
		return false
	}
	t.drop(func(w events.VoteCast) bool { return w.By == e.By })
	return true
}

// Amend makes the votes on earlier revisions void.
func (t *Tally) Amend(revision uint64) {
	old := func(v events.VoteCast) bool { return v.Revision < revision }
	t.Void = nil
	for _, v := range t.Standing {
		if old(v) {
			t.Void = append(t.Void, v)
		}
	}
	t.drop(old)
}

// drop removes standing votes, which are spent then.
func (t *Tally) drop(gone func(events.VoteCast) bool) {
	var kept []events.VoteCast
	for _, v := range t.Standing {
		if gone(v) {
			t.Spent = append(slices.Clip(t.Spent), Spent{By: v.By, Answer: v.Answer})
		} else {
			kept = append(kept, v)
		}
	}
	t.Standing = kept
}

// Settles reports whether a vote ends the form. Left is the number of principals that may still vote, without those whose
// votes stand and that of this vote. It changes nothing.
func (t *Tally) Settles(r *events.Route, v events.VoteCast, left int) bool {
	after := *t
	after.Cast(v)
	switch {
	case !Denies(v.Outcome):
		return after.Alike(v.Outcome) >= Needs(r)
	case r == nil || !r.NoVeto:
		return true
	}
	return after.Most()+left < Needs(r)
}
