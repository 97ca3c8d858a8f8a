package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
)

// longestCall bounds the duration of a Call.
const longestCall = 30 * time.Second

// routeHint has the results of earlier calls to a node: the link to try first, and the one to try last.
type routeHint struct{ good, bad *link }

// call is a packet that waits for its response.
type call struct {
	to      capabilities.NodeID
	id      ulid.ULID
	replies chan reply
}

// reply is the envelope of a response, or the reason for which none will come by a link.
type reply struct {
	link     *link
	envelope []byte
	err      error
}

var (
	errAbsent   = errors.New("the node is not there")
	errLinkLost = errors.New("the connection was lost")
	errNoLink   = errors.New("there is no connection to it")
	errNoAnswer = errors.New("it did not answer in time")
)

// unreachableError is NODE_UNREACHABLE with its cause.
type unreachableError struct {
	refusal *parley.Error
	why     error
}

func (e *unreachableError) Error() string   { return e.refusal.Error() }
func (e *unreachableError) Unwrap() []error { return []error{e.refusal, e.why} }

func unreachable(node capabilities.NodeID, why error) error {
	return &unreachableError{parley.Refuse(parley.NodeUnreachable, "node %s is out of reach: %v", node.Short(), why), why}
}

// Call sends a packet to a node and returns the response. It tries all links to the node, one after another. When it
// fails with NODE_UNREACHABLE, the node may have received the packet, even more than once.
func (t *Transport) Call(ctx context.Context, to capabilities.NodeID, kind Kind, body []byte) (Packet, error) {
	id, err := t.ids.Next()
	if err != nil {
		return Packet{}, err
	}
	envelope, err := t.o.Identity.Seal(to, id.ULID, kind, body)
	if err != nil {
		return Packet{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()

	c := &call{to: to, id: id.ULID, replies: make(chan reply, 16)}
	if err := t.expect(c); err != nil {
		return Packet{}, err
	}
	defer t.endCall(c)
	why := errNoLink
	for _, link := range t.links(to) {
		var answer Packet
		if answer, err = t.try(ctx, c, link, envelope); err == nil {
			t.note(to, routeHint{good: link})
			return answer, nil
		}
		why = err
		if ctx.Err() != nil {
			t.note(to, routeHint{bad: link})
			break
		}
	}
	return Packet{}, unreachable(to, why)
}

// links returns the links that may lead to a node now, the likeliest first.
func (t *Transport) links(to capabilities.NodeID) []*link {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.routeHints[to]
	var links, last []*link
	for _, l := range []*link{t.dialed[to], t.own, t.hub} {
		switch {
		case !l.connected():
		case l == h.good:
			links = slices.Insert(links, 0, l)
		case l == h.bad:
			last = append(last, l)
		default:
			links = append(links, l)
		}
	}
	return append(links, last...)
}

// note keeps the result of a call for the next one.
func (t *Transport) note(to capabilities.NodeID, h routeHint) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.routeHints[to] = h
	}
}

// try sends the packet by one link. It accepts the response from any link.
func (t *Transport) try(ctx context.Context, c *call, link *link, envelope []byte) (Packet, error) {
	if err := link.conn.PublishRequest(mailSubject(c.to), replySubject(t.me, c.id), envelope); err != nil {
		return Packet{}, err
	}
	t.counts.sent(c.to, len(envelope))
	for {
		select {
		case a := <-c.replies:
			if a.err != nil {
				if a.link == link {
					return Packet{}, a.err
				}
				continue
			}
			if answer, ok := t.openAnswer(c, a.envelope); ok {
				return answer, nil
			}
		case <-ctx.Done():
			return Packet{}, fmt.Errorf("%w: %w", errNoAnswer, ctx.Err())
		}
	}
}

// openAnswer opens an envelope as the response to a call. It reports false if the envelope is anything else.
func (t *Transport) openAnswer(c *call, envelope []byte) (Packet, bool) {
	answer, err := t.o.Identity.Open(envelope)
	if err == nil && (answer.From != c.to || answer.ID != c.id || !answer.Answer) {
		err = errMisplaced
	}
	if err != nil {
		t.refuse(err)
		return Packet{}, false
	}
	t.counts.received(answer.From, len(envelope))
	return answer, true
}

func (t *Transport) expect(c *call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed()
	}
	t.calls[c.id] = c
	return nil
}

func (t *Transport) endCall(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls, c.id)
}

// acceptReply gives a response to its call, if that still waits.
func (t *Transport) acceptReply(link *link, m *nats.Msg) {
	if len(m.Data) > maxEnvelope {
		t.refuse(ErrOversize)
		return
	}
	id, ok := packetID(m.Subject)
	if !ok {
		t.refuse(ErrMalformed)
		return
	}
	t.mu.Lock()
	c := t.calls[id]
	t.mu.Unlock()
	if c == nil {
		return // it has given up, or another link was faster
	}
	a := reply{link: link, envelope: m.Data}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" { // the server: nobody listens there
		a.err = errAbsent
	}
	c.offer(a)
}

// lost tells all calls that no response will come by a link.
func (t *Transport) lost(link *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		c.offer(reply{link: link, err: errLinkLost})
	}
}

// offer gives a reply to the call without blocking. It drops replies for which there is no room.
func (c *call) offer(a reply) {
	select {
	case c.replies <- a:
	default:
	}
}
