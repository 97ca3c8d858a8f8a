package mailbox

import (
	"slices"
	"time"

	"parley/capabilities"
	"parley/events"
)

// A model that is held by a hook cannot reply. So a question about its call ends the approval without a decision: the hook withdraws it, and
// the model reads the question, replies, and makes the call again, often with another input:
//
//	approval 1: git push              asked back: "which branch?"   withdrawn
//	reply of the agent: "main"
//	approval 2: git push origin main  replies to approval 1, and is in its thread
//
// Which call that is follows from what is known of both: never from words.

// questionedCall is an approval that its asker withdrew while somebody waited for its reply. The call made again joins its thread.
type questionedCall struct {
	Thread  capabilities.ID // its first approval
	Session capabilities.ID // that makes the call; zero for the agent itself
	Part    string
	Tool    string
	Call    string // as Permission.Call returns it
	Replied bool   // the agent has replied in the thread since
	At      capabilities.Time
}

// Bounds of the calls that may be made again: of more, the newest are kept.
const (
	maxQuestioned = 64
	questionedFor = 24 * time.Hour
)

// questionedCalls are those of an agent, oldest first.
type questionedCalls []questionedCall

// note keeps an approval of the agent's own that ends, if it ends for a question.
func (q *questionedCalls) note(m *Message, session capabilities.ID, at capabilities.Time) {
	p := m.Form.Permission()
	if p == nil || m.Form.Ended == nil || m.Form.Ended.Reason != events.Cancelled || len(m.Form.Questions()) == 0 {
		return
	}
	*q = append(slices.Clone(*q), questionedCall{Thread: m.Thread(), Session: session, Part: p.Part, Tool: p.Tool, Call: p.Call(), At: at})
	*q = (*q)[max(0, len(*q)-maxQuestioned):]
}

// reply notes that the agent has replied in a thread.
func (q *questionedCalls) reply(thread capabilities.ID) {
	if i := slices.IndexFunc(*q, func(c questionedCall) bool { return c.Thread == thread }); i >= 0 {
		*q = slices.Clone(*q)
		(*q)[i].Replied = true
	}
}

// drop forgets a call that was made again.
func (q *questionedCalls) drop(thread capabilities.ID) {
	*q = slices.DeleteFunc(slices.Clone(*q), func(c questionedCall) bool { return c.Thread == thread })
}

// joined returns the thread that a call joins: that of the equal call or, once the agent has replied there, of the newest call of the same
// tool by the same session and part. It is zero if there is none.
func (q questionedCalls) joined(c *RequestApproval, now capabilities.Time) (thread capabilities.ID) {
	call := c.Call()
	for _, o := range slices.Backward(q) {
		isAgain := o.Session == c.SessionAgent && o.Part == c.Part && o.Tool == c.Tool && now < o.At.Add(questionedFor)
		switch {
		case isAgain && o.Call == call:
			return o.Thread
		case isAgain && o.Replied && thread.IsZero():
			thread = o.Thread
		}
	}
	return thread
}
