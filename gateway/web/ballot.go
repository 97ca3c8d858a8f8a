package web

import (
	"fmt"
	"strings"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// ballotLine is one who was asked for a vote, and what has become of it.
type ballotLine struct {
	Who   party
	You   bool
	As    string // of the reader's line: the name of the agent as which it votes; "" for itself
	State string // your-turn, good, bad, waits or void
	Words string
	At    capabilities.Time // of the vote, or when it was asked; 0 if that is not known
	Note  string
}

// Icon returns the icon of the line's state.
func (b ballotLine) Icon() string {
	return map[string]string{"your-turn": "wait", "good": "check", "bad": "x", "waits": "clock", "void": "undo"}[b.State]
}

// Ballot returns everyone of whom the reader's mailbox knows that they were asked, each once: the reader, who has voted, and whose
// votes are to come. None for a form that needs one answer.
func (c card) Ballot() (all []ballotLine) {
	v := c.Votes
	if v == nil || v.Need < 2 {
		return nil
	}
	seen := map[capabilities.ID]bool{}
	add := func(l ballotLine, id capabilities.ID) {
		if seen[id] {
			return
		}
		seen[id] = !id.IsZero()
		all = append(all, l)
	}
	for _, cast := range v.Cast {
		if c.isOwn(cast.By) {
			add(c.castLine(cast), c.Own)
		}
	}
	if !c.Sent {
		add(c.ownLine(), c.Own)
	}
	for _, cast := range v.Cast {
		add(c.castLine(cast), cast.By)
	}
	for _, a := range c.Asked() {
		l := ballotLine{Who: partyOf(a.ID, a.Name), State: "waits", Words: "No answer yet", At: a.At}
		if c.Outcome != nil { // it may have voted for another answer, which nobody else is told
			l.State, l.Words = "void", "No vote that counted"
		}
		add(l, a.ID)
	}
	return all
}

// isOwn reports whether an agent is the one that has the message.
func (c card) isOwn(id capabilities.ID) bool { return !id.IsZero() && id == c.Own }

// castLine returns the line of a vote.
func (c card) castLine(v view.Vote) ballotLine {
	l := ballotLine{Who: partyOf(v.By, v.ByName), You: c.isOwn(v.By), As: c.As, State: "good", Words: "Answered", At: v.At, Note: v.Note}
	switch v.Outcome {
	case events.VoteDeclined:
		l.State, l.Words = "bad", "Declined"
	case mailbox.Deny, mailbox.Never:
		l.State, l.Words = "bad", "Denied"
	case mailbox.Once, mailbox.Always:
		l.Words = "Approved"
	}
	if v.Void {
		l.State, l.Words = "void", l.Words+" the question before"
	}
	return l
}

// OpenVotes returns whose votes are still to come, as far as the reader's mailbox knows.
func (c card) OpenVotes() []view.Party { return c.WaitsFor(c.Votes) }

// OwnVote returns what the reader's vote is for, as in "approved".
func (c card) OwnVote() string {
	for _, v := range c.Votes.Cast {
		if c.isOwn(v.By) {
			return strings.ToLower(c.castLine(v).Words)
		}
	}
	return "answered"
}

// ownLine returns the reader's line before its vote is among those that were cast.
func (c card) ownLine() ballotLine {
	l := ballotLine{You: true, As: c.As, State: "waits", Words: "No answer yet"}
	if c.Outcome != nil {
		l.State, l.Words = "void", "You did not answer"
	}
	switch {
	case c.Votes.Own == view.VoteMissed:
		l.State, l.Words = "void", "Does not count"
	case c.Votes.Own == view.VoteVoid:
		l.State, l.Words = "your-turn", "The question has changed: answer again"
	case c.Votes.Own != "":
		l.State, l.Words = "good", "You answered"
	case c.Waits():
		l.State, l.Words = "your-turn", "Your turn"
	}
	return l
}

// VoteWords returns how many votes there are, in words.
func (c card) VoteWords() string {
	if c.IsApproval() {
		return "approvals"
	}
	return "answered"
}

// VoteRule returns what ends the form, in words.
func (c card) VoteRule() string {
	if c.Votes.Veto {
		return "One denial ends it"
	}
	return fmt.Sprintf("%d of those who are asked", c.Votes.Need)
}

// Meter returns, for each vote that is needed, whether there is one.
func (c card) Meter() []bool {
	bars := make([]bool, min(c.Votes.Need, 8))
	for i := range bars {
		bars[i] = uint32(i) < c.Votes.Have
	}
	return bars
}
