package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Message is a message, form or request as the agent of its mailbox sees it. Names are the agent's own, of today, and ""
// where it has none.
type Message struct {
	Number       uint64            `json:"number"`
	Type         string            `json:"type"` // form, request, approval or message; or archived
	MessageID    capabilities.ID   `json:"messageId"`
	From         capabilities.ID   `json:"from"`
	FromName     string            `json:"fromName,omitempty"`
	FromSaid     string            `json:"fromSaid,omitempty"` // without FromName: what the sender calls itself, which may be any words
	To           capabilities.ID   `json:"to"`
	ToName       string            `json:"toName,omitempty"`
	Sent         bool              `json:"sent"`     // the agent itself sent it
	Received     bool              `json:"received"` // it was sent to the agent; a message to itself is both
	Date         capabilities.Time `json:"date"`
	Dismissed    bool              `json:"dismissed"`
	Delivered    bool              `json:"delivered"`             // of what it sent: whether it has arrived
	Changed      uint64            `json:"changed"`               // version of the mailbox since which it is as it is
	Unread       bool              `json:"unread,omitempty"`      // it came from another or is a note to itself, is not done, and was not read since it came or came back
	SnoozedUntil capabilities.Time `json:"snoozedUntil,omitzero"` // when it comes back, if it is snoozed
	ReplyTo      capabilities.ID   `json:"replyTo,omitzero"`
	ReplyNumber  *uint64           `json:"replyNumber,omitempty"` // of ReplyTo in this mailbox
	Thread       capabilities.ID   `json:"thread,omitzero"`       // of a reply, or of a call that was made again: the first message of its thread
	Author       capabilities.ID   `json:"author,omitzero"`       // of what a group has passed on: who sent it to the group, as that says
	AuthorName   string            `json:"authorName,omitempty"`
	AuthorSaid   string            `json:"authorSaid,omitempty"` // without AuthorName: what the author calls itself, which may be any words

	Recipients []Recipient `json:"recipients,omitempty"` // of a message to several: all of them, in the sender's order; To is the agent itself, or of what it sent the first

	State    events.MessageState `json:"state,omitempty"`    // delivered, offered, shown or handled; "" if what the agent sent has not arrived; of several recipients it has come so far with all
	Receipts []Receipt           `json:"receipts,omitempty"` // of what was received the newest of each state, of what was sent one of each recipient

	Unreached []Unreached `json:"unreached,omitempty"` // whom a message to several or to a group did not reach

	Members []Member  `json:"members,omitempty"` // of a message to a group: how far it has come with members, those that it was delivered to alone left out
	Counts  []Counted `json:"counts,omitempty"`  // of a message to a group: how many have it, for each group that it was sent to

	Acknowledged bool `json:"acknowledged,omitempty"` // or replied to
	Overdue      bool `json:"overdue,omitempty"`      // it was not acknowledged in time

	Escalate *Recipient  `json:"escalate,omitempty"` // of what the agent sent: who gets it if it is not acknowledged in time
	Late     []Recipient `json:"late,omitempty"`     // of what was escalated to the agent: who has not acknowledged it in time

	// of a message
	parley.Header
	Text  string                        `json:"text,omitempty"` // with @edge where it carries a value
	Edges map[string]capabilities.Value `json:"edges,omitempty"`

	Queued      bool `json:"queued,omitempty"`      // it waits for its recipient's program, which works for another until that turn ends
	Interrupted bool `json:"interrupted,omitempty"` // the run for it ended with its node, and there is no other

	// of a form, request or approval
	Title        string             `json:"title,omitempty"`
	Description  string             `json:"description,omitempty"`
	Permission   *parley.Permission `json:"permission,omitempty"` // of an approval: what it asks for
	Folder       string             `json:"folder,omitempty"`     // of an approval: that of its Permission
	Fields       []events.Field     `json:"fields,omitempty"`
	PromiseID    capabilities.ID    `json:"promiseId,omitzero"`
	ResolverID   capabilities.ID    `json:"resolverId,omitzero"`
	Deadline     capabilities.Time  `json:"deadline,omitzero"`
	NoForward    bool               `json:"noForward,omitempty"`
	Passkey      bool               `json:"passkey,omitempty"`  // an answer, or allowing the call, has to be signed with a passkey
	Forwarder    capabilities.ID    `json:"forwarder,omitzero"` // who forwarded it to the agent
	ForwardName  string             `json:"forwarderName,omitempty"`
	Chain        []Party            `json:"chain,omitempty"` // who had it before the agent, first the one asked
	Steps        []ForwardStep      `json:"steps,omitempty"` // how it came to the agent, in order; none if it was put to it
	ForwardedTo  []Forwarded        `json:"forwardedTo,omitempty"`
	Outcome      *Outcome           `json:"outcome,omitempty"`   // nil while it is open
	DraftAt      capabilities.Time  `json:"draftAt,omitzero"`    // when the agent's draft of an answer or reply was saved, if there is one
	AnswerNeeded bool               `json:"answerNeeded"`        // it is open and this agent may answer it
	Answering    bool               `json:"answering,omitempty"` // the agent's answer is on its way to the form's home
	Refused      string             `json:"refused,omitempty"`   // why the home refused the agent's answer, or the recipient the message
	Digest       string             `json:"digest,omitempty"`    // of all of the Permission
	Revision     uint64             `json:"revision,omitempty"`  // of the question, if it was amended: see AnswerRevision
	Amendment    *Amendment         `json:"amendment,omitempty"` // the last one, if the question was amended
	Route        *Route             `json:"route,omitempty"`     // of a form that is reminded of or escalated
	Votes        *Votes             `json:"votes,omitempty"`     // of a form that needs several answers
	Review       *Review            `json:"review,omitempty"`    // of an approval that a reviewer has before its asker's host
	Held         bool               `json:"held,omitempty"`      // of an open form: who asks can do nothing else meanwhile, and ends the form to read a question
	Origin       *events.Origin     `json:"-"`                   // of a form asked in a dialect

	Claim    *Claim      `json:"claim,omitempty"`    // of an open form: who is on it
	Promised *Promised   `json:"promised,omitempty"` // of what the agent sent to the answer of a request, until that is there
	ToFollow []Following `json:"toFollow,omitempty"` // of a form that the agent asked: what waits for its answer, in order

	Archived *Archived `json:"archived,omitempty"` // of a message in a list whose content is elsewhere
}

// Claim says who is on a form, until when. It is no vote, and gives nothing.
type Claim struct {
	By     capabilities.ID   `json:"by"`
	ByName string            `json:"byName,omitempty"`
	Since  capabilities.Time `json:"since,omitzero"`
	Until  capabilities.Time `json:"until"`
	Was    *Party            `json:"was,omitempty"` // whose claim it took over
}

// Words returns the claim in words, with functions for the name of an agent and for a time.
func (c *Claim) Words(party func(id capabilities.ID, name string) string, when func(capabilities.Time) string) string {
	words := "you are on it"
	if c.ByName != "SELF" {
		words = party(c.By, c.ByName) + " is on it"
	}
	words += ", until " + when(c.Until)
	if c.Was != nil {
		words += ", taken over from " + party(c.Was.ID, c.Was.Name)
	}
	return words
}

// ClaimVerb returns what the viewer may do about being on a form that others may answer too: claim, release or take-over; "" if it is the
// only one, or may not answer.
func (m *Message) ClaimVerb() string {
	switch {
	case !m.AnswerNeeded || m.IsSecondVote() || m.Claim == nil && len(m.Steps)+len(m.Chain)+len(m.ForwardedTo) == 0:
		return ""
	case m.Claim == nil:
		return "claim"
	case m.Claim.ByName == "SELF":
		return "release"
	}
	return "take-over"
}

// Claimed is the result of a claim. A queued one is stored, and on its way to a home that cannot be reached.
type Claimed struct {
	Form   capabilities.ID `json:"form"`
	Number uint64          `json:"number"`
	Claim  *Claim          `json:"claim,omitempty"` // that stands now; nil for none
	Queued bool            `json:"queued,omitempty"`
}

// Promised is the form for whose answer a message waits. Name is a path that begins with the name of that answer.
type Promised struct {
	Form   capabilities.ID `json:"form"`
	Number uint64          `json:"number"`
	Name   string          `json:"name"`
}

// Words returns what the message waits for, in words.
func (p *Promised) Words() string {
	return fmt.Sprintf("waits for the answer of form %d, %s", p.Number, parley.Quoted(p.Name, 80))
}

// Following is a message or a use that goes on when a form is answered.
type Following struct {
	ID     capabilities.ID   `json:"id"`
	Number *uint64           `json:"number,omitempty"` // of a message; a use has none
	Type   string            `json:"type"`             // as of a Message, or use
	Name   string            `json:"name"`             // as in Promised
	Words  string            `json:"words"`
	At     capabilities.Time `json:"at"` // when it was queued
}

// Line returns it in one line. A use is named by its ID, by which it is cancelled.
func (f Following) Line() string {
	if f.Number != nil {
		return fmt.Sprintf("%s %d to %s: %s", f.Type, *f.Number, parley.Quoted(f.Name, 80), f.Words)
	}
	return fmt.Sprintf("%s %s of %s: %s", f.Type, f.ID, parley.Quoted(f.Name, 80), f.Words)
}

// Sender returns the name of who sent the message as a person reads it: the viewer's own, or what the sender calls itself, which reads as
// that; "" if there is neither.
func (m *Message) Sender() string {
	return cmp.Or(m.FromName, m.CallsItself())
}

// CallsItself returns in words what the sender of the message calls itself; "" where the viewer has a name for it, or it says nothing.
func (m *Message) CallsItself() string {
	if m.FromName != "" {
		return ""
	}
	return parley.Called(m.FromSaid)
}

// Writer returns the name of the author of what a group has passed on, as Sender does.
func (m *Message) Writer() string { return cmp.Or(m.AuthorName, parley.Called(m.AuthorSaid)) }

// Recipient is one of several recipients of a message. Said is what its sender calls it, where the viewer has no name for it: any
// words of another.
type Recipient struct {
	Party
	Said string `json:"said,omitempty"`
}

// CallsItself returns in words what its sender calls the recipient, as CallsItself of a message does.
func (r Recipient) CallsItself() string { return parley.Called(r.Said) }

// Unreached is an agent that a message did not reach, as By says: the viewer itself, or the group that could not pass it on.
type Unreached struct {
	Recipient
	Why    string            `json:"why"` // CODE: message
	At     capabilities.Time `json:"at"`
	By     capabilities.ID   `json:"by"`
	ByName string            `json:"byName,omitempty"`
	Known  Knowledge         `json:"known"`
}

// Member says how far a message to a group has come with a member, as By says: the group that has it as a member.
type Member struct {
	Recipient
	State  events.MessageState `json:"state"`
	How    string              `json:"how,omitempty"` // as in Receipt
	At     capabilities.Time   `json:"at"`
	By     capabilities.ID     `json:"by"`
	ByName string              `json:"byName,omitempty"`
	Known  Knowledge           `json:"known"`
}

// Words returns how far the message has come in words, with functions for the names of the member and of the group.
func (m Member) Words(member func(Recipient) string, group func(id capabilities.ID, name string) string) string {
	words := string(m.State) + preposition(m.State) + member(m.Recipient)
	if m.How != "" {
		words += " (" + m.How + ")"
	}
	if m.ByName != "SELF" {
		words += ", " + group(m.By, m.ByName) + " says"
	}
	return words
}

// Counted says with how many agents a message to a group has come how far, as By says: the group. It also counts those that Members has
// no room for.
type Counted struct {
	By     capabilities.ID `json:"by"`
	ByName string          `json:"byName,omitempty"`
	Known  Knowledge       `json:"known"`
	events.MemberCounts
}

// Words returns the counts in words, as in "read by 3 of 5, handled by 2", with a function for the name of the group. What was shown was
// read.
func (c Counted) Words(group func(id capabilities.ID, name string) string) string {
	words := fmt.Sprintf("read by %d of %d", c.Shown, c.Passed)
	if c.Offered > c.Shown {
		words += fmt.Sprintf(", offered to %d more", c.Offered-c.Shown)
	}
	if c.Handled > 0 {
		words += fmt.Sprintf(", handled by %d", c.Handled)
	}
	if c.Acknowledged > 0 {
		words += fmt.Sprintf(", acknowledged or replied to by %d", c.Acknowledged)
	}
	if c.Missed > 0 {
		words += fmt.Sprintf(", did not reach %d", c.Missed)
	}
	if c.ByName != "SELF" {
		words += ", " + group(c.By, c.ByName) + " says"
	}
	return words
}

// preposition returns the word between a state and the agent that has the message in it.
func preposition(s events.MessageState) string {
	if s == events.Handled {
		return " by "
	}
	return " to "
}

// RecipientWords returns recipients in words, as in "planner, reviewer and 2 more": at most so many by name. Name returns how one is
// shown; those of "" are counted, so that no ID is shown.
func RecipientWords(all []Recipient, most int, name func(Recipient) string) string {
	var names []string
	for _, r := range all {
		if shown := name(r); shown != "" && len(names) < most {
			names = append(names, shown)
		}
	}
	rest := len(all) - len(names)
	switch {
	case len(names) == 0:
		return fmt.Sprintf("%d agents", len(all))
	case rest > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), rest)
	case len(names) == 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// Receipt says how far a message has come, and with whom.
type Receipt struct {
	By         capabilities.ID     `json:"by,omitzero"` // of a message that was sent: the recipient
	ByName     string              `json:"byName,omitempty"`
	Reader     capabilities.ID     `json:"reader"` // who had it there: the recipient, or a session of it
	ReaderName string              `json:"readerName,omitempty"`
	State      events.MessageState `json:"state"` // "" if it has not arrived
	At         capabilities.Time   `json:"at,omitzero"`
	How        string              `json:"how,omitempty"` // the moment of an offer, the proof that it was shown, or what was done with it
	Known      Knowledge           `json:"known"`
	Absent     *Absent             `json:"absent,omitempty"` // of what was sent, if nobody reads the recipient's mailbox now
}

// Absent says why nobody reads the mailbox of an agent of the viewer's node. The agent is archived, and nobody ever will. Or it is a
// session of a coding agent that has ended, and its mail waits for who resumes that.
type Absent struct {
	Archived    bool            `json:"archived,omitempty"`
	Address     capabilities.ID `json:"address,omitzero"`      // of a session: the agent of its folder, whose mail each session there may read; zero if that is archived
	AddressName string          `json:"addressName,omitempty"` // the viewer's name for that or, where it has none, its title
}

// Words returns in words what becomes of mail to the agent, and where else it may go.
func (a Absent) Words(party func(id capabilities.ID, name string) string) string {
	words := "whose session has ended: the message waits until it is resumed"
	if a.Archived {
		words = "which is archived: nobody will read the message"
	}
	if !a.Address.IsZero() {
		words += "; the agent of its folder is " + party(a.Address, a.AddressName)
	}
	return words
}

// Knowledge says how a receipt is known.
type Knowledge string

// The ways of knowing a receipt.
const (
	KnownByLog  Knowledge = "log"  // by the log of this node
	KnownByNode Knowledge = "node" // the recipient's node says so
)

// ReceiptWords returns a receipt of the message in words, with a function for the name of an agent. It names the reader of a message that
// several got, and where that is another than the recipient.
func (m *Message) ReceiptWords(r Receipt, party func(id capabilities.ID, name string) string) string {
	words := string(r.State)
	if r.State == "" {
		words = "not delivered yet"
	}
	if r.State.Rank() == 0 && !r.By.IsZero() {
		words += " to " + party(r.By, r.ByName)
		if r.Absent != nil {
			words += ", " + r.Absent.Words(party)
		}
		return words
	}
	if r.State == events.Offered || r.Reader != r.By || len(m.Recipients) > 1 {
		words += preposition(r.State) + party(r.Reader, r.ReaderName)
	}
	if r.How != "" {
		words += " (" + r.How + ")"
	}
	if r.Known == KnownByNode {
		words += ", its node says"
	}
	if r.Absent != nil {
		words += ", " + r.Absent.Words(party)
	}
	return words
}

// AbsentWords says for which recipients among some receipts nobody reads the mailbox now, a line each.
func AbsentWords(receipts []Receipt, party func(id capabilities.ID, name string) string) (lines []string) {
	for _, r := range receipts {
		if r.Absent != nil {
			lines = append(lines, "it is for "+party(r.By, r.ByName)+", "+r.Absent.Words(party))
		}
	}
	return lines
}

// ForwardStep is a step by which a form came to the agent: a forward, or the escalation before all of them. Cause is
// escalated, or away if By was away until Until. It is member if By is a group and To its member, and "" by hand.
type ForwardStep struct {
	By     capabilities.ID   `json:"by"` // the forwarder; of an escalation, the agent that was asked
	ByName string            `json:"byName,omitempty"`
	To     capabilities.ID   `json:"to,omitzero"` // zero for the agent itself
	ToName string            `json:"toName,omitempty"`
	Cause  events.Cause      `json:"cause,omitempty"`
	At     capabilities.Time `json:"at,omitzero"`
	Until  capabilities.Time `json:"until,omitzero"`
	After  events.Delay      `json:"after,omitzero"` // of an escalation
}

// Forwarded is an agent to which a form was forwarded, and why, as in ForwardStep.
type Forwarded struct {
	Party
	By     capabilities.ID   `json:"by,omitzero"` // the forwarder, if it is not the agent itself
	ByName string            `json:"byName,omitempty"`
	Cause  events.Cause      `json:"cause,omitempty"`
	Until  capabilities.Time `json:"until,omitzero"`
}

// Amendment is the last change of a form's question by its asker.
type Amendment struct {
	At      capabilities.Time `json:"at"`
	Note    string            `json:"note,omitempty"` // why, in the asker's words
	Changes []string          `json:"changes"`        // the parts that changed, in words
}

// Route is what has become of a form's reminders and escalations. Those to come are shown to its asker alone.
type Route struct {
	Reminded   uint32            `json:"reminded,omitempty"`  // reminders that have been due
	RemindedAt capabilities.Time `json:"remindedAt,omitzero"` // the time of the last
	RemindsAt  capabilities.Time `json:"remindsAt,omitzero"`  // the time of the next
	Steps      []RouteStep       `json:"escalations,omitempty"`
}

// RouteStep is an escalation of a form.
type RouteStep struct {
	To    capabilities.ID   `json:"to"`
	Name  string            `json:"toName,omitempty"`
	At    capabilities.Time `json:"at"`              // when it was made, or will be
	Cause events.Cause      `json:"cause,omitempty"` // "" if it is to come
}

// Votes are the votes on a form that needs several. Have counts those that agree, with the answer that settled the form.
type Votes struct {
	Need    uint32  `json:"need"`
	Have    uint32  `json:"have"`
	Veto    bool    `json:"veto"`             // one denial settles the form
	NoSelf  bool    `json:"noSelf,omitempty"` // agents of the asker's own host do not count
	Cast    []Vote  `json:"cast,omitempty"`
	Waiting []Party `json:"waiting,omitempty"` // whose votes are to come; to the asker, and to its host once that has voted: in the outcome, and where the message alone is read
	Own     OwnVote `json:"own,omitempty"`
	VotedAs *Party  `json:"votedAs,omitempty"` // the agent as whom the caller has voted: a vote as the viewer counts beside it, and needs secondVote

	Replaced *Party `json:"replaced,omitempty"` // in the outcome of a vote: whose vote that stood it took the place of, the voter's own or one of the same node's
}

// Voter is an agent that was asked for a vote, and when; 0 if that is not known.
type Voter struct {
	Party
	At capabilities.Time
}

// Asked returns the agents that the viewer knows to have been asked for a vote besides itself. One may be in it several times.
func (m *Message) Asked() (all []Voter) {
	if m.Votes != nil {
		for _, p := range m.Votes.Waiting {
			all = append(all, Voter{Party: p})
		}
	}
	for _, p := range m.Chain {
		all = append(all, Voter{Party: p})
	}
	for _, f := range m.ForwardedTo {
		all = append(all, Voter{Party: f.Party})
	}
	for _, s := range m.Steps {
		if s.Cause == events.Escalated {
			all = append(all, Voter{Party: Party{ID: s.By, Name: s.ByName}})
		}
	}
	if m.Route != nil {
		for _, s := range m.Route.Steps {
			if s.Cause == events.Escalated {
				all = append(all, Voter{Party{ID: s.To, Name: s.Name}, s.At})
			}
		}
	}
	return all
}

// WaitsFor returns whose votes are still to come after some that were cast, each once: those that the votes name, or else those of
// Asked who have none. One who has forwarded a form is not
// waited for, but the host for an approval is. Agents of a node that is not the asker's have one vote.
func (m *Message) WaitsFor(v *Votes) (all []Party) {
	if len(v.Waiting) > 0 {
		return v.Waiting
	}
	for _, a := range m.Asked() {
		voted := slices.ContainsFunc(v.Cast, func(c Vote) bool {
			return !c.Void && (c.By == a.ID || c.By.Node == a.ID.Node && a.ID.Node != m.From.Node)
		})
		forwarded := slices.ContainsFunc(m.Chain, func(p Party) bool { return p.ID == a.ID }) && !(m.Permission != nil && a.ID == m.To)
		if !voted && !forwarded && !slices.ContainsFunc(all, func(p Party) bool { return p.ID == a.ID }) {
			all = append(all, a.Party)
		}
	}
	return all
}

// Vote is the vote of an agent. The answer that settles a form is its outcome, and none of these.
type Vote struct {
	By      capabilities.ID    `json:"by"`
	ByName  string             `json:"byName,omitempty"` // the viewer's name for By
	Outcome events.VoteOutcome `json:"outcome"`
	At      capabilities.Time  `json:"at"`
	Note    string             `json:"note,omitempty"`
	Void    bool               `json:"void,omitempty"` // it was on the question before the last amendment
	Person  capabilities.ID    `json:"-"`              // who voted as By, if another agent did
	Beside  bool               `json:"-"`              // it counts beside a vote of the viewer
}

// Review is what a reviewer says of a call: for the agent's host it is an opinion, unless it has decided the call.
type Review struct {
	By       capabilities.ID   `json:"by"`
	ByName   string            `json:"byName,omitempty"`
	How      events.ReviewEnd  `json:"how,omitempty"`      // how it has ended; "" while it is under way
	Note     string            `json:"note,omitempty"`     // in the reviewer's own words
	At       capabilities.Time `json:"at,omitzero"`        // when it ended
	MayAllow bool              `json:"mayAllow,omitempty"` // to the reviewer and the asker: an allow of the reviewer is more than an opinion
	Until    capabilities.Time `json:"until,omitzero"`     // to these: when the host decides if the reviewer says nothing
}

// ByReviewer reports whether the reviewer of a call has decided it.
func (m Message) ByReviewer() bool {
	return m.Review != nil && m.Outcome != nil && m.Outcome.By == m.Review.By
}

// Words returns what the review says of the call; "" while it is under way.
func (r *Review) Words() string {
	switch r.How {
	case events.ReviewAllowed:
		return "allowed the call"
	case events.ReviewDenied:
		return "denied the call"
	case events.ReviewHandedOn:
		return "leaves it to you"
	case events.ReviewBeyond:
		return "would allow the call, and may not"
	case events.ReviewSampled:
		return "would allow the call, which was drawn for you to check"
	case events.ReviewLate:
		return "did not answer in time"
	case events.ReviewUnreachable:
		return "could not be reached"
	case events.ReviewRevoked:
		return "was not done when the policy changed"
	}
	return ""
}

// ToAsker returns Words as the asker of the call reads them, who does not decide.
func (r *Review) ToAsker() string {
	switch r.How {
	case events.ReviewHandedOn:
		return "leaves it to the host"
	case events.ReviewSampled:
		return "would allow the call, which was drawn for the host to check"
	}
	return r.Words()
}

// OwnVote is what has become of the viewer's vote; "" if it has not voted.
type OwnVote string

// The states of an own vote.
const (
	VoteStands  OwnVote = "cast"       // while the form is open
	VoteVoid    OwnVote = "void"       // the question was amended since
	VoteCounted OwnVote = "counted"    // the form has ended by it, among others
	VoteMissed  OwnVote = "notCounted" // the form has ended otherwise
)

// StandIns are the agents to which the forms of an agent are forwarded as they come.
type StandIns struct {
	Away    *Away   `json:"away,omitempty"` // nil if the agent is not away, and will not be
	Members []Party `json:"members"`        // of a group
}

// Away is an absence of an agent.
type Away struct {
	From  capabilities.Time `json:"from"`
	Until capabilities.Time `json:"until"`
	To    *Party            `json:"to,omitempty"` // to whom forms are forwarded; nil for nobody
}

// AnswerRevision returns the revision of the question for an answer to what the message shows. The form as it was asked is
// revision 1.
func (m *Message) AnswerRevision() uint64 { return max(m.Revision, 1) }

// TypeArchived is the type of a message in a list. Its content is in a segment of the archive that is elsewhere. It has
// its number, the flags by which it is listed, and the date of the segment's first commit.
const TypeArchived = "archived"

// Archived describes such a message.
type Archived struct {
	Form bool `json:"form"` // it is a form, request or approval, which has ended
	Elsewhere
}

// shownValue is a value as it is shown, masked if it is a secret.
type shownValue struct{ capabilities.Value }

// UnmarshalJSON implements json.Unmarshaler.
func (v *shownValue) UnmarshalJSON(b []byte) (err error) {
	v.Value, err = capabilities.ParseShown(b)
	return err
}

// UnmarshalJSON reads a message as it is shown. A type that embeds a Message inherits it.
func (m *Message) UnmarshalJSON(b []byte) error {
	type plain Message
	shown := struct {
		*plain
		Edges  map[string]shownValue `json:"edges"`
		Fields []struct {
			events.Field
			Default shownValue `json:"default"`
			Example shownValue `json:"example"`
		} `json:"fields"`
	}{plain: (*plain)(m)}
	*m = Message{}
	if err := json.Unmarshal(b, &shown); err != nil {
		return err
	}
	if shown.Edges != nil {
		m.Edges = make(map[string]capabilities.Value, len(shown.Edges))
	}
	for edge, v := range shown.Edges {
		m.Edges[edge] = v.Value
	}
	if m.Type == string(events.Approval) && m.Permission == nil {
		return parley.Refuse(parley.Internal, "an approval came without what it asks for")
	}
	for _, f := range shown.Fields {
		f.Field.Default, f.Field.Example = f.Default.Value, f.Example.Value
		m.Fields = append(m.Fields, f.Field)
	}
	return nil
}

// Takes reports whether an approval takes a decision, as in "once". What its asker cannot carry out it does not take.
func (m *Message) Takes(decision string) bool {
	return slices.ContainsFunc(m.Fields, func(f events.Field) bool {
		return f.Name == "decision" && slices.ContainsFunc(f.Options, func(o events.Option) bool { return o.Value == decision })
	})
}

// AsksSame reports whether two messages are open approvals for the same call, in the same folder. One agent, or one session of a coding
// agent, has to ask one recipient in both. They may be decided as one, whatever the agent says of each.
func (m *Message) AsksSame(o *Message) bool {
	return m.AnswerNeeded && o.AnswerNeeded && m.IsSecondVote() == o.IsSecondVote() && m.Permission != nil && o.Permission != nil && m.Permission.IsSameCall(o.Permission) && m.Permission.Caller() == o.Permission.Caller() && m.Permission.Session == o.Permission.Session && m.From == o.From && m.To == o.To &&
		slices.EqualFunc(m.Fields, o.Fields, func(a, b events.Field) bool { return a.Name == b.Name && slices.Equal(a.Options, b.Options) })
}

// IsSecondVote reports whether an answer counts beside a vote of the caller as another agent. It has to be wanted as one.
func (m *Message) IsSecondVote() bool {
	return m.AnswerNeeded && m.Votes != nil && m.Votes.VotedAs != nil
}

// Together returns the indexes of messages in groups: those that ask the same are one group, at the place of the first.
func Together(all []Message) [][]int {
	var groups [][]int
	type call struct {
		from                capabilities.ID
		tool, input, folder string
	}
	byCall := map[call][]int{} // the groups of a call and its asker
	for i := range all {
		m := &all[i]
		at := -1
		if m.AnswerNeeded && m.Permission != nil {
			for _, g := range byCall[call{m.From, m.Permission.Tool, m.Permission.Input, m.Permission.Folder}] {
				if m.AsksSame(&all[groups[g][0]]) {
					at = g
				}
			}
		}
		if at >= 0 {
			groups[at] = append(groups[at], i)
			continue
		}
		if p := m.Permission; p != nil {
			c := call{m.From, p.Tool, p.Input, p.Folder}
			byCall[c] = append(byCall[c], len(groups))
		}
		groups = append(groups, []int{i})
	}
	return groups
}

// ByPriority orders what is shown together: what is urgent comes first, what is low last, and all else stays in its order.
func ByPriority[T any](all []T, of func(T) *Message) {
	slices.SortStableFunc(all, func(a, b T) int { return of(a).Priority.Rank() - of(b).Priority.Rank() })
}

// Party is another agent, with the viewer's name for it if there is one.
type Party struct {
	ID   capabilities.ID `json:"id"`
	Name string          `json:"name,omitempty"`
}

// MessageFilter picks messages. The zero value picks what was received and not dismissed.
type MessageFilter struct {
	All     bool `json:"all,omitempty"`     // also what the agent sent, and what it dismissed or snoozed
	Pending bool `json:"pending,omitempty"` // only what waits for its answer, and is not snoozed
	Snoozed bool `json:"snoozed,omitempty"` // only what is snoozed
	Done    bool `json:"done,omitempty"`    // only what was received, and is dismissed or settled
	Unread  bool `json:"unread,omitempty"`  // only what is unread
	Overdue bool `json:"overdue,omitempty"` // only what was sent or received and was not acknowledged in time
	Sent    bool `json:"sent,omitempty"`    // only what the agent sent
	Open    bool `json:"open,omitempty"`    // and only forms that have not ended
	Notes   bool `json:"notes,omitempty"`   // and only what is no form
	Forms   bool `json:"-"`                 // and only forms, requests and approvals
	Settled bool `json:"-"`                 // and only those that have ended
}

// Matches reports whether the filter picks a message.
func (f MessageFilter) Matches(m *Message) bool {
	form := m.Type != "message"
	if m.Archived != nil {
		form = m.Archived.Form
	}
	switch {
	case f.Open && (!form || m.Outcome != nil || m.Archived != nil), f.Notes && form, f.Forms && !form,
		f.Settled && (!form || m.Outcome == nil && m.Archived == nil):
		return false
	case f.Pending:
		return m.AnswerNeeded && (f.All || !m.Dismissed && m.SnoozedUntil == 0)
	case f.Snoozed:
		return m.SnoozedUntil != 0
	case f.Done:
		return m.Received && (m.Dismissed || m.Outcome != nil || m.Archived != nil && m.Archived.Form)
	case f.Unread:
		return m.Unread
	case f.Overdue:
		return m.Overdue
	case f.Sent:
		return m.Sent
	case f.All:
		return true
	}
	return m.Received && !m.Dismissed
}

// MessageCounts are the numbers of messages in the lists of an inbox.
type MessageCounts struct {
	Pending int `json:"pending"` // what waits for the agent's answer, neither dismissed nor snoozed
	Snoozed int `json:"snoozed"`
	Done    int `json:"done"`   // what was received, and is dismissed or settled
	Unread  int `json:"unread"` // of what others sent and is not done
	All     int `json:"all"`    // with what the agent sent
}

// Inbox is a list of messages by number, and the cursor from which to follow later changes.
type Inbox struct {
	Messages []Message `json:"messages"`
	Cursor   uint64    `json:"cursor"`
	Next     uint64    `json:"next,omitempty"` // of a page: the number from which there is more; 0 if there is none
}

// Sent is an accepted message: it is on disk.
type Sent struct {
	Message capabilities.ID `json:"message"`
	Number  uint64          `json:"number"`

	// Unreachable reports that a node cannot be reached now. It is that of the recipient, or of something that the
	// message or one before it gives. The message goes there when it can.
	Unreachable bool `json:"unreachable,omitempty"`

	// Given are the references of the text by which something was handed over, as they were written. Plain is what looks like
	// one and was taken as text: it names nothing that the sender holds, or is code or in quotes.
	Given []string `json:"given,omitempty"`
	Plain []string `json:"plain,omitempty"`

	Promised *Promised `json:"promised,omitempty"` // the message waits for the answer of that form

	Queued     bool        `json:"queued,omitempty"`     // the recipient's program works: it is prompted with the message when that turn ends
	Recipients []Recipient `json:"recipients,omitempty"` // of a message to several
	Absent     []Receipt   `json:"absent,omitempty"`     // of the recipients whose mailboxes nobody reads now, as they are
	NotTo      []Recipient `json:"notTo,omitempty"`      // of a reply to all: recipients of what it replies to that the agent cannot reach
}

// Words says what a message has handed over, and what in it was taken as text; "" if there is neither.
func (s Sent) Words() string {
	var parts []string
	if len(s.Given) > 0 {
		parts = append(parts, "handed over: "+strings.Join(s.Given, ", "))
	}
	if len(s.Plain) > 0 {
		parts = append(parts, "taken as text: "+strings.Join(s.Plain, ", "))
	}
	return strings.Join(parts, "; ")
}

// Prompted is an accepted message to an agent: it is on disk there. With Running, the agent's program has it and runs;
// with Queued it waits for the program's next run.
type Prompted struct {
	Message capabilities.ID `json:"message"`
	Running bool            `json:"running"`
	Queued  bool            `json:"queued"`
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

	// Of a right to answer a form: what it may be used for, and how often it was.
	Outcomes []string `json:"outcomes,omitempty"`
	Used     uint32   `json:"used,omitempty"`
}

// GrantFilter chooses grants of an agent. The zero filter chooses all.
type GrantFilter struct {
	After  capabilities.ID // only those behind it in the list
	Most   int             // their largest number
	Newest bool            // the newest first
	Target capabilities.ID // only those of references to it
	Live   bool            // only those that are not revoked
}

// Has reports whether the filter chooses a grant, wherever it stands in the list.
func (f GrantFilter) Has(g *capabilities.Grant) bool {
	return (f.Target.IsZero() || g.Target == f.Target) && (!f.Live || g.Revoked == 0)
}

// IsForBearer reports whether it is a right to answer a form, which whoever shows its secret may use.
func (g Granted) IsForBearer() bool { return len(g.Outcomes) > 0 && g.To == g.By }

// AnswerRight is a new right to answer a form. Whoever shows the secret may use it.
type AnswerRight struct {
	Grant    capabilities.ID   `json:"grant"`
	Form     capabilities.ID   `json:"form"`
	Revision uint64            `json:"revision"` // of the question
	Outcomes []string          `json:"outcomes"`
	Until    capabilities.Time `json:"until,omitzero"`
	Uses     uint32            `json:"uses,omitempty"` // 0 for any number
	Secret   string            `json:"secret"`         // shown once
}
