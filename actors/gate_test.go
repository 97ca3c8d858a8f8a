package actors

import (
	"net"
	"sync"
	"testing"
	"time"
)

// gate is a way to a node's listener that the test owns. Other nodes are told the gate's address, which stays
// the same when the node behind it is opened again elsewhere.
type gate struct {
	listener net.Listener
	pumps    sync.WaitGroup

	mu     sync.Mutex
	change *sync.Cond
	target string
	state  passage
	delay  time.Duration
	conns  map[net.Conn]bool
	ended  bool
}

// passage is how a gate stands.
type passage int

const (
	passing passage = iota
	cut             // connections are closed, and new ones too
	stalled         // connections are taken, and nothing goes on
)

func newGate(tb testing.TB) *gate {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	g := &gate{listener: l, conns: map[net.Conn]bool{}}
	g.change = sync.NewCond(&g.mu)
	g.pumps.Go(g.accept)
	tb.Cleanup(g.end)
	return g
}

func (g *gate) address() string { return g.listener.Addr().String() }

// aim has the gate lead to an address.
func (g *gate) aim(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.target = target
	g.closeAll()
}

// set has the gate pass, cut or stall from now on. What was stalled goes on where it was when it passes again.
func (g *gate) set(p passage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = p
	if p == cut {
		g.closeAll()
	}
	g.change.Broadcast()
}

// slow has everything take so much longer, each way.
func (g *gate) slow(delay time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delay = delay
}

func (g *gate) end() {
	g.mu.Lock()
	g.ended = true
	g.closeAll()
	g.change.Broadcast()
	g.mu.Unlock()
	_ = g.listener.Close()
	g.pumps.Wait()
}

// closeAll closes what is open. The caller has the lock.
func (g *gate) closeAll() {
	for c := range g.conns {
		_ = c.Close()
	}
	clear(g.conns)
}

func (g *gate) accept() {
	for {
		in, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.pumps.Go(func() { g.join(in) })
	}
}

// join connects what came in to what is behind the gate.
func (g *gate) join(in net.Conn) {
	g.mu.Lock()
	target, shut := g.target, g.state == cut || g.ended
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
	if !g.keep(target, in, out) {
		return
	}
	g.pumps.Go(func() { g.pump(in, out) })
	g.pump(out, in)
}

// keep notes a pair of connections, unless the gate has changed meanwhile.
func (g *gate) keep(target string, in, out net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == cut || g.ended || g.target != target {
		_, _ = in.Close(), out.Close()
		return false
	}
	g.conns[in], g.conns[out] = true, true
	return true
}

func (g *gate) pump(from, to net.Conn) {
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
		if n > 0 && g.pass() {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// pass waits until something may go on, and reports whether it still can.
func (g *gate) pass() bool {
	g.mu.Lock()
	for g.state == stalled && !g.ended {
		g.change.Wait()
	}
	delay, on := g.delay, g.state == passing && !g.ended
	g.mu.Unlock()
	if on && delay > 0 {
		time.Sleep(delay) // it is what is asked for, not a wait for something
	}
	return on
}
