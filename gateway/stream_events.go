package gateway

import (
	"context"
	"sync"
	"time"

	"parley"
	"parley/actors/view"
)

const eventsPath = "/events"

// maxBatch is how many messages one event draws. Who has missed more reads the page again.
const maxBatch = 200

// changed is the event "messages": those of a feed that changed, as they are drawn now.
type changed struct {
	Feed     int     `json:"feed"` // which of those that were asked for
	Cursor   uint64  `json:"cursor"`
	Messages []drawn `json:"messages"`
	Reload   bool    `json:"reload,omitempty"` // too many to draw
}

// drawn is one message. HTML is "" for one that is not to be shown any more.
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

// events streams what changes: messages of mailboxes after a cursor each, the questions that wait, and, for who asks
// with "agents", to which agents something happens. It ends with the node, with the session, and when its reader is
// too slow.
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
	defer v.s.whileGood(caller(ctx), cancel)() // the session

	out, err := newSSE(v.w, v.s.slowest)
	if err != nil {
		cancel()
		return nil // the reader has gone
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	batches, news := make(chan batch), make(chan news)
	for i, f := range feeds {
		work.Go(func() { v.s.follow(ctx, cancel, i, f, batches) })
	}
	work.Go(func() { v.s.watchQuestions(ctx, cancel, v.r.URL.Query().Has("agents"), news) })
	v.pump(ctx, out, batches, news)
	return nil
}

// isReader refuses who is not the one for whom the page was drawn: the browser has been signed in as another since.
func (v *viewing) isReader() error {
	want := v.r.URL.Query().Get("reader")
	if want == "" || want == v.s.reader(v.r.Context()).ID().String() {
		return nil
	}
	return parley.Refuse(parley.NotPermitted, "the browser is signed in as another agent now")
}

// pump writes what there is to one reader until something ends.
func (v *viewing) pump(ctx context.Context, out *sse, batches <-chan batch, news <-chan news) {
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

func (v *viewing) sendBatch(ctx context.Context, out *sse, b batch) error {
	if b.gone != nil {
		e := shown(b.gone)
		return out.send("gone", 0, lostFeed{Feed: b.number, Code: e.Code, Message: e.Message})
	}
	c := changed{Feed: b.number, Cursor: b.in.Cursor, Messages: []drawn{}, Reload: len(b.in.Messages) > maxBatch}
	if !c.Reload {
		var err error
		if c.Messages, c.Reload, err = v.draw(ctx, b.feed.local, b.in.Messages); err != nil {
			return err
		}
	}
	held := &charge{account: v.held.account}
	defer held.release()
	for _, m := range c.Messages {
		if err := held.add(int64(len(m.HTML))); err != nil {
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
