package ws

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/compat"
	"parley/gateway/httpd"
	"parley/gateway/mux"
	"parley/internal/websocket"
)

// Bounds of a connection.
const (
	frameTime     = 30 * time.Second // in which a client takes a frame, sends one that it has begun, or answers a ping
	keepAliveTime = 30 * time.Second // between pings
)

const (
	// BearerProtocol, with a token behind it, is the WebSocket subprotocol by which a browser's script shows the token.
	BearerProtocol = "parley.bearer."

	// plainProtocol is a WebSocket subprotocol without a token. If a client offers both, this one is chosen, so that the
	// response does not repeat the token.
	plainProtocol = "parley"
)

// Options configure a Server.
type Options struct {
	Backend  Backend
	Monitor  api.Monitor
	Draining context.Context // ends when sessions are to end in order
	Severed  context.Context // ends when sessions are broken off
}

// Server serves WebSockets.
type Server struct {
	// FrameTime bounds how long a client takes to receive a frame, and to send one that it has begun. It also bounds
	// the answer to a ping. KeepAlive is the time between pings. Both may be changed before the first session.
	FrameTime, KeepAlive time.Duration

	backend  Backend
	monitor  api.Monitor
	draining context.Context
	severed  context.Context
	frames   map[string]frame
	locks    *compat.Locks
	writer   writer
	sessions sync.WaitGroup
}

// New returns a Server.
func New(o Options) *Server {
	return &Server{
		FrameTime: frameTime, KeepAlive: keepAliveTime,
		backend: o.Backend, monitor: o.Monitor, draining: o.Draining, severed: o.Severed, frames: frames(), locks: compat.NewLocks(),
	}
}

// Wait blocks until all sessions have ended.
func (s *Server) Wait() { s.sessions.Wait() }

// Serve upgrades the request of a principal to a session, which may outlast the call. It calls ended when there is none any more.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, p api.Principal, ended func()) {

	taken := false
	defer func() {
		if !taken {
			ended()
		}
	}()
	if err := httpd.CheckOrigin(r); err != nil {
		httpd.Refuse(w, err, http.StatusForbidden)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "at %s there is a WebSocket", api.WebSocketPath), http.StatusUpgradeRequired)
		return
	}
	if status, err := websocket.Check(r); err != nil {
		w.Header().Set("Sec-WebSocket-Version", "13")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "%v", err), status)
		return
	}
	agent, err := s.backend.Agent(r.Context(), p, "")
	if err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	account := p.Account()
	if err := account.Take(api.KindWebSockets, 1); err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	protocol := subprotocol(r)
	o := websocket.Options{MaxMessage: api.MaxBody, FrameTime: s.FrameTime, Memory: api.ChargeOf(account)}
	if protocol == mux.Protocol {
		o.MaxMessage = mux.MaxMessage
	}
	s.sessions.Add(1) // before it leaves the connections of HTTP, which a stop waits for first
	conn, err := websocket.Accept(w, r, protocol, o)
	if err != nil {
		s.sessions.Done()
		account.Give(api.KindWebSockets, 1)
		return // the client has gone
	}
	taken = true
	go func() { // the handler returns: its buffers, and those of its request, would stay as long as the connection
		defer s.sessions.Done()
		defer ended()
		defer account.Give(api.KindWebSockets, 1)
		defer conn.KeepAlive(s.KeepAlive, s.FrameTime)()
		defer conn.Cut()
		_ = s.monitor.Survive("websocket", func() error { // the client is cut off
			session := newSession(s, conn)
			start := func() {}
			if session.spelling = (binary{session}); protocol != mux.Protocol {
				x := newText(session, p, agent)
				session.spelling, start = x, func() { x.start(agent.Mail()) }
			}
			if _, err := session.admit(p); err != nil { // from here on others send
				return err
			}
			start()
			session.serve()
			return nil
		})
	}()
}

// subprotocol returns the subprotocol to choose of those that a client offers; "" for none. A browser that offers some expects
// one.
func subprotocol(r *http.Request) (chosen string) {
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for offered := range strings.SplitSeq(line, ",") {
			offered = strings.TrimSpace(offered)
			if offered == plainProtocol || offered == mux.Protocol {
				return offered
			}
			if strings.HasPrefix(offered, BearerProtocol) && chosen == "" {
				chosen = offered
			}
		}
	}
	return chosen
}
