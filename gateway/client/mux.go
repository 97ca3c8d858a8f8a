package client

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/gateway/api"
	"parley/gateway/mux"
)

// muxed is the way to a node over one connection for all calls. It goes by HTTP where the node does not offer that.
type muxed struct {
	transport        // over HTTP
	url       string // of the node's WebSocket
	dialing   *websocket.DialOptions

	mu     sync.Mutex
	link   *link
	opens  chan struct{} // closed when the opening that goes on has ended; nil if none does
	plain  time.Time     // until then calls go by HTTP, because nothing else gets through
	closed bool
}

const (
	joinedSize = 64 << 10        // of a message of several frames
	dialTime   = 5 * time.Second // to open a connection
	plainTime  = time.Minute     // before one is tried again
)

// exchange implements transport.
func (m *muxed) exchange(ctx context.Context, operation string, b body) (answer, error) {
	return m.begin(ctx, mux.Frame{Kind: mux.Call, Operation: operation}, b, newPending())
}

// ask asks a form. The outcome of one that is open comes to what it returns, unless that is nil.
func (m *muxed) ask(ctx context.Context, b body) (answer, *pending, error) {
	p := newPending()
	a, err := m.begin(ctx, mux.Frame{Kind: mux.Ask, Operation: "form"}, b, p)
	if err != nil || !p.asked {
		return a, nil, err
	}
	return a, p, nil
}

func (m *muxed) begin(ctx context.Context, f mux.Frame, b body, p *pending) (answer, error) {
	f.Body = b.frame()
	var l *link
	for sent := false; !sent; {
		var err error
		if l, err = m.open(ctx); err != nil {
			return answer{}, err
		}
		if l == nil {
			return m.transport.exchange(ctx, f.Operation, b)
		}
		sent = l.send(f, p) // or it has ended just now
	}
	select {
	case <-p.first:
	case <-ctx.Done():
		l.forget(p)
		return answer{}, &lost{sent: true, cause: ctx.Err()}
	}
	return p.answer, p.err
}

var errLinkEnded = errors.New("the connection has ended")

// open returns the connection, which it opens if there is none; nil if calls go by HTTP.
func (m *muxed) open(ctx context.Context) (*link, error) {
	for {
		m.mu.Lock()
		if m.closed || m.link.isOpen() || time.Now().Before(m.plain) {
			defer m.mu.Unlock()
			return m.link, nil
		}
		opens := m.opens
		if opens == nil {
			opens = make(chan struct{})
			m.opens = opens
			m.mu.Unlock()
			return m.dial(opens)
		}
		m.mu.Unlock()
		select {
		case <-opens:
		case <-ctx.Done():
			return nil, &lost{cause: ctx.Err()}
		}
	}
}

// dial opens a connection for all that wait for opens. It does not end with the call that happens to open it.
func (m *muxed) dial(opens chan struct{}) (*link, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, m.url, m.dialing)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens = nil
	close(opens)
	if err == nil && conn.Subprotocol() == mux.Protocol && !m.closed {
		m.link = newLink(conn)
		return m.link, nil
	}
	if err == nil {
		_ = conn.CloseNow() // nothing was said on it
	}
	if err == nil || !isDial(err) { // an older node, or something on the way to it
		m.plain = time.Now().Add(plainTime)
	}
	m.link = nil // a call by HTTP says what is wrong, if something is
	return nil, nil
}

// close implements transport. Calls that come later go by HTTP.
func (m *muxed) close() {
	m.mu.Lock()
	l := m.link
	m.link, m.closed = nil, true
	m.mu.Unlock()
	if l != nil {
		l.end(errLinkEnded)
	}
	m.transport.close()
}

// pending is a call whose answer is awaited.
type pending struct {
	id    uint64
	first chan struct{} // closed when there is an answer or err; of an ask, when it is accepted
	asked bool          // the outcome comes later
	last  chan struct{} // closed when there is an outcome or an error in its place
	items chan []byte   // of a follow, as JSON; has room for all that the node may send

	answer  answer
	err     error
	outcome answer
	lost    error
}

func newPending() *pending { return &pending{first: make(chan struct{}), last: make(chan struct{})} }

// link is one connection. One goroutine reads, and one writes what others have queued.
type link struct {
	conn *websocket.Conn

	mu    sync.Mutex
	out   [][]byte // messages; frames are added to the last
	calls map[uint64]*pending
	next  uint64
	spare []byte // to write the next message to
	going bool   // the node begins nothing more
	ended bool
	wake  chan struct{}
	gone  chan struct{} // closed when it has ended
}

func newLink(conn *websocket.Conn) *link {
	l := &link{conn: conn, calls: map[uint64]*pending{}, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	go l.read()
	go l.write()
	return l
}

// isOpen reports whether calls may begin.
func (l *link) isOpen() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.going && !l.ended
}

// send queues a frame that begins a call. It returns false if nothing begins any more.
func (l *link) send(f mux.Frame, p *pending) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.going || l.ended {
		return false
	}
	l.next++
	p.id, f.ID = l.next, l.next
	l.calls[p.id] = p
	l.queue(f)
	return true
}

// queue has a frame written. The caller holds l.mu.
func (l *link) queue(f mux.Frame) {
	if n := len(l.out); n > 0 && len(l.out[n-1])+len(f.Body) < joinedSize {
		l.out[n-1] = mux.AppendClient(l.out[n-1], f)
	} else {
		l.out = append(l.out, mux.AppendClient(l.spare, f))
		l.spare = nil
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// forget gives up a call.
func (l *link) forget(p *pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls[p.id] == p && !l.ended {
		delete(l.calls, p.id)
		l.queue(mux.Frame{Kind: mux.Cancel, ID: p.id})
	}
}

func (l *link) write() {
	for {
		select {
		case <-l.wake:
		case <-l.gone:
			return
		}
		runtime.Gosched() // others that are to send something send it in the same message
		l.mu.Lock()
		messages := l.out
		l.out = nil
		l.mu.Unlock()
		for _, message := range messages {
			if err := l.conn.Write(context.Background(), websocket.MessageBinary, message); err != nil {
				l.end(err)
				return
			}
		}
		if len(messages) > 0 && cap(messages[0]) <= joinedSize { // a large request should not stay for ever
			l.mu.Lock()
			l.spare = messages[0][:0]
			l.mu.Unlock()
		}
	}
}

func (l *link) read() {
	from := mux.NewWebSocket(l.conn, maxAnswer)
	for {
		message, err := from.Read()
		if err == nil {
			err = mux.ReadNode(message, l.hear)
		}
		if err != nil {
			l.end(err)
			return
		}
	}
}

// hear handles a frame of the node.
func (l *link) hear(f mux.Frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.Kind == mux.Going {
		l.going = true
		l.endIfIdle()
		return nil
	}
	p := l.calls[f.ID]
	if p == nil {
		return nil // it was given up
	}
	if f.Kind == mux.Item {
		return p.take(f)
	}
	a, err := answerOf(f)
	if err != nil {
		return err
	}
	if f.Kind == mux.Asked {
		p.answer, p.asked = a, true
		close(p.first)
		return nil
	}
	delete(l.calls, f.ID)
	if p.asked {
		p.outcome = a
	} else {
		p.answer = a
		close(p.first)
	}
	close(p.last)
	l.endIfIdle()
	return nil
}

// answerOf returns the answer in a frame of the node, as a copy.
func answerOf(f mux.Frame) (answer, error) {
	if f.Kind != mux.Refusal && !mux.NewReader(f.Body).IsJSON() {
		return answer{status: http.StatusOK, plain: bytes.Clone(f.Body)}, nil
	}
	text, err := mux.ToJSON(f.Body)
	if f.Kind == mux.Refusal {
		return answer{status: http.StatusBadRequest, body: append(append([]byte(`{"error":`), text...), '}')}, err
	}
	return answer{status: http.StatusOK, body: bytes.Clone(text)}, err
}

// endIfIdle ends a connection on which nothing begins and nothing is under way. The caller holds l.mu.
func (l *link) endIfIdle() {
	if l.going && len(l.calls) == 0 {
		go l.end(errLinkEnded)
	}
}

// end ends the connection. What is under way is lost.
func (l *link) end(why error) {
	l.mu.Lock()
	calls := l.calls
	ended := l.ended
	l.calls, l.ended = nil, true
	l.mu.Unlock()
	if ended {
		return
	}
	close(l.gone)
	_ = l.conn.CloseNow() // nothing more is said on it
	for _, p := range calls {
		if !p.asked {
			p.err = &lost{sent: true, cause: why}
			close(p.first)
		}
		p.lost = why
		close(p.last)
	}
}

// overWeb returns the way to a node by its URL.
func overWeb(w *web) *muxed {
	at := *w.base.JoinPath(api.WebSocketPath)
	at.Scheme = "ws" + strings.TrimPrefix(at.Scheme, "http")
	o := &websocket.DialOptions{HTTPClient: &w.client, HTTPHeader: http.Header{}, Subprotocols: []string{mux.Protocol}}
	if w.token != "" {
		o.HTTPHeader.Set("Authorization", "Bearer "+w.token)
	}
	return &muxed{transport: w, url: at.String(), dialing: o}
}

// overSocket returns the way to a node by its socket.
func overSocket(path string) *muxed {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return Dial(ctx, path) }
	return &muxed{transport: &connections{path: path}, url: "ws://parley" + api.WebSocketPath, dialing: &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dial}}, Subprotocols: []string{mux.Protocol},
	}}
}
