package actors

import (
	"net"
	"sync"
	"testing"
	"time"
)

// proxy forwards TCP connections to a node's listener. Other nodes get the proxy's address, which stays the same when the
// node is opened again on another port.
type proxy struct {
	listener   net.Listener
	goroutines sync.WaitGroup

	mu     sync.Mutex
	change *sync.Cond
	target string
	mode   proxyMode
	delay  time.Duration
	conns  map[net.Conn]bool
	closed bool
}

// proxyMode says how a proxy treats its connections.
type proxyMode int

const (
	forwarding   proxyMode = iota
	disconnected           // open and new connections are closed
	stalled                // connections are accepted, and no bytes are forwarded
)

func newProxy(tb testing.TB) *proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	g := &proxy{listener: l, conns: map[net.Conn]bool{}}
	g.change = sync.NewCond(&g.mu)
	g.goroutines.Go(g.accept)
	tb.Cleanup(g.close)
	return g
}

func (g *proxy) address() string { return g.listener.Addr().String() }

// setTarget sets the address to forward to and closes all connections.
func (g *proxy) setTarget(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = target
	g.closeAll()
}

// setMode sets the mode. Stalled connections continue when the mode is forwarding again.
func (g *proxy) setMode(m proxyMode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mode = m
	if m == disconnected {
		g.closeAll()
	}
	g.change.Broadcast()
}

// setDelay delays all bytes in each direction.
func (g *proxy) setDelay(delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delay = delay
}

func (g *proxy) close() {
	g.mu.Lock()
	g.closed = true
	g.closeAll()
	g.change.Broadcast()
	g.mu.Unlock()
	_ = g.listener.Close()
	g.goroutines.Wait()
}

// closeAll closes all connections. The caller holds mu.
func (g *proxy) closeAll() {
	for c := range g.conns {
		_ = c.Close()
	}
	clear(g.conns)
}

func (g *proxy) accept() {
	for {
		in, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.goroutines.Go(func() { g.connect(in) })
	}
}

// connect connects an accepted connection with the target.
func (g *proxy) connect(in net.Conn) {
	g.mu.Lock()
	target, refuse := g.target, g.mode == disconnected || g.closed
	g.mu.Unlock()
	var out net.Conn
	var err error
	if !refuse {
		out, err = net.DialTimeout("tcp", target, time.Second)
	}
	if refuse || err != nil {
		_ = in.Close()
		return
	}
	if !g.track(target, in, out) {
		return
	}
	g.goroutines.Go(func() { g.copyBytes(in, out) })
	g.copyBytes(out, in)
}

// track records a pair of connections, unless the mode or the target has changed meanwhile.
func (g *proxy) track(target string, in, out net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mode == disconnected || g.closed || g.target != target {
		_, _ = in.Close(), out.Close()
		return false
	}
	g.conns[in], g.conns[out] = true, true
	return true
}

func (g *proxy) copyBytes(from, to net.Conn) {
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		_, _ = from.Close(), to.Close()
		delete(g.conns, from)
		delete(g.conns, to)
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && g.awaitForwarding() {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// awaitForwarding blocks while the proxy is stalled. It reports whether bytes can be forwarded.
func (g *proxy) awaitForwarding() bool {
	g.mu.Lock()
	for g.mode == stalled && !g.closed {
		g.change.Wait()
	}
	delay, forwards := g.delay, g.mode == forwarding && !g.closed
	g.mu.Unlock()
	if forwards && delay > 0 {
		time.Sleep(delay) // the delay that the test asked for
	}
	return forwards
}
