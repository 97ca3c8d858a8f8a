package actors

import (
	"net"
	"sync"
	"testing"
	"time"
)

// gate is a way to a node's listener that the test owns. Other nodes are told the gate's address, which stays
// the same when the node behind it is opened again elsewhere.
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

// passage is how a gate stands.
type proxyMode int

const (
	forwarding   proxyMode = iota
	disconnected           // connections are closed, and new ones too
	stalled                // connections are taken, and nothing goes on
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

// aim has the gate lead to an address.
func (g *proxy) setTarget(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = target
	g.closeAll()
}

// set has the gate pass, cut or stall from now on. What was stalled goes on where it was when it passes again.
func (g *proxy) setMode(p proxyMode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mode = p
	if p == disconnected {
		g.closeAll()
	}
	g.change.Broadcast()
}

// slow has everything take so much longer, each way.
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

// closeAll closes what is open. The caller has the lock.
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

// join connects what came in to what is behind the gate.
func (g *proxy) connect(in net.Conn) {
	g.mu.Lock()
	target, shut := g.target, g.mode == disconnected || g.closed
	g.mu.Unlock()
	var out net.Conn
	var err error
	if !shut {
		out, err = net.DialTimeout("tcp", target, time.Second)
	}
	if shut || err != nil {
		_ = in.Close()
		return
	}
	if !g.track(target, in, out) {
		return
	}
	g.goroutines.Go(func() { g.copyBytes(in, out) })
	g.copyBytes(out, in)
}

// keep notes a pair of connections, unless the gate has changed meanwhile.
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

// pass waits until something may go on, and reports whether it still can.
func (g *proxy) awaitForwarding() bool {
	g.mu.Lock()
	for g.mode == stalled && !g.closed {
		g.change.Wait()
	}
	delay, on := g.delay, g.mode == forwarding && !g.closed
	g.mu.Unlock()
	if on && delay > 0 {
		time.Sleep(delay) // it is what is asked for, not a wait for something
	}
	return on
}
