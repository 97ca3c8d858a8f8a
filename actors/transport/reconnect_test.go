package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"parley"
	"parley/internal/eventually"
	"parley/internal/freeport"
)

func TestLostConnectionIsRestored(t *testing.T) {
	identity := newIdentity(t)
	a := openListening(t, Options{Identity: identity})
	b := openTransport(t, Options{})
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	mustCall(t, b, a, "before")
	address := a.Address()
	must(t, a.Close())
	eventually.Holds(t, "b knows", func() bool { return !b.Connected(identity.Node()) })
	if _, err := b.Call(testContext(t), identity.Node(), 1, nil); parley.CodeOf(err) != parley.NodeUnreachable {
		t.Errorf("a call to who is gone: %v", err)
	}
	again := openTransport(t, Options{Identity: identity, Listen: address})
	eventually.Holds(t, "b is back", func() bool { return b.Connected(identity.Node()) && again.Connected(b.me) })
	mustCall(t, b, again, "after")
	mustCall(t, again, b, "after, the other way")
}

func TestDialDoesNotWaitForBackOff(t *testing.T) {
	identity := newIdentity(t)
	a := openListening(t, Options{Identity: identity})
	b := openTransport(t, Options{})
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	must(t, a.Close())
	eventually.Holds(t, "b knows", func() bool { return !b.Connected(identity.Node()) })
	moved := openListening(t, Options{Identity: identity})
	must(t, b.Dial(testContext(t), identity.Node(), moved.Hints(), ""))
	mustCall(t, b, moved, "at another address")
}

func TestCallUsesAnotherConnection(t *testing.T) {
	hub := openHub(t)
	identity, entered := newIdentity(t), make(chan struct{})
	deaf := func(ctx context.Context, _ Packet) (Kind, []byte, bool) {
		close(entered)
		<-ctx.Done()
		return 0, nil, false
	}
	a := openListening(t, Options{Identity: identity, Receive: deaf})
	b := openTransport(t, Options{Hub: hub})
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	openTransport(t, Options{Identity: identity, Hub: hub}) // the same node, connected to the hub too
	got := make(chan error, 1)
	go func() { _, err := b.Call(testContext(t), identity.Node(), 1, nil); got <- err }()
	<-entered
	must(t, a.Close())
	if err := <-got; err != nil {
		t.Errorf("the connection was lost on the way: %v", err)
	}
}

func TestHangupEndsTheConnection(t *testing.T) {
	a, b := openListening(t, Options{}), openTransport(t, Options{})
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	b.Hangup(a.me)
	b.Hangup(a.me)
	if _, err := b.Call(testContext(t), a.me, 1, nil); !errors.Is(err, errNoLink) {
		t.Errorf("after hanging up: %v", err)
	}
	eventually.Holds(t, "a knows", func() bool { return !a.Connected(b.me) })
}

func TestDisconnectEndsConnectionRemotely(t *testing.T) {
	a, b := openListening(t, Options{}), openTransport(t, Options{})
	must(t, b.Dial(testContext(t), a.me, a.Hints(), ""))
	link := b.dialed[a.me]
	a.Disconnect(b.me)
	eventually.Holds(t, "b is back", func() bool { return link.conn.Stats().Reconnects == 1 && link.connected() })
	mustCall(t, b, a, "admitted again")
}

func TestLateHubIsConnected(t *testing.T) {
	port := freeport.Choose(t, 1)[0]
	url := fmt.Sprintf("nats://ann:secret@127.0.0.1:%d", port)
	a, b := openTransport(t, Options{Hub: url}), openTransport(t, Options{Hub: url})
	if _, err := a.Call(testContext(t), b.me, 1, nil); parley.CodeOf(err) != parley.NodeUnreachable {
		t.Errorf("without a hub: %v", err)
	}
	srv, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: port, Username: "ann", Password: "secret", NoSigs: true, NoLog: true})
	must(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	eventually.Holds(t, "both are at the hub", func() bool { return a.hub.connected() && b.hub.connected() })
	must(t, b.hub.conn.FlushWithContext(testContext(t))) // the hub has b's subscriptions then
	mustCall(t, a, b, "met")
}

func TestDialEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections and sends nothing
	must(t, err)
	defer l.Close()
	b := openTransport(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	err = b.Dial(ctx, newIdentity(t).Node(), []string{"nats://" + l.Addr().String()}, "")
	if parley.CodeOf(err) != parley.NodeUnreachable || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) >= connectTimeout {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

func TestManyDialsMakeOneConnection(t *testing.T) {
	a, b := openListening(t, Options{}), openTransport(t, Options{})
	ctx, done := testContext(t), make(chan error)
	for range 10 {
		go func() { done <- b.Dial(ctx, a.me, a.Hints(), "") }()
	}
	for range 10 {
		must(t, <-done)
	}
	if n := len(a.listener.of(b.me)); n != 1 {
		t.Errorf("%d connections", n)
	}
}
