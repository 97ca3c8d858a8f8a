package gateway

import (
	"context"
	"strconv"
	"sync"
	"time"

	"parley"
	"parley/actors"
)

const eventsPath = "/events"

// maxBatch is how many messages one event draws. Who has missed more reads the page again.
const maxBatch = 200

// changed is the event "messages": those that changed, as they are drawn now.
type changed struct {
	Messages []drawn `json:"messages"`
	Reload   bool    `json:"reload,omitempty"` // too many to draw
}

// drawn is one message. HTML is "" for one that is not to be shown any more.
type drawn struct {
	Number uint64 `json:"number"`
	HTML   string `json:"html"`
}

// events streams what changes: an agent's messages after a cursor, if there is one, and the questions that wait.
// It ends with the node, with the session, and when its reader is too slow.
func (v *viewing) events() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	cursor, follow, err := v.cursor()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(v.r.Context())
	defer context.AfterFunc(v.s.draining, cancel)()

	out, err := newSSE(v.w, v.s.slowest)
	if err != nil {
		cancel()
		return nil // the reader has gone
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	batches, counts := make(chan actors.Inbox), make(chan []string)
	if follow {
		work.Go(func() { v.follow(ctx, cancel, cursor, batches) })
	}
	work.Go(func() { v.s.watchQuestions(ctx, cancel, counts) })
	v.pump(ctx, out, batches, counts)
	return nil
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
	if cursor, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, false, parley.Refuse(parley.InvalidArgument, "%.40q is no cursor", text)
	}
	return cursor, true, nil
}

// follow hands over what changes in the agent's mail. The next is read only when the last was taken.
func (v *viewing) follow(ctx context.Context, end func(), cursor uint64, to chan<- actors.Inbox) {
	defer end()
	for ctx.Err() == nil {
		in, err := v.agent.Changes(ctx, actors.View{All: true}, cursor)
		if err != nil || ctx.Err() != nil {
			return // the reader comes back
		}
		cursor = in.Cursor
		select {
		case to <- in:
		case <-ctx.Done():
		}
	}
}

// pump writes what there is to one reader until something ends.
func (v *viewing) pump(ctx context.Context, out *sse, batches <-chan actors.Inbox, counts <-chan []string) {
	pulse := time.NewTicker(heartbeat)
	defer pulse.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case in := <-batches:
			err = v.sendBatch(ctx, out, in)
		case waiting := <-counts:
			err = out.send("questions", 0, struct {
				Count int      `json:"count"`
				Keys  []string `json:"keys"`
			}{len(waiting), waiting[:min(len(waiting), firstPaint)]})
		case <-pulse.C:
			if _, gone := v.s.authenticate(v.r.WithContext(ctx)); gone != nil { // the session has ended
				return
			}
			err = out.beat()
		}
		if err != nil {
			return // the reader has gone, or is too slow
		}
	}
}

func (v *viewing) sendBatch(ctx context.Context, out *sse, in actors.Inbox) error {
	if len(in.Messages) > maxBatch {
		return out.send("messages", in.Cursor, changed{Messages: []drawn{}, Reload: true})
	}
	c := changed{Messages: make([]drawn, len(in.Messages))}
	for i, e := range in.Messages {
		c.Messages[i].Number = e.Number
		if e.Dismissed {
			continue
		}
		html, err := v.s.fragment(v.s.card(ctx, local{v.as, v.agent}, e, nil))
		if err != nil {
			return err
		}
		c.Messages[i].HTML = html
	}
	return out.send("messages", in.Cursor, c)
}
