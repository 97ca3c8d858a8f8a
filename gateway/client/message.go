package client

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// Message is a message as the agent of its mailbox sees it. Names are the present ones of that agent; "" where it has none.
type Message struct {
	Number       uint64    `json:"number"`
	Type         string    `json:"type"` // form, request, approval or message; or archived
	MessageID    ID        `json:"messageId"`
	From         ID        `json:"from"`
	FromName     string    `json:"fromName,omitempty"`
	To           ID        `json:"to"`
	ToName       string    `json:"toName,omitempty"`
	Sent         bool      `json:"sent"`     // the agent itself sent it
	Received     bool      `json:"received"` // it was sent to the agent; a message to itself is both
	Date         time.Time `json:"date"`
	Dismissed    bool      `json:"dismissed"`
	Delivered    bool      `json:"delivered"`             // reports, of what the agent sent, whether it has arrived
	Changed      uint64    `json:"changed"`               // version of the mailbox at the last change
	Unread       bool      `json:"unread,omitempty"`      // another sent it, it is not done, and was not read since it came or came back
	SnoozedUntil time.Time `json:"snoozedUntil,omitzero"` // when it comes back, if it is snoozed
	ReplyTo      ID        `json:"replyTo,omitempty"`
	ReplyNumber  *uint64   `json:"replyNumber,omitempty"` // of ReplyTo in this mailbox

	// of a message
	Text     string                     `json:"text,omitempty"` // with @edge where it carries a value
	Edges    map[string]json.RawMessage `json:"edges,omitempty"`
	Priority parley.Priority            `json:"priority,omitempty"` // urgent or low, as its sender says; "" is normal
	Queued   bool                       `json:"queued,omitempty"`   // it waits for the agent's program to run for it

	Interrupted bool `json:"interrupted,omitempty"` // the run for it ended with its node, and there is no other

	// of a form, request or approval
	Title        string             `json:"title,omitempty"`
	Description  string             `json:"description,omitempty"`
	Permission   *parley.Permission `json:"permission,omitempty"` // of an approval: what it asks for
	Folder       string             `json:"folder,omitempty"`     // of an approval: that of its Permission
	Fields       []Field            `json:"fields,omitempty"`
	PromiseID    ID                 `json:"promiseId,omitempty"`
	ResolverID   ID                 `json:"resolverId,omitempty"`
	Deadline     time.Time          `json:"deadline,omitzero"`
	NoForward    bool               `json:"noForward,omitempty"`
	Forwarder    ID                 `json:"forwarder,omitempty"` // who forwarded it to the agent
	ForwardName  string             `json:"forwarderName,omitempty"`
	Chain        []Party            `json:"chain,omitempty"` // who had it before the agent, first the one asked
	ForwardedTo  []Forwarded        `json:"forwardedTo,omitempty"`
	Outcome      *Outcome           `json:"outcome,omitempty"`   // nil while it is open
	DraftAt      time.Time          `json:"draftAt,omitzero"`    // when the agent's draft of an answer or reply was saved, if there is one
	AnswerNeeded bool               `json:"answerNeeded"`        // it is open and this agent may answer it
	Answering    bool               `json:"answering,omitempty"` // the agent's answer is on its way to the form's home
	Refused      string             `json:"refused,omitempty"`   // why the home refused the agent's answer
	Digest       string             `json:"digest,omitempty"`    // of all of the Permission
	Revision     uint64             `json:"revision,omitempty"`  // of the question, if it was amended; the form as it was asked is 1

	Amendment *Amended      `json:"amendment,omitempty"` // the last one, if the question was amended
	Steps     []ForwardStep `json:"steps,omitempty"`     // how it came to the agent, in order; none if it was put to it
	Route     *Route        `json:"route,omitempty"`     // of a form that is reminded of or escalated
	Votes     *Votes        `json:"votes,omitempty"`     // of a form that needs several answers

	Archived *Archived `json:"archived,omitempty"` // of a message in a list whose content is elsewhere

	Cursor Cursor          `json:"-"` // of a followed message: the position after it
	Raw    json.RawMessage `json:"-"` // the message as the node sent it
}

// Amended is the last change of a form's question by its asker.
type Amended struct {
	At      time.Time `json:"at"`
	Note    string    `json:"note,omitempty"` // why, in the asker's words
	Changes []string  `json:"changes"`        // the parts that changed, in words
}

// Route is what has become of a form's reminders and escalations. Those to come are shown to its asker alone.
type Route struct {
	Reminded   uint32    `json:"reminded,omitempty"`  // reminders that have been due
	RemindedAt time.Time `json:"remindedAt,omitzero"` // the time of the last
	RemindsAt  time.Time `json:"remindsAt,omitzero"`  // the time of the next
	Steps      []Step    `json:"escalations,omitempty"`
}

// Step is an escalation of a form.
type Step struct {
	To    ID        `json:"to"`
	Name  string    `json:"toName,omitempty"`
	At    time.Time `json:"at"`              // when it was made, or will be
	Cause string    `json:"cause,omitempty"` // escalated, unreachable, or revoked if a forward was taken back; "" if it is to come
}

// ForwardStep is a step by which a form came to the agent: a forward, or the escalation before all of them. By hand, its Cause is "".
type ForwardStep struct {
	By     ID           `json:"by"` // the forwarder; of an escalation, the agent that was asked
	ByName string       `json:"byName,omitempty"`
	To     ID           `json:"to,omitempty"` // "" for the agent itself
	ToName string       `json:"toName,omitempty"`
	Cause  string       `json:"cause,omitempty"` // escalated; away, if By was away until Until; or member, if To is one of the group By
	At     time.Time    `json:"at,omitzero"`
	Until  time.Time    `json:"until,omitzero"`
	After  events.Delay `json:"after,omitzero"` // of an escalation
}

// Forwarded is an agent to which a form was forwarded, and why, as in ForwardStep.
type Forwarded struct {
	Party
	By     ID        `json:"by,omitempty"` // the forwarder, if it is not the agent itself
	ByName string    `json:"byName,omitempty"`
	Cause  string    `json:"cause,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

// Votes are the votes on a form that needs several. Have counts those that agree, with the answer that settled the form.
type Votes struct {
	Need    uint32  `json:"need"`
	Have    uint32  `json:"have"`
	Veto    bool    `json:"veto"`             // one denial settles the form
	NoSelf  bool    `json:"noSelf,omitempty"` // agents of the asker's own host do not count
	Cast    []Vote  `json:"cast,omitempty"`
	Waiting []Party `json:"waiting,omitempty"` // whose votes are to come; to the asker alone
	Own     string  `json:"own,omitempty"`     // of the client's agent: cast, void, counted or notCounted; "" if it has not voted
	VotedAs *Party  `json:"votedAs,omitempty"` // the agent as whom the caller has voted: a vote as the client's agent counts beside it, and needs SecondVote
}

// Vote is the vote of an agent. The answer that settles a form is its outcome, and none of these.
type Vote struct {
	By      ID        `json:"by"`
	ByName  string    `json:"byName,omitempty"` // the client's agent's name for By
	Outcome string    `json:"outcome"`          // answered, declined, or the decision about a call
	At      time.Time `json:"at"`
	Note    string    `json:"note,omitempty"`
	Void    bool      `json:"void,omitempty"` // it was on the question before the last amendment
}

// Archived describes a message in a list whose content is in a segment of the node's archive that is elsewhere. Its type
// is "archived".
type Archived struct {
	Form    bool      `json:"form"`            // it is a form, request or approval, which has ended
	Segment uint64    `json:"segment"`         // the first commit of the segment
	From    time.Time `json:"from"`            // the time of that
	To      time.Time `json:"to"`              // the time of its last commit
	Place   string    `json:"place,omitempty"` // where it was moved to, if that is known
	Hint    string    `json:"hint"`            // the command that brings it back
}

// Party is another agent, with the viewer's name for it if there is one.
type Party struct {
	ID   ID     `json:"id"`
	Name string `json:"name,omitempty"`
}

// UnmarshalJSON reads a message and keeps its text as Raw.
func (m *Message) UnmarshalJSON(b []byte) error {
	type plain Message
	*m = Message{}
	m.Raw = append(m.Raw, b...)
	return json.Unmarshal(b, (*plain)(m))
}

// ID returns the ID that names the message in every method.
func (m Message) ID() ID { return m.MessageID }

// View selects messages: with All also what the agent sent, and what it dismissed or snoozed; with Pending only what waits
// for its answer and is not snoozed; with Snoozed, Done or Unread only that. Done is what was received, and is dismissed or
// settled. The zero View selects what was received and not dismissed.
type View = view.MessageFilter

// messagePage is a page of messages.
type messagePage struct {
	Messages []Message `json:"messages"`
	Cursor   uint64    `json:"cursor"`
	Next     uint64    `json:"next,omitempty"`
}

// List yields the messages of a view by number, read page by page. An error comes last.
func (c *Client) List(ctx context.Context, v View) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for r := (api.ListMessagesRequest{MessageFilter: v, Limit: c.pageSize}); ; {
			page, err := get[messagePage](ctx, c, "list_messages", r)
			if err != nil {
				yield(Message{}, err)
				return
			}
			for _, m := range page.Messages {
				if !yield(m, nil) {
					return
				}
			}
			if r.First = page.Next; page.Next == 0 {
				return
			}
		}
	}
}

// Last returns the messages of a view that came last, by number, read page by page. It returns at most limit.
func (c *Client) Last(ctx context.Context, v View, limit int) ([]Message, error) {
	var all []Message
	for r := (api.ListMessagesRequest{MessageFilter: v}); len(all) < limit; r.Before = all[0].Number {
		r.Last = limit - len(all)
		page, err := get[messagePage](ctx, c, "list_messages", r)
		if err != nil {
			return nil, err
		}
		if all = append(page.Messages, all...); len(page.Messages) == 0 || all[0].Number == 0 {
			break
		}
	}
	return all, nil
}

// Message returns one message.
func (c *Client) Message(ctx context.Context, id ID) (Message, error) {
	return get[Message](ctx, c, "get_message", api.MessageRequest{FormRef: refTo(id)})
}

// Sent is an accepted message. It is on the node's disk.
type Sent struct {
	Message     ID     `json:"message"`
	Number      uint64 `json:"number"`
	Unreachable bool   `json:"unreachable,omitempty"` // it, or what it gives, goes there when it can

	Given []string `json:"given,omitempty"` // references of the text by which something was handed over, as they were written
	Plain []string `json:"plain,omitempty"` // what looks like a reference and was taken as text
}

// Send sends a message, with references as @edge:name or @name. Its priority is normal unless one is given.
func (c *Client) Send(ctx context.Context, to, text string, p ...parley.Priority) (Sent, error) {
	return get[Sent](ctx, c, "send", api.SendRequest{Recipient: to, Text: text, Priority: first(p)})
}

// first returns the given priority, if there is one.
func first(p []parley.Priority) parley.Priority {
	if len(p) == 0 {
		return ""
	}
	return p[0]
}

// Reply sends a message to the other party of one.
func (c *Client) Reply(ctx context.Context, to ID, text string, p ...parley.Priority) (Sent, error) {
	return get[Sent](ctx, c, "reply", api.ReplyRequest{FormRef: refTo(to), Text: text, Priority: first(p)})
}

// Adopt binds a name to the value that a message carries under an edge. An empty name is the edge's.
func (c *Client) Adopt(ctx context.Context, message ID, edge, name string) error {
	return c.Call(ctx, "adopt", api.AdoptRequest{FormRef: refTo(message), Edge: edge, Name: name}, nil)
}

// Dismiss takes a message out of view.
func (c *Client) Dismiss(ctx context.Context, message ID) error {
	return c.Call(ctx, "dismiss", api.MessageRequest{FormRef: refTo(message)}, nil)
}

// Restore brings a message back into view that was dismissed.
func (c *Client) Restore(ctx context.Context, message ID) error {
	return c.Call(ctx, "restore_message", api.MessageRequest{FormRef: refTo(message)}, nil)
}

// Snooze takes a message out of the list of those that wait, until a time. Then it comes back unread. The zero time brings
// it back now.
func (c *Client) Snooze(ctx context.Context, message ID, until time.Time) error {
	r := api.SnoozeRequest{FormRef: refTo(message)}
	if !until.IsZero() {
		r.Until = capabilities.At(until)
	}
	return c.Call(ctx, "snooze", r, nil)
}

// MarkRead marks messages as read, or with unread as not read. Without numbers it marks the newest 1,000 unread messages as
// read. It returns the number of unread messages that are left.
func (c *Client) MarkRead(ctx context.Context, unread bool, numbers ...uint64) (left int, err error) {
	got, err := get[api.MarkReadResponse](ctx, c, "mark_read", api.MarkReadRequest{Numbers: numbers, Unread: unread})
	return got.Unread, err
}

// Counts are the numbers of messages in the lists of an inbox.
type Counts = view.MessageCounts

// Counts returns the numbers of messages in the lists of the agent's inbox.
func (c *Client) Counts(ctx context.Context) (Counts, error) {
	return get[Counts](ctx, c, "count_messages", api.CountMessagesRequest{})
}

// Unmoved is a message that MoveMessages did not move, and why.
type Unmoved = api.Unmoved

// MoveMessages dismisses, restores or snoozes several messages in one commit: at most 256. Until is for snoozed ones alone. It
// returns those that are refused.
func (c *Client) MoveMessages(ctx context.Context, do string, until time.Time, messages ...ID) ([]Unmoved, error) {
	r := api.MoveMessagesRequest{Do: do}
	if !until.IsZero() {
		r.Until = capabilities.At(until)
	}
	for _, m := range messages {
		r.Messages = append(r.Messages, refTo(m))
	}
	got, err := get[api.MoveMessagesResponse](ctx, c, "move_messages", r)
	return got.Refused, err
}

// SaveDraft keeps the agent's unfinished answer to a form, until the form ends. Texts are as for AnswerText, but may be wrong;
// none remove the draft. It returns when the draft, or a later one, is on the node's disk.
func (c *Client) SaveDraft(ctx context.Context, form ID, texts map[string][]string) error {
	return c.Call(ctx, "save_draft", api.SaveDraftRequest{FormRef: refTo(form), Texts: textsOf(texts)}, nil)
}

// SaveMessageDraft keeps an unfinished text until it is sent: of a message to an agent, or of a reply to a message.
// Either to or reply is given. An empty text removes it.
func (c *Client) SaveMessageDraft(ctx context.Context, to string, reply ID, text string) error {
	return c.Call(ctx, "save_draft", api.SaveDraftRequest{FormRef: replyRef(reply), To: to, Text: &text}, nil)
}

// MessageDraft returns the unfinished text of a message to an agent, or of a reply to a message.
func (c *Client) MessageDraft(ctx context.Context, to string, reply ID) (view.Draft, error) {
	return get[view.Draft](ctx, c, "fetch_draft", api.FetchDraftRequest{FormRef: replyRef(reply), To: to, Reply: to == ""})
}

// replyRef returns the reference to a message, or none for none.
func replyRef(reply ID) api.FormRef {
	if reply == "" {
		return api.FormRef{}
	}
	return refTo(reply)
}

// Draft returns the agent's unfinished answer to a form. It has no texts if there is none.
func (c *Client) Draft(ctx context.Context, form ID) (view.Draft, error) {
	return get[view.Draft](ctx, c, "fetch_draft", api.FetchDraftRequest{FormRef: refTo(form)})
}
