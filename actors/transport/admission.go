package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"parley/actors/connlimit"
	"parley/capabilities"
)

// Bounds of connections that have not proved yet whose they are.
const (
	unprovedAll     = 512
	unprovedReserve = 128 // of these, for addresses from which a node came before
	handshakeTime   = 5 * time.Second
	proofTime       = 10 * time.Second // with the handshake
	maxInfo         = 32 << 10         // bytes of what the server says first
	pieceTime       = 10 * time.Second // in which a node takes what it is sent
)

// admission accepts connections for the listener's server, whose only bound is on all of them. It speaks TLS, and bounds
// the connections that have not proved a node's key. Silent ones of these are closed in favour of new ones.
type admission struct {
	listener net.Listener
	server   *natsserver.Server
	tls      *tls.Config
	limiter  *connlimit.Limiter

	mu      sync.Mutex
	open    map[*caller]bool
	waiting map[string]*caller // those that have been challenged, by the challenge
	closed  bool
	work    sync.WaitGroup
}

func newAdmission(l net.Listener, server *natsserver.Server, config *tls.Config, each int) *admission {
	return &admission{
		listener: l, server: server, tls: config, limiter: connlimit.New(each, unprovedAll, unprovedReserve),
		open: map[*caller]bool{}, waiting: map[string]*caller{},
	}
}

// serve accepts connections until the listener is closed.
func (f *admission) serve() {
	for {
		conn, err := f.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // there are too many open files, or one connection failed
			time.Sleep(50 * time.Millisecond)
			continue
		}
		c := &caller{Conn: conn, front: f, address: connlimit.Address(conn.RemoteAddr())}
		place, ok := f.limiter.Enter(c.address, c)
		if !ok || !f.enter(c) {
			if ok {
				place.Leave()
			}
			_ = conn.Close() // it came too late
			continue
		}
		c.place = place
		go func() {
			defer f.work.Done()
			defer f.leave(c)
			c.serve()
		}()
	}
}

func (f *admission) enter(c *caller) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.open[c] = true
	f.work.Add(1)
	return true
}

func (f *admission) leave(c *caller) {
	_ = c.Close() // it has ended
	c.place.Leave()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, c)
	delete(f.waiting, c.challenge)
}

// proved notes that the receiver of a challenge has proved a node's key.
func (f *admission) proved(challenge string, node capabilities.NodeID) {
	f.mu.Lock()
	c := f.waiting[challenge]
	if c != nil {
		c.node = node
		delete(f.waiting, challenge)
	}
	f.mu.Unlock()
	if c != nil {
		c.proved()
	}
}

// addressesOf returns the remote addresses of a node's connections.
func (f *admission) addressesOf(node capabilities.NodeID) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var from []string
	for c := range f.open {
		if c.node == node {
			from = append(from, c.RemoteAddr().String())
		}
	}
	return from
}

// close closes all connections.
func (f *admission) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	f.closed = true
	for c := range f.open {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.work.Wait()
}

// caller is one incoming connection.
type caller struct {
	net.Conn
	front     *admission
	address   string
	place     *connlimit.Place
	use       atomic.Int32        // a connlimit.Use
	challenge string              // guarded by the front
	node      capabilities.NodeID // whose key was proved, zero before; guarded by the front
}

// Evict implements connlimit.Occupant.
func (c *caller) Evict(most connlimit.Use) bool {
	if c.use.Load() > int32(most) {
		return false
	}
	_ = c.Close() // whoever has proved nothing is told nothing
	return true
}

// Read implements net.Conn. It notes that the connection is no longer silent.
func (c *caller) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.use.CompareAndSwap(int32(connlimit.Silent), int32(connlimit.Coming))
	}
	return n, err
}

func (c *caller) proved() {
	c.use.Store(int32(connlimit.Busy))
	c.front.limiter.Know(c.address)
	c.place.Leave()
	_ = c.SetReadDeadline(time.Time{}) // the server finds out by itself whether it is still there
}

// serve speaks TLS, and copies the data between the other node and the server.
func (c *caller) serve() {
	began := time.Now()
	_ = c.SetDeadline(began.Add(handshakeTime)) // else the handshake fails
	secure := tls.Server(c, c.front.tls)
	if err := secure.HandshakeContext(context.Background()); err != nil {
		return
	}
	_ = c.SetReadDeadline(began.Add(proofTime))
	inner, err := c.front.server.InProcessConn()
	if err != nil {
		return
	}
	defer inner.Close() //nolint:errcheck // it has ended
	out := bufio.NewReaderSize(inner, maxInfo)
	if !c.sendChallenge(secure, inner, out) {
		return
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(inner, secure) // either way it has ended
		_ = inner.Close()
	}()
	c.send(secure, out)
	_ = c.Close() // the other node and what reads from it learn of the end by that
	<-over
}

// sendChallenge passes on the server's first line, which has its challenge.
func (c *caller) sendChallenge(to net.Conn, inner net.Conn, from *bufio.Reader) bool {
	_ = inner.SetReadDeadline(time.Now().Add(handshakeTime)) // else reading fails
	line, err := from.ReadSlice('\n')
	if err != nil {
		return false
	}
	_ = inner.SetReadDeadline(time.Time{})
	var info struct {
		Nonce string `json:"nonce"`
	}
	text, isInfo := bytes.CutPrefix(line, []byte("INFO "))
	if !isInfo || json.Unmarshal(text, &info) != nil || info.Nonce == "" {
		return false
	}
	c.front.mu.Lock()
	c.challenge = info.Nonce
	c.front.waiting[info.Nonce] = c
	c.front.mu.Unlock()
	_ = c.SetWriteDeadline(time.Now().Add(pieceTime)) // else writing fails
	_, err = to.Write(line)
	return err == nil
}

// send passes on the server's data to a node that takes it in time.
func (c *caller) send(to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_ = c.SetWriteDeadline(time.Now().Add(pieceTime)) // else writing fails
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
