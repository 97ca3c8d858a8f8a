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
)

// Options say who a node is and where it meets others.
type Options struct {
	Identity *Identity
	Listen   string // HOST:PORT for other nodes to dial, "" for none; port 0 picks one
	Hub      string // URL of a NATS system to meet others at, "" for none; it may have credentials
	Log      *slog.Logger

	// Admit says whether a node, which has proved its key, may connect to the listener. The token is what it
	// presented, mostly "". Nil admits nobody. It must not wait for anything.
	Admit func(node capabilities.NodeID, token string) bool

	// Receive takes a packet and gives the kind and body of the response; false: there is none. It is called by
	// many goroutines. ctx ends when the transport closes, or the sender has given up for sure.
	Receive func(ctx context.Context, p Packet) (Kind, []byte, bool)

	MaxPackets int // that are received at once; default 64
	Unproved   int // connections from one address to the listener that have not proved a node's key; default 128
}

const (
	defaultPackets  = 64
	defaultUnproved = 128
	packetsOfNode   = 8 // of one node that are received at once
)

func (o *Options) check() error {
	if o.Identity == nil || o.Receive == nil {
		return parley.Refuse(parley.InvalidArgument, "a transport needs an identity and somebody who receives")
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

// Transport is a node's connection to others. It may be used by many goroutines.
type Transport struct {
	o        Options
	me       capabilities.NodeID
	ids      *capabilities.Source
	listener *listener // nil if there is none
	own, hub *link     // nil if there is none
	counts   *counts
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

// Open starts the listener and connects to the hub, if there are any. A hub that is out of reach is tried again
// until Close. ctx bounds Open only.
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

// Address is what the listener listens on, "" if there is none.
func (t *Transport) Address() string {
	if t.listener == nil {
		return ""
	}
	return t.listener.address()
}

// begin holds Close off until done is called. It fails once the transport is closed.
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

// Close ends all connections and the contexts of Receive, and waits until every Receive has returned. What is
// on its W is lost. Closing again does nothing.
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

// ended takes all links from the transport. The lock is held.
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

// Unproved returns how many connections to the listener have not proved a node's key, how many may for one address and
// altogether, and how many were refused or cut off.
func (t *Transport) Unproved() (now, each, all int, refused uint64) {
	if t.listener == nil {
		return 0, 0, 0, 0
	}
	return t.listener.front.limiter.State()
}
