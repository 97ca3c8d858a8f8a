package gateway

import (
	"context"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
)

// maxFeeds bounds the mailboxes that one stream tells of.
const maxFeeds = 100

// feed is a mailbox that a stream tells of, from a cursor on.
type feed struct {
	local          // its agent is looked for when it is followed, if there is none
	cursor  uint64 // where the reader was last
	resumes bool   // the reader says by Last-Event-ID where it was
}

// batch is what changed in one of the feeds, or why there will be nothing.
type batch struct {
	number int // which of the feeds
	feed   feed
	in     view.Inbox
	gone   error
}

// feeds gives what the reader asks for. Pages that share a stream ask for one feed each, as CURSOR:NAME in "feed".
// Where there is a "cursor", there is a feed of the agent itself before them.
func (v *viewing) feeds() ([]feed, error) {
	var feeds []feed
	cursor, follow, err := v.cursor()
	if err != nil {
		return nil, err
	}
	if follow {
		feeds = append(feeds, feed{local: local{v.as, v.agent}, cursor: cursor, resumes: true})
	}
	asked := v.r.URL.Query()["feed"]
	if len(asked) > maxFeeds {
		return nil, parley.Refuse(parley.InvalidArgument, "a stream tells of %d mailboxes at most", maxFeeds)
	}
	for _, text := range asked {
		from, as, _ := strings.Cut(text, ":")
		f := feed{local: local{name: as}}
		if f.cursor, err = readCursor(from); err != nil {
			return nil, err
		}
		feeds = append(feeds, f)
	}
	return feeds, nil
}

// cursor is where the reader was last.
func (v *viewing) cursor() (cursor uint64, follow bool, err error) {
	text := v.r.URL.Query().Get("cursor")
	if last := v.r.Header.Get("Last-Event-ID"); last != "" {
		text = last
	}
	if text == "" {
		return 0, false, nil
	}
	cursor, err = readCursor(text)
	return cursor, err == nil, err
}

func readCursor(text string) (uint64, error) {
	cursor, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, parley.Refuse(parley.InvalidArgument, "%.40q is no cursor", text)
	}
	return cursor, nil
}

// follow hands over what changes in a feed. The next is read only when the last was taken. One that cannot be followed
// does not end the others.
func (s *Server) follow(ctx context.Context, end func(), i int, f feed, to chan<- batch) {
	hand := func(b batch) {
		b.number, b.feed = i, f
		select {
		case to <- b:
		case <-ctx.Done():
		}
	}
	if f.agent == nil {
		var err error
		if f.agent, err = s.agent(ctx, f.name); err != nil {
			hand(batch{gone: err})
			return
		}
	}
	for first := true; ctx.Err() == nil; first = false {
		in, err := f.agent.Changes(ctx, view.MessageFilter{All: true}, f.cursor)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && first:
			hand(batch{gone: err})
			return
		case err != nil:
			end() // the reader comes back
			return
		}
		f.cursor = in.Cursor
		hand(batch{in: in})
	}
}
