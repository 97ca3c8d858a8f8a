package client

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"parley"
	"parley/actors/view"
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

// Found are the messages that a search has found, in its order.
type Found struct {
	Messages []Message `json:"messages"`
	Next     int       `json:"next,omitempty"`   // the Skip of the next page; 0 if there are no more
	Behind   uint64    `json:"behind,omitempty"` // events of the mailbox that were not looked at
}
