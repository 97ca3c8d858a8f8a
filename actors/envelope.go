package actors

import (
	"parley/capabilities"
	"parley/events"
)

// Envelope is one message as its mailbox's agent sees it. Names are the agent's own, of today, and ""
// where it has none. Everything in it may come from strangers: escape it wherever it is shown.
type Envelope struct {
	Number      uint64            `json:"number"`
	Type        string            `json:"type"` // form, request, message
	MessageID   capabilities.ID   `json:"messageId"`
	From        capabilities.ID   `json:"from"`
	FromName    string            `json:"fromName,omitempty"`
	To          capabilities.ID   `json:"to"`
	ToName      string            `json:"toName,omitempty"`
	Sent        bool              `json:"sent"`     // the agent itself sent it
	Received    bool              `json:"received"` // it was sent to the agent; a message to itself is both
	Date        capabilities.Time `json:"date"`
	Dismissed   bool              `json:"dismissed"`
	Delivered   bool              `json:"delivered"` // of what it sent: whether it has arrived
	Changed     uint64            `json:"changed"`   // version of the mailbox since which it is as it is
	ReplyTo     capabilities.ID   `json:"replyTo,omitzero"`
	ReplyNumber *uint64           `json:"replyNumber,omitempty"` // of ReplyTo in this mailbox

	// of a message
	Text  string                        `json:"text,omitempty"` // with @edge where it carries a value
	Edges map[string]capabilities.Value `json:"edges,omitempty"`

	Queued      bool `json:"queued,omitempty"`      // it waits for the agent's program to run for it
	Interrupted bool `json:"interrupted,omitempty"` // the run for it ended with its node, and there is no other

	// of a form or request
	Title        string            `json:"title,omitempty"`
	Description  string            `json:"description,omitempty"`
	Fields       []events.Field    `json:"fields,omitempty"`
	PromiseID    capabilities.ID   `json:"promiseId,omitzero"`
	ResolverID   capabilities.ID   `json:"resolverId,omitzero"`
	Deadline     capabilities.Time `json:"deadline,omitzero"`
	NoForward    bool              `json:"noForward,omitempty"`
	Forwarder    capabilities.ID   `json:"forwarder,omitzero"` // who handed it on to the agent
	ForwardName  string            `json:"forwarderName,omitempty"`
	Chain        []Party           `json:"chain,omitempty"` // who had it before the agent, first the one asked
	ForwardedTo  []Party           `json:"forwardedTo,omitempty"`
	Outcome      *Outcome          `json:"outcome,omitempty"`   // nil while it is open
	AnswerNeeded bool              `json:"answerNeeded"`        // it is open and this agent may answer it
	Answering    bool              `json:"answering,omitempty"` // what the agent said is on its way to the form's home
	Refused      string            `json:"refused,omitempty"`   // why the home would not have what the agent said, or the recipient the message
	Digest       string            `json:"digest,omitempty"`    // of the call that an approval shows
}

// words is how many bytes of text the message has, which is less than its JSON has.
func (e *Envelope) words() int { return len(e.Text) + len(e.Title) + len(e.Description) }

// Party is another agent, with the viewer's name for it if there is one.
type Party struct {
	ID   capabilities.ID `json:"id"`
	Name string          `json:"name,omitempty"`
}

// View says which messages to list. The zero View is what was received and not dismissed.
type View struct {
	All     bool `json:"all,omitempty"`     // also what the agent sent and what it dismissed
	Pending bool `json:"pending,omitempty"` // only what waits for its answer
}

// Inbox is a list of messages by number, and the cursor from which to follow what changes after it.
type Inbox struct {
	Messages []Envelope `json:"messages"`
	Cursor   uint64     `json:"cursor"`
	Next     uint64     `json:"next,omitempty"` // of a Page: the number from which there is more; 0 if there is none
}

// Sent is an accepted message: it is on disk.
type Sent struct {
	Message capabilities.ID `json:"message"`
	Number  uint64          `json:"number"`

	// Unreachable says that the recipient's node cannot be reached now, or that of something that the message or
	// one before it gives: it goes there when they can.
	Unreachable bool `json:"unreachable,omitempty"`
}

// Entry is one event of a mailbox's log. Payload is the event's JSON form.
type Entry struct {
	Commit  uint64            `json:"commit"`
	Version uint64            `json:"version"` // of the mailbox, after the event
	Type    string            `json:"type"`
	Schema  int               `json:"schema"` // version of the event's type
	At      capabilities.Time `json:"at"`
	Payload events.Event      `json:"payload"`
}

// Granted is a grant as its giver sees it.
type Granted struct {
	capabilities.Grant
	ToName string `json:"toName,omitempty"`
}

// NewAgent says what agent to make. The maker holds it under Name.
type NewAgent struct {
	Kind   events.AgentKind  `json:"kind"`
	Name   string            `json:"name"`
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`

	Program *events.ProgramSet `json:"program,omitempty"` // what it runs for its messages; nil if some client serves it
	Policy  string             `json:"policy,omitempty"`  // see mailbox.SetPolicy; "" is on-miss
	Wait    bool               `json:"wait,omitempty"`    // its program does not begin before the first message
}
