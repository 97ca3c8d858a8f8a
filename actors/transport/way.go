package transport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"parley"
	"parley/capabilities"
)

const (
	connectTimeout = 3 * time.Second // for one address
	flushTimeout   = 5 * time.Second
	firstWait      = 250 * time.Millisecond // before a lost connection is made again; it doubles
	longestWait    = 4 * time.Second
)

// way is one connection over which letters come and go: to the own listener, the hub, or another's listener.
type way struct {
	name string // for the log
	conn *nats.Conn
	gone chan struct{} // closed when the connection is for good
}

// connect makes a way. If the address is dialed, it may have several, separated by commas.
func (w *Wire) connect(ctx context.Context, name, addresses string, more ...nats.Option) (*way, error) {
	way := &way{name: name, gone: make(chan struct{})}
	conn, err := nats.Connect(addresses, append(w.wayOptions(way), more...)...)
	if err != nil {
		return nil, err
	}
	way.conn = conn
	if err := w.attend(ctx, way); err != nil {
		way.close()
		return nil, err
	}
	return way, nil
}

// writeAtOnce has a letter written by the goroutine that sends it. One more to take it up would cost a turn each.
const writeAtOnce = 64

func (w *Wire) wayOptions(way *way) []nats.Option {
	return []nats.Option{
		nats.Name("parley"),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(backOff),
		nats.ReconnectBufSize(-1), // a letter that could not be sent is the caller's to send again
		nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(flushTimeout),
		nats.WriteBufferSize(writeAtOnce),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			w.o.Log.Debug("connection to other nodes lost", "way", way.name, "error", err)
			w.lost(way)
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			w.o.Log.Debug("connection to other nodes made again", "way", way.name)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			w.o.Log.Debug("connection to other nodes", "way", way.name, "error", err)
		}),
		nats.ClosedHandler(func(*nats.Conn) {
			w.forget(way)
			close(way.gone)
		}),
	}
}

// backOff waits longer after each round of attempts that failed, and never quite as long as others do.
func backOff(rounds int) time.Duration {
	wait := min(firstWait<<min(max(rounds-1, 0), 10), longestWait)
	return wait/2 + rand.N(wait)
}

// attend takes letters and responses from the way, and returns when its server knows, if it is connected.
func (w *Wire) attend(ctx context.Context, way *way) error {
	if _, err := way.conn.Subscribe(mailSubject(w.me), func(m *nats.Msg) { w.letterCame(way, m) }); err != nil {
		return fmt.Errorf("take letters: %w", err)
	}
	if _, err := way.conn.Subscribe(replySubjects(w.me), func(m *nats.Msg) { w.replyCame(way, m) }); err != nil {
		return fmt.Errorf("take responses: %w", err)
	}
	if !way.conn.IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := way.conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("take letters: %w", err)
	}
	return nil
}

func (y *way) connected() bool { return y != nil && y.conn.IsConnected() }

// close ends the way and waits for its last callback. No callback of its own may call it.
func (y *way) close() {
	y.conn.Close()
	<-y.gone
}

// listen starts the listener and connects to it from inside.
func (w *Wire) listen(ctx context.Context) error {
	if w.o.Listen == "" {
		return nil
	}
	l, err := startListener(&w.o)
	if err != nil {
		return err
	}
	w.listener = l
	if w.own, err = w.connect(ctx, "listener", "", nats.InProcessServer(l.server), w.proof(w.me)); err != nil {
		return fmt.Errorf("connect to the own listener: %w", err)
	}
	return nil
}

// proof answers the challenge of a node's listener.
func (w *Wire) proof(listener capabilities.NodeID) nats.Option {
	return nats.Nkey(w.me.String(), func(nonce []byte) ([]byte, error) {
		return w.o.Identity.prove(listener, nonce), nil
	})
}

// meet connects to the hub, or begins to try.
func (w *Wire) meet(ctx context.Context) (err error) {
	if w.o.Hub == "" {
		return nil
	}
	if !isHub(w.o.Hub) {
		return errNoHub()
	}
	d := &dialer{first: ctx, later: w.ctx}
	defer d.settle()
	w.hub, err = w.connect(ctx, "hub", w.o.Hub, nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(),
		nats.SkipHostLookup(), nats.SetCustomDialer(d))
	if err != nil {
		return fmt.Errorf("connect to the hub: %w", err)
	}
	if !w.hub.connected() {
		w.o.Log.Warn("the hub is out of reach; it is tried again")
	}
	return nil
}

// errNoHub does not show the URL, which may have credentials.
func errNoHub() error {
	return parley.Refuse(parley.InvalidArgument, "the hub's URL is none").
		WithHint("it is nats://HOST:PORT or tls://HOST:PORT, with USER:PASSWORD@ before the host if the hub wants it")
}

// isHub reports whether text is the URL of a hub, or several separated by commas. As everywhere with NATS, the
// scheme may be left out.
func isHub(text string) bool {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); !strings.Contains(one, "://") {
			one = "nats://" + one
		}
		u, err := url.Parse(one)
		if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return false
		}
	}
	return true
}
