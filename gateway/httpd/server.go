package httpd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"parley"
	"parley/actors/connlimit"
)

// Options configure a Server.
type Options struct {
	Handler http.Handler
	Log     *slog.Logger

	Limiter *connlimit.Limiter
	Address func(net.Conn) string              // by which the limiter counts connections
	Admit   func(net.Conn) (by any, err error) // says who has opened a connection, or refuses all its calls; nil admits every one
	TLS     *tls.Config                        // nil: in the clear

	HeaderTime time.Duration // for a request's header
	ReadTime   time.Duration // for a request, unless its handler sets another deadline
	WriteTime  time.Duration // for a response, unless its handler sets another deadline
	IdleTime   time.Duration // between requests
}

// MaxHeader bounds the header of a request, in bytes.
const MaxHeader = 16 << 10

// Server serves HTTP on one listener.
type Server struct {
	Limiter *connlimit.Limiter

	options  Options
	listener net.Listener
	http     *http.Server

	calls  context.Context // ends when the calls under way are aborted
	giveUp context.CancelFunc

	mu       sync.Mutex
	conns    map[*conn]bool // all but hijacked ones
	draining bool
	empty    chan struct{} // closed when draining and conns is empty
}

// New returns a Server for a listener. It serves nothing before Serve.
func New(l net.Listener, o Options) *Server {
	s := &Server{Limiter: o.Limiter, options: o, listener: l, conns: map[*conn]bool{}, empty: make(chan struct{})}
	s.calls, s.giveUp = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serveHTTP),
		ReadHeaderTimeout: o.HeaderTime,
		ReadTimeout:       o.ReadTime,
		WriteTimeout:      o.WriteTime,
		IdleTimeout:       o.IdleTime,
		MaxHeaderBytes:    MaxHeader,
		TLSConfig:         o.TLS,
		BaseContext:       func(net.Listener) context.Context { return s.calls },
		ConnContext:       s.connContext,
		ConnState:         noteState,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),

		DisableGeneralOptionsHandler: true, // it answers before any check
	}
	return s
}

// Addr returns the address of the listener.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close closes a Server that never served.
func (s *Server) Close() error { return s.listener.Close() }

// Serve accepts connections until Drain. It returns nil then.
func (s *Server) Serve() error {
	var err error
	if s.options.TLS != nil {
		err = s.http.ServeTLS(accepting{s}, "", "")
	} else {
		err = s.http.Serve(accepting{s})
	}
	if errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Drain accepts no more connections and closes those that are idle. It returns when the others have been answered or
// when ctx ends. It closes the rest then, without an answer, and ends the contexts of their calls.
func (s *Server) Drain(ctx context.Context) error {
	err := s.listener.Close()
	s.mu.Lock()
	s.draining = true
	s.closeIfEmpty()
	s.mu.Unlock()
	s.http.SetKeepAlivesEnabled(false)
	s.each(func(c *conn) { c.Evict(connlimit.Silent) })
	select {
	case <-s.empty:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
		s.each(func(c *conn) { _ = c.Conn.Close() }) // the calls under way get no response
	}
	s.giveUp()
	return err
}

func (s *Server) each(do func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		do(c)
	}
}

// closeIfEmpty closes s.empty if s drains and has no connections. The caller holds s.mu.
func (s *Server) closeIfEmpty() {
	if s.draining && len(s.conns) == 0 {
		select {
		case <-s.empty:
		default:
			close(s.empty)
		}
	}
}

// accepting is the listener that net/http accepts connections from.
type accepting struct{ s *Server }

func (a accepting) Addr() net.Addr { return a.s.listener.Addr() }
func (a accepting) Close() error   { return a.s.listener.Close() }

// Accept implements net.Listener. It closes connections for which there is no place.
func (a accepting) Accept() (net.Conn, error) {
	for {
		raw, err := a.s.listener.Accept()
		switch {
		case err == nil:
			if c, ok := a.s.enter(raw); ok {
				return c, nil
			}
			_ = raw.Close() // no place was free
		case !isPassing(err):
			return nil, err
		default:
			a.s.options.Log.Warn("a connection could not be taken", "error", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-a.s.calls.Done():
			}
		}
	}
}

// isPassing reports whether err is a lack of files or memory, or the error of one connection.
func isPassing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *Server) enter(raw net.Conn) (*conn, bool) {
	c := &conn{Conn: raw, server: s}
	place, ok := s.Limiter.Enter(s.options.Address(raw), c)
	if !ok {
		return nil, false
	}
	c.place = place
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		place.Leave()
		return nil, false
	}
	s.conns[c] = true
	return c, true
}

// forget removes a connection that is closed or hijacked.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.closeIfEmpty()
}

// serveHTTP passes one request to the handler.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	c := connOf(r.Context())
	c.handled.Store(true)
	defer func() {
		if !c.taken.Load() {
			c.setUse(connlimit.Coming) // a client that does not read its response is evicted like one that does not send
		}
	}()
	defer s.survive(r)
	if !r.ProtoAtLeast(1, 1) && r.Header.Get("Connection") == "" {
		w.Header().Set("Connection", "close") // net/http closes, and does not say so
	}
	switch {
	case r.Method == "PRI": // HTTP/2 without its upgrade
		refuse(w, parley.Refuse(parley.InvalidArgument, "the request is not HTTP: want HTTP/1.1"), http.StatusBadRequest)
	case c.refused != nil:
		refuse(w, c.refused, http.StatusForbidden)
	default:
		s.options.Handler.ServeHTTP(w, r)
	}
}

// survive logs a panic and cuts off its connection.
func (s *Server) survive(r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler {
		s.options.Log.Error("a call panicked", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// refuse answers a request with an error, and ends its connection.
func refuse(w http.ResponseWriter, err error, status int) {
	h := w.Header()
	h.Set("Connection", "close")
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(errorText(err)) // a client that has gone away misses nothing
}

// errorText returns the JSON of an error, as all edges write it.
func errorText(err error) []byte {
	text, failed := json.Marshal(map[string]any{"error": parley.AsError(err)})
	if failed != nil {
		text = []byte(`{"error":{"code":"INTERNAL","message":"internal error"}}`)
	}
	return append(text, '\n')
}

// filesKept is the number of files that a process may need besides connections.
const filesKept = 256

// Affordable bounds a number of connections to half of the files that the process may open.
func Affordable(connections int64) int {
	if files, limited := FileLimit(); limited {
		most := max(int64(min(files, 1<<30))-filesKept, 32) / 2
		connections = min(connections, most)
	}
	return int(min(connections, 1<<30))
}
