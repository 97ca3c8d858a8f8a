package transport

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"time"

	"parley/capabilities"
	"parley/internal/eventually"
)

// occupy keeps many connections to an address open. It calls begin with each, and replaces closed ones.
func occupy(t *testing.T, address string, many int, begin func(net.Conn)) {
	t.Helper()
	stop := make(chan struct{})
	var all, open sync.WaitGroup
	open.Add(many)
	for range many {
		all.Go(func() {
			for first := true; ; first = false {
				conn, err := net.Dial("tcp", address)
				if err == nil {
					begin(conn)
				}
				if first {
					open.Done()
				}
				if err == nil {
					stopped := make(chan struct{})
					go func() {
						select {
						case <-stop:
						case <-stopped:
						}
						_ = conn.Close()
					}()
					_, _ = conn.Read(make([]byte, 1)) // until it is closed
					close(stopped)
				}
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
				}
			}
		})
	}
	t.Cleanup(func() {
		close(stop)
		all.Wait()
	})
	open.Wait()
}

func TestSilentConnectionsDoNotExcludeNodes(t *testing.T) {
	a := openListening(t, Options{})
	occupy(t, a.Address(), 1100, func(net.Conn) {})
	for range 5 {
		b := openTransport(t, Options{})
		must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
		mustCall(t, b, a, "through the crowd")
	}
}

// TestUnprovedConnectionsDoNotExcludeNodes opens many TLS connections that prove no key. They are evicted for nodes.
func TestUnprovedConnectionsDoNotExcludeNodes(t *testing.T) {
	a := openListening(t, Options{Unproved: 20})
	known := openTransport(t, Options{})
	must(t, known.Dial(testContext(t), a.me, a.Hints(), ""))
	occupy(t, a.Address(), 60, func(conn net.Conn) {
		secure := tls.Client(conn, dialing(a.me))
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_ = secure.Handshake()
		_ = conn.SetDeadline(time.Time{})
	})
	b := openTransport(t, Options{})
	eventually.Holds(t, "a node gets through", func() bool { return b.Dial(testContext(t), a.me, a.Hints(), "") == nil })
	mustCall(t, b, a, "hello")
	mustCall(t, known, a, "who was there is not cut off")
	if now, each, _, refused := a.Unproved(); now > each || refused == 0 {
		t.Errorf("%d of %d, %d refused", now, each, refused)
	}
}

func TestProvedConnectionsAreNotCounted(t *testing.T) {
	a := openListening(t, Options{Unproved: 1})
	for range 4 {
		b := openTransport(t, Options{})
		must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
		mustCall(t, b, a, "hello")
	}
	eventually.Holds(t, "nobody is unproved", func() bool { now, _, _, _ := a.Unproved(); return now == 0 })
}

func TestRefusedConnectionsAreReleased(t *testing.T) {
	a := openListening(t, Options{Admit: func(capabilities.NodeID, string) bool { return false }})
	b := openTransport(t, Options{})
	if err := b.Dial(testContext(t), a.me, a.Hints(), ""); err == nil {
		t.Fatal("the connection was admitted")
	}
	eventually.Holds(t, "its place is free", func() bool { now, _, _, _ := a.Unproved(); return now == 0 })
}
