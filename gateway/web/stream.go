package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"parley"
	"parley/gateway/api"
)

// EventsPath is the address of the stream of events of a page.
const EventsPath = "/events"

// heartbeat is the time between two signs that a stream is alive.
const heartbeat = 15 * time.Second

// stream is the stream of events of one page.
type stream struct {
	*page
	out     *sse
	end     context.CancelFunc
	batches chan feedBatch
	updates chan update
}

// events streams changes: the changed messages of mailboxes, the questions that wait, and the output of programs of the
// agents that "output" names. If the request has "agents", it also carries the agents that change. The stream ends with
// the node and with the session, and when its reader is too slow.
func (p *page) events() error {
	if err := p.readsOnly(); err != nil {
		return err
	}
	if err := p.isReader(); err != nil {
		return err
	}
	feeds, err := p.feeds()
	if err != nil {
		return err
	}
	outputs := p.r.URL.Query()["output"]
	if len(outputs) > maxOutputs {
		return parley.Refuse(parley.InvalidArgument, "a stream tells of the output of %d agents at most", maxOutputs)
	}
	ctx, cancel := context.WithCancel(p.ctx())
	defer context.AfterFunc(p.site.Stopping, cancel)()
	defer p.site.Backend.WhileGood(p.principal, cancel)()

	s := &stream{page: p, end: cancel, batches: make(chan feedBatch), updates: make(chan update)}
	if s.out, err = newSSE(p.w, p.site.Bodies.Slowest); err != nil {
		cancel()
		return nil // the reader has gone
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	start := func(watch func()) { work.Go(func() { s.survive(watch) }) }
	for i, f := range feeds {
		start(func() { s.follow(ctx, i, f) })
	}
	for _, name := range outputs {
		start(func() { s.watchOutput(ctx, name) })
	}
	start(func() { s.watchQuestions(ctx, p.r.URL.Query().Has("agents")) })
	s.pump(ctx)
	return nil
}

// survive calls watch. A panic ends this stream and no other; the browser opens another one.
func (s *stream) survive(watch func()) {
	if err := parley.Survive(func() error { watch(); return nil }); err != nil {
		s.site.Monitor.Log.Error("a stream of a page has crashed", "error", err)
		s.end()
	}
}

// isReader refuses a request of a page that was drawn for another agent: the browser has changed its session since.
func (p *page) isReader() error {
	want := p.r.URL.Query().Get("reader")
	if want == "" || want == p.principal.ID().String() {
		return nil
	}
	return parley.Refuse(parley.NotPermitted, "the browser is signed in as another agent now")
}

// pump writes events until ctx ends or a write fails.
func (s *stream) pump(ctx context.Context) {
	pulse := time.NewTicker(heartbeat)
	defer pulse.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case b := <-s.batches:
			err = s.sendBatch(b)
		case u := <-s.updates:
			err = u.send(s.out)
		case <-pulse.C:
			err = s.out.beat()
		}
		if err != nil {
			return // the reader has gone, or is too slow
		}
	}
}

// sendBatch writes a batch of a feed. It charges the reader for the HTML while it writes.
func (s *stream) sendBatch(b feedBatch) error {
	if b.gone != nil {
		e := api.Shown(b.gone)
		return s.out.send("gone", 0, lostFeed{Feed: b.number, Code: e.Code, Message: e.Message})
	}
	c, err := s.draw(b)
	if err != nil {
		return err
	}
	held := api.ChargeOf(s.held.Account())
	defer held.Release()
	for _, m := range c.Messages {
		if err := held.Add(int64(len(m.HTML))); err != nil {
			return err
		}
	}
	var cursor uint64
	if b.feed.resumes {
		cursor = c.Cursor
	}
	return s.out.send("messages", cursor, c)
}

// sse writes server-sent events to one reader. It cuts off a slow reader, which comes back with its last cursor and
// misses nothing.
type sse struct {
	w  http.ResponseWriter
	rc *http.ResponseController

	slowest time.Duration // that the reader may take for each write
}

// newSSE writes the header of a stream of events.
func newSSE(w http.ResponseWriter, slowest time.Duration) (*sse, error) {
	s := &sse{w: w, rc: http.NewResponseController(w), slowest: slowest}
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil { // the deadline of the request does not hold for its stream
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return s, s.write([]byte("retry: 500\n\n"))
}

// send writes one event. An event arrives whole, with its cursor, or not at all. A cursor of 0 is none.
func (s *sse) send(name string, cursor uint64, data any) error {
	body, err := json.Marshal(data) // has no line breaks
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
