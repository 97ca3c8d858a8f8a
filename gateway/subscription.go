package gateway

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

// subscription follows the messages of one mailbox that a filter picks, from a position on.
type subscription struct {
	local  // follow looks up the agent if there is none
	filter view.MessageFilter
	at     position
}

// batch holds messages that changed together, in the order of their numbers.
type batch struct {
	from, upTo uint64 // cursors before and after them
	messages   []view.Message
}

// after returns the position behind the message at an index.
func (b batch) after(i int) position {
	if i == len(b.messages)-1 {
		return position{seen: b.upTo}
	}
	return position{seen: b.from, upTo: b.upTo, number: b.messages[i].Number}
}

// follow delivers what changes, batch by batch, until ctx ends or an error. It reads the next batch only when the last
// was delivered: a slow reader gets larger batches, and delays nobody else.
func (s *Server) follow(ctx context.Context, sub subscription, deliver func(batch) error) error {
	if sub.agent == nil {
		var err error
		if sub.agent, err = s.agent(ctx, sub.name); err != nil {
			return err
		}
	}
	seen := sub.at.seen
	if sub.at.isWithin() {
		if err := s.finish(ctx, sub, deliver); err != nil {
			return err
		}
		seen = sub.at.upTo
	}
	for ctx.Err() == nil {
		in, err := sub.agent.Mail().Changes(ctx, sub.filter, seen)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := deliver(batch{from: seen, upTo: in.Cursor, messages: in.Messages}); err != nil {
			return err
		}
		seen = in.Cursor
	}
	return nil
}

// finish delivers the rest of a batch of which the reader has a part.
func (s *Server) finish(ctx context.Context, sub subscription, deliver func(batch) error) error {
	at := sub.at
	for at.seen < at.upTo {
		in, err := sub.agent.Mail().Since(ctx, sub.filter, at.seen)
		if err != nil {
			return err
		}
		if in.Cursor <= at.seen {
			return nil
		}
		end := min(in.Cursor, at.upTo)
		if err := deliver(batch{from: at.seen, upTo: end, messages: at.rest(in.Messages)}); err != nil {
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
	var which api.RefText
	err := which.UnmarshalJSON(b)
	*c = Cursor(which)
	return err
}

// position is the progress of a subscription: it has delivered all changes up to seen, and, of the changes from there to
// upTo, the messages up to a number.
//
// Messages that changed together are delivered by number, each with the cursor of its own position. A client that comes
// back with the cursor of any of them goes on with the next one.
type position struct{ seen, upTo, number uint64 }

// isWithin reports whether a part of the changes before upTo was not delivered.
func (p position) isWithin() bool { return p.upTo != 0 }

// rest returns the messages that are still to be delivered of those that changed after seen. A message that changed again
// after upTo is delivered later: delivered now too, it would come twice to a client that is cut off in between.
func (p position) rest(changed []view.Message) []view.Message {
	return slices.DeleteFunc(changed, func(e view.Message) bool { return e.Number <= p.number || e.Changed > p.upTo })
}

func (p position) String() string {
	s := strconv.FormatUint(p.seen, 10)
	if p.isWithin() {
		s += "." + strconv.FormatUint(p.upTo, 10) + "." + strconv.FormatUint(p.number, 10)
	}
	return s
}

// parsePosition reads a cursor; none is the start. It refuses with INVALID_ARGUMENT.
func parsePosition(cursor string) (p position, err error) {
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
		return position{}, parley.Refuse(parley.InvalidArgument, "%.80q is not a cursor", cursor)
	}
	return p, nil
}
