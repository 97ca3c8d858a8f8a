package api

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
)

// Batch holds messages that changed together, in the order of their numbers.
type Batch struct {
	From, UpTo uint64 // cursors before and after them
	Messages   []view.Message
	more       bool // other messages between the cursors follow
}

// Seen returns the cursor up to which all changes are delivered with the batch.
func (b Batch) Seen() uint64 {
	if b.more {
		return b.From
	}
	return b.UpTo
}

// After returns the position behind the message at an index.
func (b Batch) After(i int) Position {
	if i == len(b.Messages)-1 && !b.more {
		return Position{seen: b.UpTo}
	}
	return Position{seen: b.From, upTo: b.UpTo, number: b.Messages[i].Number}
}

// Follow delivers the messages that a filter picks, batch by batch, from a position on. It ends with ctx or an error.
// It reads the next batch only when the last was delivered: a slow reader gets larger batches, and delays nobody else.
// It returns nil when ctx has ended.
func Follow(ctx context.Context, m Mail, f view.MessageFilter, at Position, deliver func(Batch) error) error {
	r := NewFollower(m, f, at)
	for ctx.Err() == nil {
		b, err := r.next(ctx, m.Changes)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := deliver(b); err != nil {
			return err
		}
	}
	return nil
}

// restAtOnce is the most messages of a page of the rest of a batch.
const restAtOnce = 500

// Follower reads the messages that a filter picks, batch by batch, from a position on.
type Follower struct {
	mail   Mail
	filter view.MessageFilter
	at     Position
}

// NewFollower returns a follower that begins at a position.
func NewFollower(m Mail, f view.MessageFilter, at Position) *Follower {
	return &Follower{mail: m, filter: f, at: at}
}

// Next returns the next batch, which is empty if nothing has changed. It does not wait.
func (r *Follower) Next(ctx context.Context) (Batch, error) { return r.next(ctx, r.mail.Since) }

// next returns the rest of a batch of which the reader has a part, and then what read returns.
func (r *Follower) next(ctx context.Context, read func(context.Context, view.MessageFilter, uint64) (view.Inbox, error)) (Batch, error) {
	for r.at.isWithin() {
		if b, err := r.rest(ctx); err != nil || len(b.Messages) > 0 {
			return b, err
		}
	}
	in, err := read(ctx, r.filter, r.at.seen)
	if err != nil {
		return Batch{}, err
	}
	b := Batch{From: r.at.seen, UpTo: in.Cursor, Messages: in.Messages}
	r.at = At(in.Cursor)
	return b, nil
}

// rest returns the rest of a batch, or a page of it, and advances the position. A page is read by number: a position has
// room for a number, but not for the messages that changed first.
func (r *Follower) rest(ctx context.Context) (Batch, error) {
	in, err := r.mail.Since(ctx, r.filter, r.at.seen)
	if err == nil && r.at.seen < in.Cursor && in.Cursor < r.at.upTo {
		in, err = r.mail.Page(ctx, r.filter, r.at.number+1, restAtOnce)
	}
	if err != nil {
		return Batch{}, err
	}
	b := Batch{From: r.at.seen, UpTo: r.at.upTo, Messages: r.at.rest(in.Messages), more: in.Next != 0}
	if b.more {
		r.at.number = in.Next - 1
	} else {
		r.at = At(b.UpTo)
	}
	return b, nil
}

// Cursor is the text of a position. In JSON it may be a number too.
type Cursor string

// UnmarshalJSON reads a JSON number or string.
func (c *Cursor) UnmarshalJSON(b []byte) error {
	var which RefText
	err := which.UnmarshalJSON(b)
	*c = Cursor(which)
	return err
}

// Position is the progress of a subscription: it has delivered all changes up to seen. Of the changes from there to
// upTo, it has delivered the messages up to a number.
//
// Messages that changed together are delivered by number, each with the cursor of its own position. A client that comes
// back with the cursor of any of them goes on with the next one.
type Position struct{ seen, upTo, number uint64 }

// isWithin reports whether a part of the changes before upTo was not delivered.
func (p Position) isWithin() bool { return p.upTo != 0 }

// rest returns those of some messages that changed after seen and are still to be delivered. A message that changed again
// after upTo is delivered later: delivered now too, it would come twice to a client that is cut off in between.
func (p Position) rest(changed []view.Message) []view.Message {
	return slices.DeleteFunc(changed, func(e view.Message) bool {
		return e.Number <= p.number || e.Changed <= p.seen || e.Changed > p.upTo
	})
}

// String writes the position as a cursor, as ParsePosition reads it.
func (p Position) String() string {
	s := strconv.FormatUint(p.seen, 10)
	if p.isWithin() {
		s += "." + strconv.FormatUint(p.upTo, 10) + "." + strconv.FormatUint(p.number, 10)
	}
	return s
}

// At returns the position at which all changes up to a cursor are delivered.
func At(cursor uint64) Position { return Position{seen: cursor} }

// ParsePosition reads a cursor; none is the start. It refuses with INVALID_ARGUMENT.
func ParsePosition(cursor string) (p Position, err error) {
	if cursor == "" {
		return p, nil
	}
	into := []*uint64{&p.seen, &p.upTo, &p.number}
	for i, part := range strings.SplitN(cursor, ".", len(into)) {
		if *into[i], err = strconv.ParseUint(part, 10, 64); err != nil {
			break
		}
	}
	if err != nil || p.String() != cursor || p.isWithin() && p.upTo < p.seen { // one way to write each
		return Position{}, parley.Refuse(parley.InvalidArgument, "%.80q is not a cursor", cursor)
	}
	return p, nil
}
