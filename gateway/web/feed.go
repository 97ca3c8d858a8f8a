package web

import (
	"context"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

// Bounds of the feeds of a stream.
const (
	maxFeeds = 100     // mailboxes that one stream follows
	maxBatch = 200     // messages of one event; a page that missed more is loaded again
	maxDrawn = 1 << 20 // bytes of HTML of one event
)

// feed is a mailbox that a stream follows.
type feed struct {
	local                // without an agent before it is followed
	at      api.Position // from which it is followed
	resumes bool         // the reader names its last cursor by Last-Event-ID
}

// feedBatch is a batch of a feed, or the error of reading it.
type feedBatch struct {
	api.Batch
	number int // of the feed in the request
	feed   feed
	gone   error
}

// changed is the event "messages": the rows of changed messages of a feed as HTML.
type changed struct {
	Feed     int     `json:"feed"` // its number in the request
	Cursor   uint64  `json:"cursor"`
	Messages []drawn `json:"messages"`
	Reload   bool    `json:"reload,omitempty"` // too many to draw
}

// drawn is the row of one message. HTML is "" for a dismissed one.
type drawn struct {
	Number uint64 `json:"number"`
	HTML   string `json:"html"`
}

// lostFeed is the event "gone": a feed that cannot be followed now.
type lostFeed struct {
	Feed    int         `json:"feed"`
	Code    parley.Code `json:"code"`
	Message string      `json:"message"`
}

// feeds returns the feeds of a request. Pages that share a stream ask for one each, as CURSOR:NAME in "feed". A "cursor"
// asks for a feed of the page's own agent, before them.
func (p *page) feeds() ([]feed, error) {
	var feeds []feed
	cursor := p.r.URL.Query().Get("cursor")
	if last := p.r.Header.Get("Last-Event-ID"); last != "" {
		cursor = last
	}
	if cursor != "" {
		at, err := cursorAt(cursor)
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, feed{local: local{p.as, p.agent}, at: at, resumes: true})
	}
	asked := p.r.URL.Query()["feed"]
	if len(asked) > maxFeeds {
		return nil, parley.Refuse(parley.InvalidArgument, "a stream tells of %d mailboxes at most", maxFeeds)
	}
	for _, text := range asked {
		from, as, _ := strings.Cut(text, ":")
		at, err := cursorAt(from)
		if err != nil {
			return nil, err
		}
		feeds = append(feeds, feed{local: local{name: as}, at: at})
	}
	return feeds, nil
}

// cursorAt returns the position of a cursor. Other than ParsePosition it refuses an empty one.
func cursorAt(cursor string) (api.Position, error) {
	if cursor == "" {
		return api.Position{}, parley.Refuse(parley.InvalidArgument, "%.40q is no cursor", cursor)
	}
	return api.ParsePosition(cursor)
}

// follow passes the batches of a feed to the stream. A feed that cannot be followed at all does not end the others. One
// that breaks off ends the stream, and the reader comes back.
func (s *stream) follow(ctx context.Context, number int, f feed) {
	pass := func(b feedBatch) error {
		b.number, b.feed = number, f
		select {
		case s.batches <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	begun := false
	err := func() (err error) {
		if f.agent == nil {
			if f.agent, err = s.site.Backend.Agent(ctx, s.principal, f.name); err != nil {
				return err
			}
		}
		return api.Follow(ctx, f.agent.Mail(), view.MessageFilter{All: true}, f.at, func(b api.Batch) error {
			begun = true
			return pass(feedBatch{Batch: b})
		})
	}()
	switch {
	case err == nil || ctx.Err() != nil:
	case begun:
		s.end()
	default:
		_ = pass(feedBatch{gone: err}) // it fails only when the stream has ended
	}
}

// rowOf returns the row of a message.
func (s *stream) rowOf(l local, m view.Message) row {
	s.name(&m)
	return newRow(s.base, l, m, s.site.readings.Of(&m))
}

// draw returns the event of a batch. If the messages are too many or too large for one event, it has none of them. It
// asks for a reload.
func (s *stream) draw(b feedBatch) (changed, error) {
	c := changed{Feed: b.number, Cursor: b.Seen(), Messages: []drawn{}, Reload: len(b.Messages) > maxBatch}
	if c.Reload {
		return c, nil
	}
	size := 0
	for i, e := range b.Messages {
		d := drawn{Number: e.Number}
		if !e.Dismissed {
			var err error
			if d.HTML, err = s.site.fragment(s.rowOf(b.feed.local, e)); err != nil {
				return c, err
			}
			if size += len(d.HTML); size > maxDrawn && i > 0 {
				c.Messages, c.Reload = []drawn{}, true
				return c, nil
			}
		}
		c.Messages = append(c.Messages, d)
	}
	return c, nil
}
