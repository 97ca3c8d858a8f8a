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
}

// After returns the position behind the message at an index.
func (b Batch) After(i int) Position {
	if i == len(b.Messages)-1 {
		return Position{seen: b.UpTo}
	}
	return Position{seen: b.From, upTo: b.UpTo, number: b.Messages[i].Number}
}

// Follow delivers the messages that a filter picks, batch by batch, from a position on, until ctx ends or an error. It
// reads the next batch only when the last was delivered: a slow reader gets larger batches, and delays nobody else. It
// returns nil when ctx has ended.
func Follow(ctx context.Context, m Mail, f view.MessageFilter, at Position, deliver func(Batch) error) error {
	seen := at.seen
	if at.isWithin() {
		if err := finish(ctx, m, f, at, deliver); err != nil {
			return err
		}
		seen = at.upTo
	}
	for ctx.Err() == nil {
		in, err := m.Changes(ctx, f, seen)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := deliver(Batch{From: seen, UpTo: in.Cursor, Messages: in.Messages}); err != nil {
			return err
		}
		seen = in.Cursor
	}
	return nil
}

// finish delivers the rest of a batch of which the reader has a part.
func finish(ctx context.Context, m Mail, f view.MessageFilter, at Position, deliver func(Batch) error) error {
	for at.seen < at.upTo {
		in, err := m.Since(ctx, f, at.seen)
		if err != nil {
			return err
		}
		if in.Cursor <= at.seen {
			return nil
		}
		end := min(in.Cursor, at.upTo)
		if err := deliver(Batch{From: at.seen, UpTo: end, Messages: at.rest(in.Messages)}); err != nil {
			return err
		}
		at.seen = end
	}
	return nil
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

// Position is the progress of a subscription: it has delivered all changes up to seen, and, of the changes from there to
// upTo, the messages up to a number.
//
// Messages that changed together are delivered by number, each with the cursor of its own position. A client that comes
// back with the cursor of any of them goes on with the next one.
type Position struct{ seen, upTo, number uint64 }

// isWithin reports whether a part of the changes before upTo was not delivered.
func (p Position) isWithin() bool { return p.upTo != 0 }

// rest returns the messages that are still to be delivered of those that changed after seen. A message that changed again
// after upTo is delivered later: delivered now too, it would come twice to a client that is cut off in between.
func (p Position) rest(changed []view.Message) []view.Message {
	return slices.DeleteFunc(changed, func(e view.Message) bool { return e.Number <= p.number || e.Changed > p.upTo })
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
