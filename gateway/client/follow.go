package client

import (
	"bytes"
	"context"
	"iter"
	"strconv"
	"strings"

	"parley"
)

// Cursor is where to go on following, as a WebSocket of the node's has it too. "" is the beginning.
type Cursor string

type following struct {
	View
	Cursor uint64 `json:"cursor"`
	WaitMs *int64 `json:"waitMs,omitempty"`
}

// Follow yields the messages of a view as they are after a cursor, then each that comes or changes, until ctx ends or an
// error, which comes last. It goes on through restarts of the node. Each message has its Cursor: Follow from there yields what
// came after it, each change once, in this program or the next. From the beginning of a large mailbox the first answer is
// large: to List first asks for less at once.
func (c *Client) Follow(ctx context.Context, v View, from Cursor) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		at, err := parsePosition(from)
		var told, batch []Message // told: of a batch that was told in part before, as it is now
		for err == nil {
			if batch, err = c.batch(ctx, v, &at, &told); err != nil {
				break
			}
			for _, m := range batch {
				if !yield(m, nil) {
					return
				}
			}
		}
		yield(Message{}, err)
	}
}

// batch waits for messages that changed together after a position, gives them with their cursors, and moves on.
func (c *Client) batch(ctx context.Context, v View, at *position, told *[]Message) ([]Message, error) {
	long, within := turnTime, at.isWithin()
	if within {
		long = 0 // they changed long ago, or are not to be shown any more
	}
	ms := turn(ctx, long)
	page, err := get[listed](ctx, c, "follow_messages", following{v, at.seen, &ms})
	if err != nil {
		return nil, err
	}
	var batch []Message
	if within {
		batch, page.Cursor = at.rest(page.Messages), at.upTo
	} else {
		batch = unlike(page.Messages, *told)
	}
	for i := range batch {
		batch[i].Cursor = position{at.seen, page.Cursor, batch[i].Number}.cursor()
	}
	*at, *told = position{seen: page.Cursor}, nil
	if len(batch) > 0 {
		batch[len(batch)-1].Cursor = at.cursor()
	}
	if within {
		*told = batch
	}
	return batch, nil
}

// unlike gives the messages that are not as they were told before.
func unlike(messages, told []Message) []Message {
	if len(told) == 0 {
		return messages
	}
	before := make(map[uint64]Message, len(told))
	for _, m := range told {
		before[m.Number] = m
	}
	var changed []Message
	for _, m := range messages {
		if was, ok := before[m.Number]; !ok || !bytes.Equal(was.Raw, m.Raw) {
			changed = append(changed, m)
		}
	}
	return changed
}

// position is how far following has come: all that changed up to seen was told, and, of what changed from there to upTo,
// the messages up to a number.
type position struct{ seen, upTo, number uint64 }

// isWithin reports whether there is a rest to tell of what changed before upTo.
func (p position) isWithin() bool { return p.upTo != 0 }

// rest gives those of the messages that changed after seen that are still to be told.
func (p position) rest(changed []Message) []Message {
	var rest []Message
	for _, m := range changed {
		if m.Number > p.number {
			rest = append(rest, m)
		}
	}
	return rest
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
