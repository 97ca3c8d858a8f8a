package gateway

import (
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

// Cursor is where a subscription is to go on. In JSON it may be a number too.
type Cursor string

// UnmarshalJSON reads a JSON number or string.
func (c *Cursor) UnmarshalJSON(b []byte) error {
	var which api.Which
	err := which.UnmarshalJSON(b)
	*c = Cursor(which)
	return err
}

// position is how far a subscription has come: it has told of all that changed up to seen, and, of what changed
// from there to upTo, of the messages up to a number.
//
// Messages that changed together are told of by number, each with the cursor of its own position. So a client that
// comes back with the cursor of any of them goes on with the one after it.
type position struct{ seen, upTo, number uint64 }

// isWithin reports whether there is a rest to tell of what changed before upTo.
func (p position) isWithin() bool { return p.upTo != 0 }

// rest gives those of the messages that changed after seen that are still to be told. What has changed again, later than
// upTo, is left to be told by going on from there: told now as well, it would come twice to who is cut off in between.
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
