package transport

import (
	"context"
	"log/slog"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"parley/capabilities"
	"parley/internal/eventually"
)

// newIdentity returns a new node's identity.
func newIdentity(t testing.TB) *Identity {
	t.Helper()
	key, err := nkeys.CreateServer()
	must(t, err)
	i, err := NewIdentity(key)
	must(t, err)
	return i
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// admitAll admits every node.
func admitAll(capabilities.NodeID, string) bool { return true }

// echo responds with the packet's body and the next kind.
func echo(_ context.Context, l Packet) (Kind, []byte, bool) { return l.Kind + 1, l.Body, true }

// openTransport opens a transport and closes it after the test. By default it echoes packets and admits every node.
func openTransport(t testing.TB, o Options) *Transport {
	t.Helper()
	if o.Identity == nil {
		o.Identity = newIdentity(t)
	}
	if o.Receive == nil {
		o.Receive = echo
	}
	if o.Admit == nil {
		o.Admit = admitAll
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w, err := Open(testContext(t), o)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

// openListening is openTransport with a listener on this machine.
func openListening(t testing.TB, o Options) *Transport {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	return openTransport(t, o)
}

// atOnce is less than what waits for a response takes, by far, and enough on a machine that does much else.
const atOnce = 10 * time.Second

// testContext returns a context that bounds the time of a test.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), eventually.Patience)
	t.Cleanup(cancel)
	return ctx
}

// openHub runs a NATS server without authentication, and returns its URL.
func openHub(t testing.TB) string {
	t.Helper()
	return openHubWith(t, &natsserver.Options{})
}

func openHubWith(t testing.TB, o *natsserver.Options) string {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", natsserver.RANDOM_PORT, true, true
	srv, err := natsserver.NewServer(o)
	must(t, err)
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	if !srv.ReadyForConnections(eventually.Patience) {
		t.Fatal("the hub does not start")
	}
	return srv.ClientURL()
}

// connectClient connects to a hub with the plain NATS client.
func connectClient(t testing.TB, url string) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(url)
	must(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// mustCall makes a call and checks that the response is the echo.
func mustCall(t testing.TB, from, to *Transport, body string) {
	t.Helper()
	l, err := from.Call(testContext(t), to.me, 7, []byte(body))
	must(t, err)
	if l.From != to.me || l.Kind != 8 || string(l.Body) != body || !l.Answer {
		t.Fatalf("the response to %q is %+v", body, l)
	}
}
