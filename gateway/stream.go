package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

const eventsPath = "/events"

// maxBatch bounds the messages of one event. A page that missed more is loaded again.
const maxBatch = 200

// changed is the event "messages": changed messages of a feed as HTML.
type changed struct {
	Feed     int     `json:"feed"` // which of those that were asked for
	Cursor   uint64  `json:"cursor"`
	Messages []drawn `json:"messages"`
	Reload   bool    `json:"reload,omitempty"` // too many to draw
}

// drawn is one message. HTML is "" for a dismissed one.
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

// events streams changes: messages of mailboxes after a cursor each, the questions that wait, and, if the request has
// "agents", the agents to which something happens. It ends with the node, with the session, and when its reader is too
// slow.
func (v *viewing) events() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	if err := v.isReader(); err != nil {
		return err
	}
	feeds, err := v.feeds()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(v.r.Context())
	defer context.AfterFunc(v.s.draining, cancel)()
	defer v.s.backend.WhileGood(v.s.caller(ctx), cancel)() // the session

	out, err := newSSE(v.w, v.s.bodies.Slowest)
	if err != nil {
		cancel()
		return nil // the reader has gone
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	batches, news := make(chan feedBatch), make(chan news)
	for i, f := range feeds {
		work.Go(func() { v.s.followFeed(ctx, cancel, i, f, batches) })
	}
	work.Go(func() { v.s.watchQuestions(ctx, cancel, v.r.URL.Query().Has("agents"), news) })
	v.pump(ctx, out, batches, news)
	return nil
}

// isReader refuses a request of a page that was drawn for another agent: the browser has changed its session since.
func (v *viewing) isReader() error {
	want := v.r.URL.Query().Get("reader")
	if want == "" || want == v.s.caller(v.r.Context()).ID().String() {
		return nil
	}
	return parley.Refuse(parley.NotPermitted, "the browser is signed in as another agent now")
}

// pump writes events to the reader until something ends.
func (v *viewing) pump(ctx context.Context, out *sse, batches <-chan feedBatch, news <-chan news) {
	pulse := time.NewTicker(heartbeat)
	defer pulse.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case b := <-batches:
			err = v.sendBatch(ctx, out, b)
		case n := <-news:
			err = n.send(out)
		case <-pulse.C:
			err = out.beat()
		}
		if err != nil {
			return // the reader has gone, or is too slow
		}
	}
}

func (v *viewing) sendBatch(ctx context.Context, out *sse, b feedBatch) error {
	if b.gone != nil {
		e := api.Shown(b.gone)
		return out.send("gone", 0, lostFeed{Feed: b.number, Code: e.Code, Message: e.Message})
	}
	c := changed{Feed: b.number, Cursor: b.UpTo, Messages: []drawn{}, Reload: len(b.Messages) > maxBatch}
	if !c.Reload {
		var err error
		if c.Messages, c.Reload, err = v.draw(ctx, b.feed.local, b.Messages); err != nil {
			return err
		}
	}
	held := api.ChargeOf(v.held.Account())
	defer held.Release()
	for _, m := range c.Messages {
		if err := held.Add(int64(len(m.HTML))); err != nil {
			return err
		}
	}
	var id uint64
	if b.feed.resumes {
		id = c.Cursor
	}
	return out.send("messages", id, c)
}

// maxDrawn bounds what one event draws, in bytes.
const maxDrawn = 1 << 20

// draw renders messages of an agent's mail, and reports whether they are too large for one event.
func (v *viewing) draw(ctx context.Context, of local, messages []view.Message) (all []drawn, large bool, err error) {
	all = make([]drawn, len(messages))
	size := 0
	for i, e := range messages {
		all[i].Number = e.Number
		if e.Dismissed {
			continue
		}
		html, err := v.s.fragment(v.s.card(ctx, of, e, nil))
		if err != nil {
			return nil, false, err
		}
		if size += len(html); size > maxDrawn && i > 0 {
			return []drawn{}, true, nil
		}
		all[i].HTML = html
	}
	return all, false, nil
}

// maxFeeds bounds the mailboxes that one stream follows.
const maxFeeds = 100

// feed is a mailbox that a stream follows.
type feed struct {
	local
	at      api.Position // from which it is followed
	resumes bool         // the reader names its last cursor by Last-Event-ID
}

// feedBatch is a batch of one of the feeds, or the reason why there is none.
type feedBatch struct {
	api.Batch
	number int // of the feed in the request
	feed   feed
	gone   error
}

// feedOf returns the feed of a mailbox, from a cursor on.
func feedOf(l local, cursor uint64) feed {
	return feed{local: l, at: api.At(cursor)}
}

// feeds returns the feeds of a request. Pages that share a stream ask for one each, as CURSOR:NAME in "feed". A "cursor"
// asks for a feed of the agent itself, before them.
func (v *viewing) feeds() ([]feed, error) {
	var feeds []feed
	cursor, follow, err := v.cursor()
	if err != nil {
		return nil, err
	}
	if follow {
		own := feedOf(local{v.as, v.agent}, cursor)
		own.resumes = true
		feeds = append(feeds, own)
	}
	asked := v.r.URL.Query()["feed"]
	if len(asked) > maxFeeds {
		return nil, parley.Refuse(parley.InvalidArgument, "a stream tells of %d mailboxes at most", maxFeeds)
	}
	for _, text := range asked {
		from, as, _ := strings.Cut(text, ":")
		if cursor, err = readCursor(from); err != nil {
			return nil, err
		}
		feeds = append(feeds, feedOf(local{name: as}, cursor))
	}
	return feeds, nil
}

// cursor returns the last cursor of the reader, and whether it has one.
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

// followFeed passes the batches of a feed to the stream. A feed that cannot be followed at all does not end the others; one
// that breaks off ends the stream, and the reader comes back.
func (s *Server) followFeed(ctx context.Context, end func(), i int, f feed, to chan<- feedBatch) {
	hand := func(b feedBatch) error {
		b.number, b.feed = i, f
		select {
		case to <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	begun := false
	err := s.follow(ctx, f, func(b api.Batch) error {
		begun = true
		return hand(feedBatch{Batch: b})
	})
	switch {
	case err == nil || ctx.Err() != nil:
	case begun:
		end()
	default:
		_ = hand(feedBatch{gone: err}) // the stream has ended
	}
}

// follow follows a feed. It looks up the agent if there is none.
func (s *Server) follow(ctx context.Context, f feed, deliver func(api.Batch) error) error {
	if f.agent == nil {
		var err error
		if f.agent, err = s.agent(ctx, f.name); err != nil {
			return err
		}
	}
	return api.Follow(ctx, f.agent.Mail(), view.MessageFilter{All: true}, f.at, deliver)
}

// Bounds of a stream of events.
const (
	slowest   = 10 * time.Second // what a reader may take for what it is sent
	heartbeat = 15 * time.Second
)

// sse writes server-sent events to one reader. It cuts off a slow one, which comes back with its last cursor and misses
// nothing.
type sse struct {
	w  http.ResponseWriter
	rc *http.ResponseController

	slowest time.Duration // what the reader may take for each write
}

// newSSE writes the header of a stream of events.
func newSSE(w http.ResponseWriter, slowest time.Duration) (*sse, error) {
	s := &sse{w: w, rc: http.NewResponseController(w), slowest: slowest}
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil { // what a request may take is no bound of its stream
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return s, s.write([]byte("retry: 500\n\n"))
}

// send writes one event. An event arrives whole, with its cursor, or not at all.
func (s *sse) send(name string, cursor uint64, what any) error {
	body, err := json.Marshal(what) // has no line breaks
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("event: " + name + "\n")
	if cursor > 0 {
		b.WriteString("id: " + strconv.FormatUint(cursor, 10) + "\n")
	}
	b.WriteString("data: ")
	b.Write(body)
	b.WriteString("\n\n")
	return s.write(b.Bytes())
}

// beat shows that the stream is alive.
func (s *sse) beat() error { return s.write([]byte(": \n\n")) }

func (s *sse) write(b []byte) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(s.slowest)); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}
