package events

import (
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
	"parley/internal/pack"
)

// MessagePosted adds a message to a mailbox, with the mailbox's own Number. Only the sender's mailbox has Via, Facet
// and Key.
type MessagePosted struct {
	Number  uint64             `json:"number"`
	Message capabilities.ID    `json:"message"`
	From    capabilities.ID    `json:"from"`
	To      capabilities.ID    `json:"to"`
	Via     capabilities.ID    `json:"via,omitzero"`   // the grant by which From reached To
	Facet   capabilities.Facet `json:"facet,omitzero"` // and how much of To it held
	Header
	Text    []Span            `json:"text"`
	ReplyTo capabilities.ID   `json:"replyTo,omitzero"`
	Thread  capabilities.ID   `json:"thread,omitzero"` // the first message of the thread; zero for that itself
	Author  capabilities.ID   `json:"author,omitzero"` // of what a group passes on to its members: who sent it to the group, or the group where its node cannot speak for that one
	Date    capabilities.Time `json:"date"`
	Key     string            `json:"key,omitempty"` // idempotency key

	Recipients []Recipient       `json:"recipients,omitempty"` // all of a message to several, in the sender's order; none of a message to one
	Original   capabilities.ID   `json:"original,omitzero"`    // of what a group passes on: the message as its author sent it
	Passed     []capabilities.ID `json:"passed,omitempty"`     // of that: the groups that have passed it on, the last is From

	Escalate *Recipient  `json:"escalate,omitempty"` // in the sender's mailbox: who gets the message if it is not acknowledged by AckBy
	Late     []Recipient `json:"late,omitempty"`     // of a message that was escalated: who has not acknowledged it in time

	Sender string `json:"sender,omitempty"` // what From calls itself, as the Asker of a form

	AuthorSaid string `json:"authorSaid,omitempty"` // what Author calls itself, as From says
}

// Recipient is one of several recipients of a message. Only the sender's mailbox has Via, Facet and Values.
type Recipient struct {
	Agent  capabilities.ID      `json:"agent"`
	Name   string               `json:"name,omitempty"`   // the sender's name for it
	Via    capabilities.ID      `json:"via,omitzero"`     // the grant by which From reached it
	Facet  capabilities.Facet   `json:"facet,omitzero"`   // and how much of it that held
	Values []capabilities.Value `json:"values,omitempty"` // those of Text as given to it, in their order; none for the first
}

// Header is what a sender says of a message beside its text. It gives no right to anything.
type Header struct {
	Priority Priority `json:"priority,omitempty"` // urgent, normal (default) or low
	Subject  string   `json:"subject,omitempty"`  // a line of 200 bytes at most

	AckBy capabilities.Time `json:"ackBy,omitzero"` // when its sender wants it to be acknowledged by; a reply is one

	Files []File `json:"files,omitempty"` // that it carries: 16 at most
}

// Priority is how soon a message should be seen, as its sender says; "" is Normal.
type Priority string

// The priorities.
const (
	Urgent Priority = "urgent"
	Normal Priority = "normal"
	Low    Priority = "low"
)

// Rank returns the place of messages of a priority in a list: the lower comes first.
func (p Priority) Rank() int {
	switch p {
	case Urgent:
		return -1
	case Low:
		return 1
	}
	return 0
}

// Span is a part of a message: words, or a value under an edge name.
type Span struct {
	Words string             `json:"words,omitempty"`
	Edge  string             `json:"edge,omitempty"`
	Value capabilities.Value `json:"value,omitzero"`
}

// senderMembers and authorMembers are the numbers of members in the two encodings of a message. One without AuthorSaid has the shorter one.
const (
	senderMembers = 22
	authorMembers = 23
)

// EncodeMsgpack writes the event as an array.
func (e *MessagePosted) EncodeMsgpack(enc *msgpack.Encoder) error {
	return write(enc, appendPosted(nil, e))
}

// DecodeMsgpack reads what EncodeMsgpack writes, and nothing else. With an error, what it has read is no message.
func (e *MessagePosted) DecodeMsgpack(dec *msgpack.Decoder) error {
	n, err := dec.DecodeArrayLen()
	if err != nil {
		return err
	}
	if n != senderMembers && n != authorMembers {
		return fmt.Errorf("%w: a message of %d members", errMalformed, n)
	}
	*e = MessagePosted{}
	if err := dec.DecodeMulti(
		&e.Number, &e.Message, &e.From, &e.To, &e.Via, &e.Facet, &e.Priority, &e.Subject, &e.AckBy, &e.Files, &e.Text, &e.ReplyTo,
		&e.Thread, &e.Author, &e.Date, &e.Key, &e.Recipients, &e.Original, &e.Passed, &e.Escalate, &e.Late, &e.Sender,
	); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	if n == authorMembers {
		if err := dec.Decode(&e.AuthorSaid); err != nil || e.AuthorSaid == "" {
			return fmt.Errorf("%w: what the author of a message calls itself", errMalformed)
		}
	}
	return nil
}

func appendPosted(b []byte, e *MessagePosted) []byte {
	size := senderMembers
	if e.AuthorSaid != "" {
		size = authorMembers
	}
	b = pack.AppendUint(pack.AppendArray(b, size), e.Number)
	b = appendIDs(b, &e.Message, &e.From, &e.To, &e.Via)
	b = e.appendTo(appendFacet(b, e.Facet))
	b = appendList(b, e.Text, appendSpan)
	b = appendIDs(b, &e.ReplyTo, &e.Thread, &e.Author)
	b = appendTexts(e.Date.AppendMsgpack(b), e.Key)
	b = e.Original.AppendMsgpack(appendList(b, e.Recipients, appendRecipient))
	b = appendList(b, e.Passed, appendID)
	if e.Escalate == nil {
		b = pack.AppendNil(b)
	} else {
		b = appendRecipient(b, e.Escalate)
	}
	b = pack.AppendString(appendList(b, e.Late, appendRecipient), e.Sender)
	if e.AuthorSaid != "" {
		b = pack.AppendString(b, e.AuthorSaid)
	}
	return b
}

func appendRecipient(b []byte, r *Recipient) []byte {
	b = appendTexts(r.Agent.AppendMsgpack(pack.AppendArray(b, 5)), r.Name)
	b = appendFacet(r.Via.AppendMsgpack(b), r.Facet)
	return appendList(b, r.Values, func(b []byte, v *capabilities.Value) []byte { return v.AppendMsgpack(b) })
}

// appendTo encodes the members of the header in a row, as those of the event that it is part of.
func (h Header) appendTo(b []byte) []byte {
	b = h.AckBy.AppendMsgpack(appendTexts(b, string(h.Priority), h.Subject))
	return appendList(b, h.Files, appendFile)
}

func appendSpan(b []byte, s *Span) []byte {
	return s.Value.AppendMsgpack(appendTexts(pack.AppendArray(b, 3), s.Words, s.Edge))
}

// MessageDismissed hides a message. It stays in the log.
type MessageDismissed struct {
	Number uint64 `json:"number"`
}

// MessageRestored shows a message again that was dismissed.
type MessageRestored struct {
	Number uint64 `json:"number"`
}

// MessageSnoozed takes a message out of the list of those that wait until a time. At that time it comes back unread,
// with another such event whose Until is 0. A later event replaces an earlier one.
type MessageSnoozed struct {
	Number uint64            `json:"number"`
	Until  capabilities.Time `json:"until,omitzero"`
}

// MessagesRead marks messages as read or, with Unread, as not read.
type MessagesRead struct {
	Numbers []uint64 `json:"numbers"`
	Unread  bool     `json:"unread,omitempty"`
}

// MessageDrafted is the unfinished text of a message to an agent, as last typed. With ReplyTo, it is the text of a
// reply to that message. An empty text removes it.
type MessageDrafted struct {
	To      capabilities.ID   `json:"to"`
	ReplyTo capabilities.ID   `json:"replyTo,omitzero"`
	Text    string            `json:"text,omitempty"`
	Date    capabilities.Time `json:"date"`
}

// OutboxKind is the kind of an item of the outbox.
type OutboxKind uint8

// The kinds of items of the outbox.
const (
	OutboxCopy       OutboxKind = 1  // a form or message
	OutboxOutcome    OutboxKind = 2  // the outcome of a form
	OutboxRevocation OutboxKind = 3  // the revocation of a grant
	OutboxForwarded  OutboxKind = 4  // the forward of a form, for its forwarder
	OutboxMint       OutboxKind = 5  // a new grant, for its target
	OutboxAnswer     OutboxKind = 6  // an answer, for the home of the form
	OutboxForward    OutboxKind = 7  // a forward of a form, for the form's home
	OutboxAmendment  OutboxKind = 8  // the latest amendment of a form
	OutboxReminder   OutboxKind = 9  // the latest reminder of a form
	OutboxVotes      OutboxKind = 10 // the votes that stand on a form
	OutboxWithdrawal OutboxKind = 11 // a vote that is withdrawn, for the home of the form
	OutboxReceipt    OutboxKind = 12 // how far a message has come, for its sender
	OutboxUnreached  OutboxKind = 15 // whom a message did not reach, for its sender
	OutboxClaim      OutboxKind = 17 // the last claim of a form, for who may answer it
	OutboxClaiming   OutboxKind = 18 // a claim, for the home of the form
	OutboxMembers    OutboxKind = 16 // how far a message to a group has come with its members, for its sender
)

// MessageRepeated records that a message which is here already came again, as passed on by the group By. That is told how far it has come, as
// the group is by which it came first.
type MessageRepeated struct {
	Message capabilities.ID `json:"message"`
	By      capabilities.ID `json:"by"`
}

// MemberReported records how far a message to a group has come with one of its members: in the mailbox of the group, which has passed it
// on, and in that of its sender, as the group's word. By is the group. All is set in the group's mailbox alone.
type MemberReported struct {
	Message capabilities.ID   `json:"message"`
	By      capabilities.ID   `json:"by"`
	Member  capabilities.ID   `json:"member"`
	Name    string            `json:"name,omitempty"` // By's name for it
	State   MessageState      `json:"state"`
	How     string            `json:"how,omitempty"`
	Date    capabilities.Time `json:"date"`
	All     MessageState      `json:"all,omitempty"` // how far it has come by that with all members that it reached; "" for no further than it was delivered
}

// MembersCounted records with how many members a message to a group has come how far: in the mailbox of the group, and in that of its
// sender, as the word of By, the group. Members of groups in the group count in place of these.
type MembersCounted struct {
	Message capabilities.ID `json:"message"`
	By      capabilities.ID `json:"by"`
	Counts  MemberCounts    `json:"counts"`
}

// MemberCounts are the copies of a message that groups have passed on. Those that have come to a state are also among those of the
// states before.
type MemberCounts struct {
	Passed       uint32 `json:"passed"`
	Missed       uint32 `json:"missed"` // of those passed on: refused by whom they were for
	Offered      uint32 `json:"offered"`
	Shown        uint32 `json:"shown"`
	Handled      uint32 `json:"handled"`
	Acknowledged uint32 `json:"acknowledged"` // or replied to
}

// MessageUnreached records, at the sender of a message to several or to a group, that it did not reach an agent. By says so: the
// sender's own mailbox, or the group that could not pass it on.
type MessageUnreached struct {
	Message capabilities.ID   `json:"message"`
	By      capabilities.ID   `json:"by"`
	Agent   capabilities.ID   `json:"agent"`
	Name    string            `json:"name,omitempty"` // By's name for it
	Why     string            `json:"why"`
	Date    capabilities.Time `json:"date"`
}

// MessageDelivered removes items from the outbox, because their mailboxes have accepted or refused them. Items are
// their numbers in ascending order. Refused, if set, is the reason of a refusal.
type MessageDelivered struct {
	Items   []uint64 `json:"parcels"`
	Refused string   `json:"refused,omitempty"`
}
