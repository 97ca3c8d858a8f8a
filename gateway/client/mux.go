package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"parley/gateway/api"
	"parley/gateway/mux"
	"parley/internal/websocket"
)

// muxed is the way of one agent to a node, over one connection for all calls. It goes by HTTP where the node does not offer
// that.
type muxed struct {
	transport        // over HTTP
	token     string // with which the agent signs in on the connection; "" for the connection's own
	*connector
}

// connector holds the connection of one or several agents, and opens it.
type connector struct {
	url    string // of the node's WebSocket
	client *http.Client
	header http.Header
	signs  int  // agents that are signed in at once
	never  bool // calls always go by HTTP

	mu     sync.Mutex
	link   *link
	opens  chan struct{} // closed when the opening that goes on has ended; nil if none does
	plain  time.Time     // until then calls go by HTTP, because nothing else gets through
	closed bool
}

const (
	dialTime  = 5 * time.Second // to open a connection
	plainTime = time.Minute     // before one is tried again
)

// exchange implements transport.
func (m *muxed) exchange(ctx context.Context, operation string, body []byte) (answer, error) {
	return m.begin(ctx, mux.Frame{Kind: mux.Call, Operation: operation}, body, newPending())
}

// ask asks by form, request or approve. The outcome of what is open comes to what it returns, unless that is nil.
func (m *muxed) ask(ctx context.Context, operation string, body []byte) (answer, *pending, error) {
	p := newPending()
	p.last = make(chan struct{})
	f := mux.Frame{Kind: mux.AskBy, Operation: operation}
	if operation == "form" {
		f.Kind = mux.Ask
	}
	a, err := m.begin(ctx, f, body, p)
	if err != nil || !p.asked {
		return a, nil, err
	}
	return a, p, nil
}

func (m *muxed) begin(ctx context.Context, f mux.Frame, body []byte, p *pending) (answer, error) {
	f.Body = body
	l, err := m.send(ctx, f, p)
	if err != nil {
		return answer{}, err
	}
	if l == nil {
		return m.transport.exchange(ctx, f.Operation, body)
	}
	select {
	case <-p.first:
	case <-ctx.Done():
		l.forget(p)
		return answer{}, &lost{sent: true, cause: ctx.Err()}
	}
	return p.answer, p.err
}

// send sends the frame that begins a call, once the agent is signed in. It returns nil if calls go by HTTP.
func (m *muxed) send(ctx context.Context, f mux.Frame, p *pending) (*link, error) {
	for {
		l, err := m.open(ctx, f.Kind == mux.FollowAgents)
		if err != nil || l == nil {
			return nil, err
		}
		if m.token != "" {
			if p.sign, err = l.signIn(ctx, m.token); err != nil {
				return nil, err
			}
			if p.sign == nil { // it has ended just now
				continue
			}
			f.Agent = p.sign.agent
		}
		if l.send(f, p) {
			return l, nil
		}
	}
}

// open returns the connection, which it opens if there is none; nil if calls go by HTTP. What is needed never does.
func (m *connector) open(ctx context.Context, needed bool) (*link, error) {
	for {
		m.mu.Lock()
		if byHTTP := m.never || time.Now().Before(m.plain); byHTTP && !needed || m.closed {
			m.mu.Unlock()
			return nil, nil
		}
		if l := m.link; l.isOpen() {
			m.mu.Unlock()
			return l, nil
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
func (m *connector) dial(opens chan struct{}) (*link, error) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	conn, protocol, status, err := websocket.Dial(ctx, m.client, m.url, m.header, mux.Protocol, websocket.Options{MaxMessage: maxAnswer})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens = nil
	close(opens)
	if err == nil && protocol == mux.Protocol && !m.closed {
		m.link = newLink(conn, m.signs)
		return m.link, nil
	}
	if err == nil {
		conn.Cut() // nothing was said on it
	}
	if err == nil || status != 0 || !isDial(err) { // an older node, or something on the way to it
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

// overWeb returns the way to a node by its URL.
func overWeb(w *web) *muxed {
	h := http.Header{}
	if w.token != "" {
		h.Set("Authorization", "Bearer "+w.token)
	}
	return &muxed{transport: w, connector: &connector{url: w.base.JoinPath(api.WebSocketPath).String(), client: &w.client, header: h, signs: maxSigned}}
}

// overSocket returns the way to a node by its socket.
func overSocket(o Options) *muxed {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return o.dial(ctx) }
	return &muxed{transport: &connections{dial: o.dial}, connector: &connector{
		url: "http://parley" + api.WebSocketPath, client: &http.Client{Transport: &http.Transport{DialContext: dial}}, signs: maxSigned,
	}}
}

// with returns the way for the agent of another token.
func (m *muxed) with(token string) *muxed {
	other := &muxed{transport: noHTTP{m.transport}, token: token, connector: m.connector}
	if w, ok := m.transport.(*web); ok {
		other.transport = &web{base: w.base, token: token, client: w.client}
	}
	return other
}

// noHTTP is the way of a token's agent by the node's socket: a call by HTTP there is the host's.
type noHTTP struct{ transport }

func (noHTTP) exchange(context.Context, string, []byte) (answer, error) {
	return answer{}, &lost{cause: errors.New("the node takes no sign-ins on its socket")}
}
