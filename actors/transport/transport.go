package transport

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
	"parley/internal/natsauth"
)

// Options configure a transport.
type Options struct {
	Identity *Identity
	Listen   string          // HOST:PORT for other nodes to dial, "" for none; port 0 picks one
	Hub      string          // URL of a NATS system to meet others at, "" for none; it may have credentials
	Access   natsauth.Access // to that system
	Log      *slog.Logger

	// Admit reports whether a node that has proved its key may connect to the listener. The token is mostly "". Nil
	// admits nobody. Admit must not block.
	Admit func(node capabilities.NodeID, token string) bool

	// Receive handles a packet. It returns the kind and body of the response, and false if there is none. It is called
	// by many goroutines. ctx ends when the transport closes, or when the sender no longer waits.
	Receive func(ctx context.Context, p Packet) (Kind, []byte, bool)

	MaxPackets int // packets that are received at once; default 64
	Unproved   int // connections from one address to the listener that have not proved a node's key; default 128
}

const (
	defaultPackets  = 64
	defaultUnproved = 128
	packetsOfNode   = 8 // packets of one node that are received at once
)

func (o *Options) check() error {
	if o.Identity == nil || o.Receive == nil {
		return parley.Refuse(parley.InvalidArgument, "a transport needs Identity and Receive")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxPackets <= 0 {
		o.MaxPackets = defaultPackets
	}
	if o.Unproved <= 0 {
		o.Unproved = defaultUnproved
	}
	return nil
}

// Transport connects a node with others. It may be used by many goroutines.
type Transport struct {
	*counts
	o        Options
	me       capabilities.NodeID
	ids      *capabilities.Source
	listener *listener // nil if there is none
	own, hub *link     // nil if there is none
	slots    *slots
	ctx      context.Context // ends with the transport
	end      context.CancelFunc

	mu         sync.Mutex
	closed     bool
	busy       sync.WaitGroup // Dials and packets being received
	dialed     map[capabilities.NodeID]*link
	dialing    map[capabilities.NodeID]chan struct{}
	routeHints map[capabilities.NodeID]routeHint
	calls      map[ulid.ULID]*call
}

// Open starts the listener and connects to the hub, as far as they are configured. It retries a hub that cannot be
// reached until Close. ctx bounds Open only.
func Open(ctx context.Context, o Options) (*Transport, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	t := &Transport{
		o:          o,
		me:         o.Identity.Node(),
		counts:     newCounts(),
		slots:      newSlots(o.MaxPackets, packetsOfNode),
		dialed:     map[capabilities.NodeID]*link{},
		dialing:    map[capabilities.NodeID]chan struct{}{},
		routeHints: map[capabilities.NodeID]routeHint{},
		calls:      map[ulid.ULID]*call{},
	}
	t.ids = capabilities.NewSource(t.me, time.Now, rand.Reader, ulid.ULID{})
	t.ctx, t.end = context.WithCancel(context.WithoutCancel(ctx))
	err := t.listen(ctx)
	if err == nil {
		err = t.connectHub(ctx)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = t.Close()
		return nil, err
	}
	return t, nil
}

// Address returns the address of the listener, "" if there is none.
func (t *Transport) Address() string {
	if t.listener == nil {
		return ""
	}
	return t.listener.address()
}

// begin delays Close until done is called. It fails after Close.
func (t *Transport) begin() (done func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed()
	}
	t.busy.Add(1)
	return t.busy.Done, nil
}

func errClosed() error {
	return parley.Refuse(parley.NodeUnreachable, "this node has closed its connections to others")
}

// Close closes all connections and cancels the contexts of Receive, then waits for every Receive to return. Packets
// under way are lost. Closing again does nothing.
func (t *Transport) Close() error {
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	links := t.ended()
	t.mu.Unlock()
	t.end()
	if first {
		for _, link := range links {
			link.close()
		}
		if t.listener != nil {
			t.listener.stop()
		}
	}
	t.busy.Wait()
	return nil
}

// ended removes all links from the transport, and returns them. The lock is held.
func (t *Transport) ended() []*link {
	var links []*link
	for node, link := range t.dialed {
		links = append(links, link)
		delete(t.dialed, node)
	}
	if t.hub != nil {
		links = append(links, t.hub)
	}
	if t.own != nil {
		links = append(links, t.own)
	}
	return links
}

// Unproved returns the number of connections to the listener that have not proved a node's key. It also returns the
// bounds for one address and for all, and how many connections were refused or closed.
func (t *Transport) Unproved() (now, each, all int, refused uint64) {
	if t.listener == nil {
		return 0, 0, 0, 0
	}
	return t.listener.front.limiter.State()
}
