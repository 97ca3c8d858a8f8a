package gateway

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"

	"parley/actors/connlimit"
)

// limitedListener bounds the connections of a listener by address.
type limitedListener struct {
	net.Listener
	limiter *connlimit.Limiter
}

// Accept implements net.Listener. A connection for which there is no place is closed at once.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &limitedConn{Conn: conn}
		place, ok := l.limiter.Enter(connlimit.Address(conn.RemoteAddr()), c)
		if ok {
			c.place = place
			return c, nil
		}
		_ = conn.Close() // it came too late
	}
}

// limitedConn is a connection that has a place.
type limitedConn struct {
	net.Conn
	place *connlimit.Place
	use   atomic.Int32 // a connlimit.Use, or evicted
}

const evicted = int32(connlimit.Busy) + 1

// Evict implements connlimit.Occupant.
func (c *limitedConn) Evict(most connlimit.Use) bool {
	now := c.use.Load()
	if now > int32(most) || !c.use.CompareAndSwap(now, evicted) {
		return false
	}
	_ = c.Conn.Close() // nothing is told to who said nothing
	return true
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.place.Leave()
	return err
}

// uses notes how much is under way, unless the connection was evicted.
func (c *limitedConn) uses(u connlimit.Use) {
	for now := c.use.Load(); now != evicted && !c.use.CompareAndSwap(now, int32(u)); now = c.use.Load() {
	}
}

// limitedOf returns the limitedConn under a connection of a server; nil if there is none.
func limitedOf(conn net.Conn) *limitedConn {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, _ := conn.(*limitedConn)
	return c
}

// noteState is the ConnState of an http.Server.
func noteState(conn net.Conn, state http.ConnState) {
	c := limitedOf(conn)
	if c == nil {
		return
	}
	switch state {
	case http.StateIdle:
		c.uses(connlimit.Silent)
	case http.StateActive:
		c.uses(connlimit.Coming)
	case http.StateHijacked:
		c.uses(connlimit.Busy)
	}
}

type limitedKey struct{}

// withConn is the ConnContext of an http.Server.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, limitedKey{}, limitedOf(conn))
}

// requestCame notes that all of a request is there: its connection is in use now.
func requestCame(w http.ResponseWriter, r *http.Request) {
	if visitor, ok := w.(*responseWriter); ok {
		visitor.visit.state.CompareAndSwap(coming, busy)
		return
	}
	if c, _ := r.Context().Value(limitedKey{}).(*limitedConn); c != nil {
		c.uses(connlimit.Busy)
	}
}

// filesKept is how many files a process may need besides connections.
const filesKept = 256

// affordable bounds a number of connections to half of the files that the process may open.
func affordable(connections int64) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		most := max(int64(min(files.Cur, 1<<30))-filesKept, 32) / 2
		connections = min(connections, most)
	}
	return int(min(connections, 1<<30))
}
