package transport

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"parley/capabilities"
)

// longestReceive bounds the duration of Receive. No sender waits longer.
const longestReceive = longestCall

var errMisplaced = errors.New("the envelope is a response to something else, or none where one belongs")

// acceptPacket takes a packet from a link without blocking. If there is a free slot, a goroutine opens and receives the
// packet. Otherwise it is dropped, and its sender tries again.
func (t *Transport) acceptPacket(link *link, m *nats.Msg) {
	if len(m.Data) > maxEnvelope {
		t.refuse(ErrOversize)
		return
	}
	done, err := t.begin()
	if err != nil {
		return
	}
	if !t.slots.acquire() {
		t.counts.drop()
		done()
		return
	}
	go func() {
		defer done()
		defer t.slots.release()
		t.receive(link, m)
	}()
}

func (t *Transport) receive(link *link, m *nats.Msg) {
	p, err := t.o.Identity.Open(m.Data)
	if err == nil && p.Answer {
		err = errMisplaced
	}
	if err != nil {
		t.refuse(err)
		return
	}
	if !t.slots.acquireFor(p.From) {
		t.counts.drop()
		return
	}
	defer t.slots.releaseFor(p.From)
	t.counts.received(p.From, len(m.Data))

	ctx, cancel := context.WithTimeout(t.ctx, longestReceive)
	defer cancel()
	kind, body, ok := t.o.Receive(ctx, p)
	// A response goes where the packet's sender takes it and nowhere else, whatever the packet asked for.
	if to := replySubject(p.From, p.ID); ok && m.Reply == to {
		t.respond(link, to, p, kind, body)
	}
}

func (t *Transport) respond(link *link, subject string, p Packet, kind Kind, body []byte) {
	envelope, err := t.o.Identity.sealAnswer(p.From, p.ID, kind, body)
	if err != nil {
		t.o.Log.Error("respond to a node", "node", p.From, "error", err)
		return
	}
	if err := link.conn.Publish(subject, envelope); err != nil {
		t.o.Log.Debug("respond to a node", "node", p.From, "error", err)
		return
	}
	t.counts.sent(p.From, len(envelope))
}

// refuse counts a bad envelope, and logs some of them.
func (t *Transport) refuse(why error) {
	if leftOut, say := t.counts.refuse(time.Now()); say {
		t.o.Log.Warn("a packet was refused", "error", why, "more", leftOut)
	}
}

// slots bounds the packets that are received at once, for all nodes and for each.
type slots struct {
	all     chan struct{}
	perNode int

	mu   sync.Mutex
	held map[capabilities.NodeID]int // no entry is zero
}

func newSlots(inAll, ofOne int) *slots {
	return &slots{all: make(chan struct{}, inAll), perNode: ofOne, held: map[capabilities.NodeID]int{}}
}

func (p *slots) acquire() bool {
	select {
	case p.all <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p *slots) release() { <-p.all }

// acquireFor counts an acquired slot for a node, whose packet is open now. It reports false if the node has too many.
func (p *slots) acquireFor(node capabilities.NodeID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[node] >= p.perNode {
		return false
	}
	p.held[node]++
	return true
}

func (p *slots) releaseFor(node capabilities.NodeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[node]--; p.held[node] == 0 {
		delete(p.held, node)
	}
}
