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

// longestCall is how long a Call takes at most, whatever its context says.
const longestCall = 30 * time.Second

// habit is what calls to a node have shown: the way to try first and the one to try last.
type habit struct{ good, bad *way }

// call is a letter that waits for its response.
type call struct {
	to       capabilities.NodeID
	id       ulid.ULID
	arrivals chan arrival
}

// arrival is something that came for a call: the response's envelope, or word that by that way none will come.
type arrival struct {
	way      *way
	envelope []byte
	err      error
}

var (
	errAbsent   = errors.New("the node is not there")
	errWayLost  = errors.New("the connection was lost")
	errNoWay    = errors.New("there is no connection to it")
	errNoAnswer = errors.New("it did not answer in time")
)

// outOfReach is NODE_UNREACHABLE and also why.
type outOfReach struct {
	refusal *parley.Error
	why     error
}

func (e *outOfReach) Error() string   { return e.refusal.Error() }
func (e *outOfReach) Unwrap() []error { return []error{e.refusal, e.why} }

func unreachable(node capabilities.NodeID, why error) error {
	return &outOfReach{parley.Refuse(parley.NodeUnreachable, "node %s is out of reach: %v", node, why), why}
}

// Call sends a letter to a node and returns its response. It tries one way after the other, at once where the
// node is not there: so the node may have received the letter, even more than once, when Call fails with
// NODE_UNREACHABLE.
func (w *Wire) Call(ctx context.Context, to capabilities.NodeID, kind Kind, body []byte) (Letter, error) {
	id, err := w.ids.Next()
	if err != nil {
		return Letter{}, err
	}
	envelope, err := w.o.Identity.Seal(to, id.ULID, kind, body)
	if err != nil {
		return Letter{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()

	c := &call{to: to, id: id.ULID, arrivals: make(chan arrival, 16)}
	if err := w.expect(c); err != nil {
		return Letter{}, err
	}
	defer w.endCall(c)
	why := errNoWay
	for _, way := range w.ways(to) {
		var answer Letter
		if answer, err = w.try(ctx, c, way, envelope); err == nil {
			w.note(to, habit{good: way})
			return answer, nil
		}
		why = err
		if ctx.Err() != nil {
			w.note(to, habit{bad: way})
			break
		}
	}
	return Letter{}, unreachable(to, why)
}

// ways gives those by which a node may be reached now, the likeliest first.
func (w *Wire) ways(to capabilities.NodeID) []*way {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.habits[to]
	var ways, last []*way
	for _, y := range []*way{w.dialed[to], w.own, w.hub} {
		switch {
		case !y.connected():
		case y == h.good:
			ways = slices.Insert(ways, 0, y)
		case y == h.bad:
			last = append(last, y)
		default:
			ways = append(ways, y)
		}
	}
	return append(ways, last...)
}

func (w *Wire) note(to capabilities.NodeID, h habit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.habits[to] = h
	}
}

// try sends the letter by one way. A response is welcome by whichever it comes.
func (w *Wire) try(ctx context.Context, c *call, way *way, envelope []byte) (Letter, error) {
	if err := way.conn.PublishRequest(mailSubject(c.to), replySubject(w.me, c.id), envelope); err != nil {
		return Letter{}, err
	}
	w.counts.sent(c.to, len(envelope))
	for {
		select {
		case a := <-c.arrivals:
			if a.err != nil {
				if a.way == way {
					return Letter{}, a.err
				}
				continue
			}
			if answer, ok := w.openAnswer(c, a.envelope); ok {
				return answer, nil
			}
		case <-ctx.Done():
			return Letter{}, fmt.Errorf("%w: %w", errNoAnswer, ctx.Err())
		}
	}
}

// openAnswer opens what came as the response. What is not does not end the wait for it.
func (w *Wire) openAnswer(c *call, envelope []byte) (Letter, bool) {
	answer, err := w.o.Identity.Open(envelope)
	if err == nil && (answer.From != c.to || answer.ID != c.id || !answer.Answer) {
		err = errMisplaced
	}
	if err != nil {
		w.refuse(err)
		return Letter{}, false
	}
	w.counts.received(answer.From, len(envelope))
	return answer, true
}

func (w *Wire) expect(c *call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed()
	}
	w.calls[c.id] = c
	return nil
}

func (w *Wire) endCall(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, c.id)
}

// replyCame hands on what came for a call, if it still waits.
func (w *Wire) replyCame(way *way, m *nats.Msg) {
	if len(m.Data) > maxEnvelope {
		w.refuse(ErrOversize)
		return
	}
	id, ok := letterOf(m.Subject)
	if !ok {
		w.refuse(ErrMalformed)
		return
	}
	w.mu.Lock()
	c := w.calls[id]
	w.mu.Unlock()
	if c == nil {
		return // it has given up, or another way was faster
	}
	a := arrival{way: way, envelope: m.Data}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" { // the server: nobody listens there
		a.err = errAbsent
	}
	c.offer(a)
}

// lost tells all calls that no response will come by a way.
func (w *Wire) lost(way *way) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		c.offer(arrival{way: way, err: errWayLost})
	}
}

// offer does not wait: more than a call has room for is not the response.
func (c *call) offer(a arrival) {
	select {
	case c.arrivals <- a:
	default:
	}
}
