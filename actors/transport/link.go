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
	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
)

const (
	connectTimeout = 3 * time.Second // for one address
	flushTimeout   = 5 * time.Second
	firstWait      = 250 * time.Millisecond // before a lost connection is made again; it doubles
	longestWait    = 4 * time.Second
)

// link is a connection that carries packets: to the own listener, the hub, or another node's listener.
type link struct {
	name string // for the log
	conn *nats.Conn
	gone chan struct{} // closed when the connection is for good
}

// connect opens a link to an address, or to one of several that are separated by commas.
func (t *Transport) connect(ctx context.Context, name, addresses string, more ...nats.Option) (*link, error) {
	link := &link{name: name, gone: make(chan struct{})}
	conn, err := nats.Connect(addresses, append(t.linkOptions(link), more...)...)
	if err != nil {
		return nil, err
	}
	link.conn = conn
	if err := t.subscribe(ctx, link); err != nil {
		link.close()
		return nil, err
	}
	return link, nil
}

// writeAtOnce is a small write buffer, so that a packet is written by the goroutine that sends it. That saves a
// switch of goroutines.
const writeAtOnce = 64

func (t *Transport) linkOptions(link *link) []nats.Option {
	return []nats.Option{
		nats.Name("parley"),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(backOff),
		nats.ReconnectBufSize(-1), // a packet that could not be sent is the caller's to send again
		nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(flushTimeout),
		nats.WriteBufferSize(writeAtOnce),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			t.o.Log.Debug("connection to other nodes lost", "link", link.name, "error", err)
			t.lost(link)
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			t.o.Log.Debug("connection to other nodes made again", "link", link.name)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			t.o.Log.Debug("connection to other nodes", "link", link.name, "error", err)
		}),
		nats.ClosedHandler(func(*nats.Conn) {
			t.forget(link)
			close(link.gone)
		}),
	}
}

// backOff returns a random delay that grows with the number of failed rounds.
func backOff(rounds int) time.Duration {
	wait := min(firstWait<<min(max(rounds-1, 0), 10), longestWait)
	return wait/2 + rand.N(wait)
}

// subscribe subscribes to packets and responses. If the link is connected, it returns when the server has noted that.
func (t *Transport) subscribe(ctx context.Context, link *link) error {
	if _, err := link.conn.Subscribe(mailSubject(t.me), func(m *nats.Msg) { t.acceptPacket(link, m) }); err != nil {
		return fmt.Errorf("take packets: %w", err)
	}
	if _, err := link.conn.Subscribe(replySubjects(t.me), func(m *nats.Msg) { t.acceptReply(link, m) }); err != nil {
		return fmt.Errorf("take responses: %w", err)
	}
	if !link.conn.IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := link.conn.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("take packets: %w", err)
	}
	return nil
}

func (l *link) connected() bool { return l != nil && l.conn.IsConnected() }

// close closes the link and waits for its last callback. It must not be called from a callback of the link.
func (l *link) close() {
	l.conn.Close()
	<-l.gone
}

// listen starts the listener, and connects to it within the process.
func (t *Transport) listen(ctx context.Context) error {
	if t.o.Listen == "" {
		return nil
	}
	l, err := startListener(&t.o)
	if err != nil {
		return err
	}
	t.listener = l
	if t.own, err = t.connect(ctx, "listener", "", nats.InProcessServer(l.server), t.proof(t.me)); err != nil {
		return fmt.Errorf("connect to the own listener: %w", err)
	}
	return nil
}

// proof answers the challenge of a node's listener.
func (t *Transport) proof(listener capabilities.NodeID) nats.Option {
	return nats.Nkey(t.me.String(), func(nonce []byte) ([]byte, error) {
		return t.o.Identity.prove(listener, nonce), nil
	})
}

// connectHub connects to the hub, or starts to retry.
func (t *Transport) connectHub(ctx context.Context) (err error) {
	if t.o.Hub == "" {
		return nil
	}
	if !isHubURL(t.o.Hub) {
		return errHubURL()
	}
	d := &dialer{first: ctx, later: t.ctx}
	defer d.settle()
	access, err := t.o.Access.Options()
	if err != nil {
		return err
	}
	t.hub, err = t.connect(ctx, "hub", t.o.Hub, append(access, nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort(),
		nats.SkipHostLookup(), nats.SetCustomDialer(d))...)
	if err != nil {
		return fmt.Errorf("connect to the hub: %w", err)
	}
	if !t.hub.connected() {
		t.o.Log.Warn("the hub is out of reach; it is tried again")
	}
	return nil
}

// errHubURL returns an error without the URL, which may have credentials.
func errHubURL() error {
	return parley.Refuse(parley.InvalidArgument, "the hub's URL is none").
		WithHint("it is nats://HOST:PORT or tls://HOST:PORT, with USER:PASSWORD@ before the host if the hub wants it")
}

// isHubURL reports whether text is one URL of a hub or several, separated by commas. The scheme may be omitted.
func isHubURL(text string) bool {
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

const everySubject = "parley.node.>"

func nodeSubject(node capabilities.NodeID) string { return "parley.node." + node.String() }

// mailSubject returns the subject of a node's packets.
func mailSubject(node capabilities.NodeID) string { return nodeSubject(node) + ".mail" }

// replySubject returns the subject of the response to one of a node's packets.
func replySubject(node capabilities.NodeID, packet ulid.ULID) string {
	return nodeSubject(node) + ".reply." + packet.String()
}

// replySubjects matches every replySubject of a node.
func replySubjects(node capabilities.NodeID) string { return nodeSubject(node) + ".reply.>" }

// packetID returns the ID of the packet with a reply subject.
func packetID(subject string) (ulid.ULID, bool) {
	id, err := ulid.ParseStrict(subject[strings.LastIndexByte(subject, '.')+1:])
	return id, err == nil
}
