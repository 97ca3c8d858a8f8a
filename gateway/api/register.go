package api

import "parley/capabilities"

// RegisterPath is the address, on the node's socket, at which a coding agent is registered with POST. A process that the
// agent has started sends a Register, and is answered by a Registered. From then on the agent's process and all below it
// act for its session, or its guest, alone. So does what names its session in the environment. It is no operation.
const RegisterPath = "/register"

// UnheardFolder is the name of the folder in the state folder with the registrations that found no node: a Register in each file
// whose name ends in .json, one for a session. The node takes them up as it starts, before it listens. So a node that is started
// below a coding agent knows that.
const UnheardFolder = "coders-unheard"

// Register names a coding agent, the folder that it works in, and the session.
type Register struct {
	Acting         // a guest of the host's instead of that of the folder; "" for that
	Program string `json:"program"`           // claude-code, codex
	Title   string `json:"title"`             // Claude Code, Codex
	Folder  string `json:"folder"`            // an absolute path
	Process int    `json:"process,omitempty"` // the agent's process, as the agent says; 0: it is the one above the caller
	Session string `json:"session,omitempty"` // that the agent works in, as what it starts has it in its environment; "" for none, at most 128 bytes

	Probe  bool        `json:"probe,omitempty"`  // the agent is tried: only the file that it runs is noted
	Single bool        `json:"single,omitempty"` // the agent's process works in one session at a time: another takes its place
	Server bool        `json:"server,omitempty"` // the caller serves a session that others register; what it says of that may be of an earlier one
	Mail   *MailMoment `json:"mail,omitempty"`   // of a hook that can carry a notice of mail; nil for any other
	Writes *Writes     `json:"writes,omitempty"` // of a hook before a call that writes files
	Leases bool        `json:"leases,omitempty"` // of one that can carry a notice of mail: it carries what is new of leases, too
	Proof  Proof       `json:"proof,omitzero"`   // what the hook has read in the agent's transcript
}

// The moments at which a hook can carry a notice of mail.
const (
	MomentStart  = "start"  // a session begins or goes on
	MomentPrompt = "prompt" // a person has typed a prompt
	MomentCalls  = "calls"  // between two calls of tools: for what is urgent
	MomentStop   = "stop"   // the agent has nothing more to do
	MomentIdle   = "idle"   // it has had nothing to do, and can be woken
	MomentEnd    = "end"    // the session ends, and nothing is carried
	MomentProof  = "proof"  // nothing is carried; only what was shown is told
)

// WakePath is the address, on the node's socket, at which a process that serves a session of a coding agent waits with GET until
// the session is to be woken: it has mail, and nothing to do. The answer is a Waken. It is no operation.
const WakePath = "/wake"

// Waken says which session is to be woken.
type Waken struct {
	Session string `json:"session,omitempty"` // the coding agent's ID of it; "" if the wait has ended before: call again
}

// MailMoment is what a hook asks about the mail of its session.
type MailMoment struct {
	Moment string `json:"moment"`
	Source string `json:"source,omitempty"` // of a start: startup, resume, clear, compact or fork; of an end: its reason
	Wakes  bool   `json:"wakes,omitempty"`  // of a start: a change of the wake file is a moment
	Looked bool   `json:"looked,omitempty"` // of a start or an end: the hook has looked at the transcript, whether it could be read or not
	Idle   bool   `json:"idle,omitempty"`   // of an idle moment: the transcript says that the agent works no more
}

// Proof is what a transcript says of offers of a session.
type Proof struct {
	Read  bool     `json:"read,omitempty"`  // the transcript was read
	Shown []Mark   `json:"shown,omitempty"` // texts that a request to the model had
	Kept  []Mark   `json:"kept,omitempty"`  // texts that are in the conversation, and so in the next request
	Lost  []string `json:"lost,omitempty"`  // tokens of offers of which the conversation has nothing
}

// IsZero reports whether nothing was read.
func (p Proof) IsZero() bool { return !p.Read }

// Mark stands beside the text of a message in the result of read_mail, as TOKEN:NUMBER.
type Mark struct {
	Token  string `json:"token"`
	Number uint64 `json:"number"`
}

// Registered is the guest that a coding agent acts for.
type Registered struct {
	Agent   capabilities.ID `json:"agent"`
	Name    string          `json:"name"`              // requests of the agent name it: the host holds it under this name
	Session string          `json:"session,omitempty"` // the same for the agent of its session; "" without one
	Bound   bool            `json:"bound,omitzero"`    // the agent's process is known, and what is below it acts for the session alone
	Mail    *Carried        `json:"mail,omitempty"`    // for a hook that asked
	News    *LeaseNews      `json:"news,omitempty"`    // of leases, for a hook that carries it
	Leased  *LeasedFile     `json:"leased,omitempty"`  // a file of the writes that another agent has a lease on
}

// Carried is what a hook carries to its session.
type Carried struct {
	Notice string  `json:"notice,omitempty"` // one line by Parley, for the model; "" without mail
	Wake   string  `json:"wake,omitempty"`   // the file that changes when there is mail
	Offers []Offer `json:"offers,omitempty"` // of before, without proof: the hook looks for them in the transcript
	Again  bool    `json:"again,omitempty"`  // the hook has to ask again, with what it has read: nothing was carried yet
}

// Offer is a notice that was given, or a result of read_mail.
type Offer struct {
	Token   string   `json:"token"`
	Numbers []uint64 `json:"numbers"`
}

// ReadMailRequest reads the mail that the agent was not shown yet. A session reads what its address has for it, too.
type ReadMailRequest struct {
	Acting
	Message RefText `json:"message,omitempty"` // that one instead, whether it was read or not: its number, as read_mail shows it, or its ID
	From    int     `json:"from,omitempty"`    // of that one, the character to read on from
	WaitMs  int64   `json:"waitMs,omitempty"`  // if nothing is unread, wait so long for something: at most 50,000
	Count   bool    `json:"count,omitempty"`   // read nothing, and only count what is unread
}

// ReadMailResponse has what is unread, urgent mail first and then the oldest first.
type ReadMailResponse struct {
	Mail   []ReadMail `json:"mail"`
	More   int        `json:"more,omitempty"`   // messages that did not fit: another call reads them
	Unread int        `json:"unread,omitempty"` // with Count: messages that the agent has not read
	Hooked bool       `json:"hooked,omitempty"` // with Count: hooks tell the agent of its mail by themselves
	Quiet  bool       `json:"quiet,omitempty"`  // with Count: it is a time of quiet, and nobody is told
}

// ReadMail is a message as a model reads it. Subject, text and the name of the sender are the sender's words.
type ReadMail struct {
	Number   string            `json:"number"`       // by which it is answered; "a17" is message 17 of the session's address
	From     string            `json:"from"`         // this node's name for the sender; without one what that calls itself, which says so
	Known    string            `json:"known"`        // what the sender is: host, agent of this node, agent of node NAME
	To       string            `json:"to,omitempty"` // the address, of what was sent to that
	Type     string            `json:"type"`
	Date     capabilities.Time `json:"date"`
	Subject  string            `json:"subject,omitempty"`
	Text     string            `json:"text"`
	Priority string            `json:"priority,omitempty"`
	ReplyTo  string            `json:"replyTo,omitempty"` // the number of the message that it answers
	Wanted   bool              `json:"replyWanted,omitempty"`
	ReadOn   int               `json:"readOn,omitempty"` // the text is longer: from this character on another call with message and from reads it
	Files    []string          `json:"files,omitempty"`  // the names of the files that it carries
	AlsoTo   string            `json:"alsoTo,omitempty"` // all recipients of a message to several, in words
	Author   string            `json:"author,omitempty"` // of what a group has passed on: who wrote it, as in From
	Mark     string            `json:"mark"`             // by which Parley knows that it was read
}
