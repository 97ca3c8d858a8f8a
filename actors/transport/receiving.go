package transport

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"parley/capabilities"
)

// longestReceive is how long Receive may take. No sender waits as long.
const longestReceive = longestCall

var errMisplaced = errors.New("the envelope is a response to something else, or none where one belongs")

// letterCame takes a letter from a way. It does not wait: the letter is opened and received in a goroutine of
// its own, if there is a place for it, and is dropped otherwise; its sender will try again.
func (w *Wire) letterCame(way *way, m *nats.Msg) {
	if len(m.Data) > maxEnvelope {
		w.refuse(ErrOversize)
		return
	}
	done, err := w.begin()
	if err != nil {
		return
	}
	if !w.places.take() {
		w.counts.drop()
		done()
		return
	}
	go func() {
		defer done()
		defer w.places.free()
		w.receive(way, m)
	}()
}

func (w *Wire) receive(way *way, m *nats.Msg) {
	l, err := w.o.Identity.Open(m.Data)
	if err == nil && l.Answer {
		err = errMisplaced
	}
	if err != nil {
		w.refuse(err)
		return
	}
	if !w.places.seat(l.From) {
		w.counts.drop()
		return
	}
	defer w.places.rise(l.From)
	w.counts.received(l.From, len(m.Data))

	ctx, cancel := context.WithTimeout(w.ctx, longestReceive)
	defer cancel()
	kind, body, ok := w.o.Receive(ctx, l)
	// A response goes where the letter's sender takes it and nowhere else, whatever the letter asked for.
	if to := replySubject(l.From, l.ID); ok && m.Reply == to {
		w.respond(way, to, l, kind, body)
	}
}

func (w *Wire) respond(way *way, subject string, l Letter, kind Kind, body []byte) {
	envelope, err := w.o.Identity.sealAnswer(l.From, l.ID, kind, body)
	if err != nil {
		w.o.Log.Error("respond to a node", "node", l.From, "error", err)
		return
	}
	if err := way.conn.Publish(subject, envelope); err != nil {
		w.o.Log.Debug("respond to a node", "node", l.From, "error", err)
		return
	}
	w.counts.sent(l.From, len(envelope))
}

// refuse counts an envelope that is not what it should be, and says so in the log now and then.
func (w *Wire) refuse(why error) {
	if leftOut, say := w.counts.refuse(time.Now()); say {
		w.o.Log.Warn("a letter was refused", "error", why, "more", leftOut)
	}
}

// places bounds the letters that are received at once, in all and of each node.
type places struct {
	room  chan struct{}
	ofOne int

	mu     sync.Mutex
	seated map[capabilities.NodeID]int // no entry is zero
}

func newPlaces(inAll, ofOne int) *places {
	return &places{room: make(chan struct{}, inAll), ofOne: ofOne, seated: map[capabilities.NodeID]int{}}
}

func (p *places) take() bool {
	select {
	case p.room <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p *places) free() { <-p.room }

// seat gives a place that was taken to a node, once its letter has shown whose it is.
func (p *places) seat(node capabilities.NodeID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seated[node] >= p.ofOne {
		return false
	}
	p.seated[node]++
	return true
}

func (p *places) rise(node capabilities.NodeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seated[node]--; p.seated[node] == 0 {
		delete(p.seated, node)
	}
}
