package client

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/mux"
)

// Cursor is a position from which to follow. The node's WebSockets have the same cursors. "" is the beginning.
type Cursor string

// Follow yields the messages of a view that changed after a cursor, and then each new or changed one. It ends with ctx,
// or with an error as the last item. It continues through restarts of the node. Follow from the Cursor of a message
// yields each later change once, also in another process. From the beginning Follow reads the mailbox page by page.
func (c *Client) Follow(ctx context.Context, v View, from Cursor) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		f := followingMessages{client: c, view: v, yield: yield, again: again{client: c, operation: "follow_messages"}}
		var err error
		for f.at, err = parsePosition(from); err == nil; {
			if err = f.read(ctx); f.stopped {
				return
			}
		}
		yield(Message{}, err)
	}
}

// followingMessages is one use of Follow.
type followingMessages struct {
	client  *Client
	view    View
	at      position
	yield   func(Message, error) bool
	stopped bool // yield has returned false
	again   again
}

// read reads what follows the position: a page of the mailbox, or what comes on one connection until that is lost. Over
// HTTP it is what changes within one waiting call.
func (f *followingMessages) read(ctx context.Context) error {
	if f.at.seen > 0 {
		s, err := f.open(ctx)
		if err == nil && s != nil {
			err = f.take(ctx, s)
			s.close()
		}
		if f.stopped {
			return nil
		}
		if err != nil {
			return f.again.after(ctx, err)
		}
	}
	batch, err := f.at.batch(ctx, f.client, f.view)
	for _, m := range batch {
		if f.stopped = !f.yield(m, nil); f.stopped {
			break
		}
	}
	return err
}

// open begins to follow on a connection. It returns nil if calls go by HTTP.
func (f *followingMessages) open(ctx context.Context) (*stream, error) {
	b, err := f.client.request("", struct {
		View
		Cursor Cursor `json:"cursor"`
	}{f.view, f.at.cursor()})
	if err != nil {
		return nil, err
	}
	return f.client.transport.follow(ctx, mux.Follow, b)
}

// take yields what comes on a connection, until an error.
func (f *followingMessages) take(ctx context.Context, s *stream) error {
	for !f.stopped {
		text, err := s.next(ctx)
		if err != nil {
			return err
		}
		f.client.saw()
		f.again.pause = 0
		var item struct {
			Cursor  Cursor  `json:"cursor"`
			Message Message `json:"message"`
		}
		if err := json.Unmarshal(text, &item); err != nil {
			return unreadable("follow_messages", err)
		}
		if f.at, err = parsePosition(item.Cursor); err != nil {
			return unreadable("follow_messages", err)
		}
		item.Message.Cursor = item.Cursor
		f.stopped = !f.yield(item.Message, nil)
	}
	return nil
}

// batch blocks until messages have changed after a position. It returns them, or a page of them, with their cursors, and
// advances the position.
func (at *position) batch(ctx context.Context, c *Client, v View) ([]Message, error) {
	switch {
	case at.seen == 0:
		return at.page(ctx, c, v)
	case at.isWithin():
		return at.rest(ctx, c, v)
	}
	page, err := c.changes(ctx, v, at.seen, turnTime)
	if err != nil {
		return nil, err
	}
	return at.pass(page.Messages, page.Cursor), nil
}

// page returns the next page, by number, of the messages that changed up to a version: the one at which the first page of
// the mailbox was read, or the end of a batch.
func (at *position) page(ctx context.Context, c *Client, v View) ([]Message, error) {
	r := api.ListMessagesRequest{MessageFilter: v, Limit: c.pageSize}
	if at.isWithin() {
		r.First = at.number + 1
	}
	page, err := get[messagePage](ctx, c, "list_messages", r)
	if err != nil {
		return nil, err
	}
	if !at.isWithin() {
		at.upTo = max(page.Cursor, 1) // a mailbox begins with its agent's making
	}
	batch := at.undelivered(page.Messages)
	if page.Next == 0 {
		return at.pass(batch, at.upTo), nil
	}
	for i := range batch {
		batch[i].Cursor = position{at.seen, at.upTo, batch[i].Number}.cursor()
	}
	at.number = page.Next - 1
	return batch, nil
}

// rest returns the undelivered messages of a batch that was delivered in part, or the next page of them.
func (at *position) rest(ctx context.Context, c *Client, v View) ([]Message, error) {
	since, err := c.changes(ctx, v, at.seen, 0) // they changed long ago, or are not to be shown any more
	if err != nil {
		return nil, err
	}
	if at.seen < since.Cursor && since.Cursor < at.upTo { // not all fit: a cursor has room for a number only
		return at.page(ctx, c, v)
	}
	rest := slices.DeleteFunc(at.undelivered(since.Messages), func(m Message) bool { return m.Number <= at.number })
	return at.pass(rest, at.upTo), nil
}

// changes waits at most a duration for messages that have changed after a version of the mailbox.
func (c *Client) changes(ctx context.Context, v View, after uint64, long time.Duration) (messagePage, error) {
	ms := turn(ctx, long)
	return get[messagePage](ctx, c, "follow_messages", api.FollowMessagesRequest{MessageFilter: v, Cursor: after, WaitMs: &ms})
}

// position is the progress of Follow: it has delivered all changes up to seen. Of the changes from there to upTo, it
// has delivered the messages up to a number.
type position struct{ seen, upTo, number uint64 }

// isWithin reports whether a part of the changes before upTo was not delivered.
func (p position) isWithin() bool { return p.upTo != 0 }

// undelivered returns those messages that changed between seen and upTo. A message that changed again after upTo comes later.
func (p position) undelivered(batch []Message) []Message {
	return slices.DeleteFunc(batch, func(m Message) bool { return m.Changed <= p.seen || m.Changed > p.upTo })
}

// pass returns the messages of a batch with their cursors, and advances to its end.
func (p *position) pass(batch []Message, end uint64) []Message {
	for i := range batch {
		batch[i].Cursor = position{p.seen, end, batch[i].Number}.cursor()
	}
	*p = position{seen: end}
	if len(batch) > 0 {
		batch[len(batch)-1].Cursor = p.cursor()
	}
	return batch
}

func (p position) cursor() Cursor {
	s := strconv.FormatUint(p.seen, 10)
	if p.isWithin() {
		s += "." + strconv.FormatUint(p.upTo, 10) + "." + strconv.FormatUint(p.number, 10)
	}
	return Cursor(s)
}

// parsePosition reads a cursor. It refuses with INVALID_ARGUMENT.
func parsePosition(c Cursor) (p position, err error) {
	if c == "" {
		return p, nil
	}
	into := []*uint64{&p.seen, &p.upTo, &p.number}
	for i, part := range strings.SplitN(string(c), ".", len(into)) {
		if *into[i], err = strconv.ParseUint(part, 10, 64); err != nil {
			break
		}
	}
	if err != nil || p.cursor() != c || p.isWithin() && p.upTo < p.seen { // one way to write each
		return position{}, parley.Refuse(parley.InvalidArgument, "%.80q is not a cursor", string(c))
	}
	return p, nil
}
