package client

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

// Message is a message as the agent of its mailbox sees it. Names are the present ones of that agent; "" where it has none.
type Message struct {
	view.Message

	Cursor Cursor          `json:"-"` // of a followed message: the position after it
	Raw    json.RawMessage `json:"-"` // the message as the node sent it
}

// UnmarshalJSON reads a message and keeps its text as Raw.
func (m *Message) UnmarshalJSON(b []byte) error {
	*m = Message{Raw: slices.Clone(b)}
	return m.Message.UnmarshalJSON(b)
}

// ID returns the ID that names the message in every method.
func (m Message) ID() ID { return idOf(m.MessageID) }

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
type Sent struct{ view.Sent }

// ID returns the ID that names the message in every method.
func (s Sent) ID() ID { return idOf(s.Message) }

// Post is a message as its sender gives it. Text has references as @edge:name or @name.
type Post = parley.Post

// Send sends a message. With a key it is sent once, also if a call is repeated.
func (c *Client) Send(ctx context.Context, to string, p Post) (Sent, error) {
	return get[Sent](ctx, c, "send", api.SendRequest{Recipient: to, Post: p})
}

// SendAll sends a message, as Send does, to several recipients: to all of them, or to nobody.
func (c *Client) SendAll(ctx context.Context, to []string, p Post) (Sent, error) {
	return get[Sent](ctx, c, "send", api.SendRequest{Recipients: to, Post: p})
}

// ReplyAll sends a message, as Send does, to the sender of one, and to those of its other recipients whom the agent can reach. NotTo
// of the result has the rest.
func (c *Client) ReplyAll(ctx context.Context, to ID, p Post) (Sent, error) {
	return get[Sent](ctx, c, "reply", api.ReplyRequest{FormRef: refTo(to), All: true, Post: p})
}

// Reply sends a message, as Send does, to the other party of one.
func (c *Client) Reply(ctx context.Context, to ID, p Post) (Sent, error) {
	return get[Sent](ctx, c, "reply", api.ReplyRequest{FormRef: refTo(to), Post: p})
}

// Schedule is a message that is sent later.
type Schedule = view.Schedule

// Schedules are the messages that the agent sends later.
type Schedules struct{ c *Client }

// Schedules returns the messages that the agent sends later.
func (c *Client) Schedules() Schedules { return Schedules{c} }

// At has a message sent at a time. With a key it is scheduled once, also if a call is repeated.
func (s Schedules) At(ctx context.Context, to string, p Post, at time.Time) (Schedule, error) {
	return get[Schedule](ctx, s.c, "schedule", api.ScheduleRequest{Recipient: to, Post: p, At: capabilities.At(at)})
}

// Every has a message sent at the times of a series, which is a cron expression of five fields, or as @daily. Without a zone,
// as Europe/Berlin, they are the node's.
func (s Schedules) Every(ctx context.Context, to string, p Post, series, zone string) (Schedule, error) {
	return get[Schedule](ctx, s.c, "schedule", api.ScheduleRequest{Recipient: to, Post: p, Every: series, Zone: zone})
}

// List returns all schedules, by their numbers.
func (s Schedules) List(ctx context.Context) ([]Schedule, error) {
	got, err := get[view.Schedules](ctx, s.c, "list_schedules", api.ListSchedulesRequest{})
	return got.Schedules, err
}

// End ends a schedule by its number.
func (s Schedules) End(ctx context.Context, number uint64) error {
	return s.c.Call(ctx, "end_schedule", api.EndScheduleRequest{Schedule: number}, nil)
}

// Adopt binds a name to the value that a message carries under an edge. An empty name is the edge's.
func (c *Client) Adopt(ctx context.Context, message ID, edge, name string) error {
	return c.Call(ctx, "adopt", api.AdoptRequest{FormRef: refTo(message), Edge: edge, Name: name}, nil)
}

// Acknowledge records that the agent has taken note of a message that it received. Its sender is told.
func (c *Client) Acknowledge(ctx context.Context, message ID) error {
	return c.Call(ctx, "acknowledge", api.MessageRequest{FormRef: refTo(message)}, nil)
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

// Search describes messages: see api.SearchRequest for its members. A filter that is empty picks all messages.
type Search = api.SearchRequest

// Found are the messages that a search has found, in its order.
type Found struct {
	Messages []Message `json:"messages"`
	Next     int       `json:"next,omitempty"`   // the Skip of the next page; 0 if there are no more
	Behind   uint64    `json:"behind,omitempty"` // events of the mailbox that were not looked at
}

// Search returns the messages of the agent that have some words, a sender, a time or an outcome.
func (c *Client) Search(ctx context.Context, s Search) (Found, error) {
	return get[Found](ctx, c, "search", s)
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
