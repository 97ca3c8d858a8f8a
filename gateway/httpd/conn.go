package httpd

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"syscall"

	"parley"
	"parley/actors/connlimit"
)

// conn is a connection that has a place.
type conn struct {
	net.Conn
	server  *Server
	place   *connlimit.Place
	by      any          // who has opened it
	refused error        // of every call
	use     atomic.Int32 // a connlimit.Use, or evicted
	ended   atomic.Bool  // the client sends no more
	taken   atomic.Bool  // over from HTTP, by a handler
	handled atomic.Bool  // a handler has the present request, and writes to the connection
}

const evicted = int32(connlimit.Busy) + 1

// Evict implements connlimit.Occupant.
func (c *conn) Evict(most connlimit.Use) bool {
	now := c.use.Load()
	if now > int32(most) || !c.use.CompareAndSwap(now, evicted) {
		return false
	}
	_ = c.Conn.Close() // no response without a request
	return true
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.use.Load() == int32(connlimit.Silent) {
		c.use.CompareAndSwap(int32(connlimit.Silent), int32(connlimit.Coming))
	}
	if err == io.EOF {
		c.ended.Store(true)
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if c.handled.Load() {
		return c.Conn.Write(p)
	}
	if text := restated(p); text != nil {
		if c.ended.Load() {
			return len(p), nil // half a request came, and its client has gone
		}
		if _, err := c.Conn.Write(text); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// plainError follows the status line where net/http itself refuses a request.
const plainError = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// restated returns net/http's own refusal of a request with a body in JSON; nil for every other text.
func restated(p []byte) []byte {
	if !bytes.HasPrefix(p, []byte("HTTP/1.1 4")) && !bytes.HasPrefix(p, []byte("HTTP/1.1 5")) {
		return nil
	}
	status, reason, ok := bytes.Cut(p, []byte(plainError))
	if !ok || bytes.Contains(status, []byte("\r\n")) {
		return nil
	}
	err := parley.Refuse(parley.InvalidArgument, "the request is not HTTP: %s", reason)
	if bytes.HasPrefix(status, []byte("HTTP/1.1 431")) {
		err = parley.Refuse(parley.TooLarge, "a request's header may have %d bytes at most", MaxHeader)
	}
	body := errorText(err)
	text := append([]byte(nil), status...)
	text = append(text, "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: "...)
	text = append(strconv.AppendInt(text, int64(len(body)), 10), "\r\n\r\n"...)
	return append(text, body...)
}

// CloseWrite closes the connection for writing, so that its client can read what was written last.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// SyscallConn implements syscall.Conn, for a connection that was taken over.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.place.Leave()
	c.server.forget(c)
	return err
}

// setUse sets the use of the connection, unless it was evicted.
func (c *conn) setUse(u connlimit.Use) {
	for now := c.use.Load(); now != evicted && !c.use.CompareAndSwap(now, int32(u)); now = c.use.Load() {
	}
}

// noteState is the ConnState of a Server's http.Server.
func noteState(nc net.Conn, state http.ConnState) {
	c := underlying(nc)
	switch state {
	case http.StateIdle:
		c.handled.Store(false) // all of the response is written
		c.setUse(connlimit.Silent)
	case http.StateActive:
		c.setUse(connlimit.Coming)
	case http.StateHijacked:
		c.taken.Store(true)
		c.setUse(connlimit.Busy)
		c.server.forget(c)
	}
}

// underlying returns the conn below a connection of an http.Server.
func underlying(nc net.Conn) *conn {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	return nc.(*conn)
}

type connKey struct{}

// connContext is the ConnContext of a Server's http.Server. It admits the connection or refuses its calls.
func (s *Server) connContext(ctx context.Context, nc net.Conn) context.Context {
	c := underlying(nc)
	if s.options.Admit != nil {
		c.by, c.refused = s.options.Admit(c.Conn)
	}
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a call.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}

// By returns who has opened the connection of a request, as the Server's Admit has said; nil for a request that no Server
// serves.
func By(ctx context.Context) any {
	if c := connOf(ctx); c != nil {
		return c.by
	}
	return nil
}

// SetUse sets the use of the connection of a request: Busy once all of the request is there, and Coming once nothing but
// its response is left. It does nothing for a request that no Server serves.
func SetUse(r *http.Request, u connlimit.Use) {
	if c := connOf(r.Context()); c != nil {
		c.setUse(u)
	}
}

// CallContext returns the context of a call that goes on when its client goes away. It ends when the Server gives the
// call up. It has none of the values of the request's context.
func CallContext(r *http.Request) context.Context {
	if c := connOf(r.Context()); c != nil {
		return c.server.calls
	}
	return context.WithoutCancel(r.Context())
}
