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

	// Receive takes a letter and gives the kind and body of the response; false: there is none. It is called by
	// many goroutines. ctx ends when the wire closes, or the sender has given up for sure.
	Receive func(ctx context.Context, l Letter) (Kind, []byte, bool)

	MaxLetters int // that are received at once; default 64
	Unproved   int // connections from one address to the listener that have not proved a node's key; default 128
}

const (
	defaultLetters  = 64
	defaultUnproved = 128
	lettersOfOne    = 8 // of one node that are received at once
)

func (o *Options) check() error {
	if o.Identity == nil || o.Receive == nil {
		return parley.Refuse(parley.InvalidArgument, "a wire needs an identity and somebody who receives")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxLetters <= 0 {
		o.MaxLetters = defaultLetters
	}
	if o.Unproved <= 0 {
		o.Unproved = defaultUnproved
	}
	return nil
}

// Wire is a node's connection to others. It may be used by many goroutines.
type Wire struct {
	o        Options
	me       capabilities.NodeID
	ids      *capabilities.Source
	listener *listener // nil if there is none
	own, hub *way      // nil if there is none
	counts   *counts
	places   *places
	ctx      context.Context // ends with the wire
	end      context.CancelFunc

	mu      sync.Mutex
	closed  bool
	busy    sync.WaitGroup // Dials and letters being received
	dialed  map[capabilities.NodeID]*way
	dialing map[capabilities.NodeID]chan struct{}
	habits  map[capabilities.NodeID]habit
	calls   map[ulid.ULID]*call
}

// Open starts the listener and connects to the hub, if there are any. A hub that is out of reach is tried again
// until Close. ctx bounds Open only.
func Open(ctx context.Context, o Options) (*Wire, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &Wire{
		o:       o,
		me:      o.Identity.Node(),
		counts:  newCounts(),
		places:  newPlaces(o.MaxLetters, lettersOfOne),
		dialed:  map[capabilities.NodeID]*way{},
		dialing: map[capabilities.NodeID]chan struct{}{},
		habits:  map[capabilities.NodeID]habit{},
		calls:   map[ulid.ULID]*call{},
	}
	w.ids = capabilities.NewSource(w.me, time.Now, rand.Reader, ulid.ULID{})
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	err := w.listen(ctx)
	if err == nil {
		err = w.meet(ctx)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	return w, nil
}

// Address is what the listener listens on, "" if there is none.
func (w *Wire) Address() string {
	if w.listener == nil {
		return ""
	}
	return w.listener.address()
}

// begin holds Close off until done is called. It fails once the wire is closed.
func (w *Wire) begin() (done func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosed()
	}
	w.busy.Add(1)
	return w.busy.Done, nil
}

func errClosed() error {
	return parley.Refuse(parley.NodeUnreachable, "this node has closed its connections to others")
}

// Close ends all connections and the contexts of Receive, and waits until every Receive has returned. What is
// on its way is lost. Closing again does nothing.
func (w *Wire) Close() error {
	w.mu.Lock()
	first := !w.closed
	w.closed = true
	ways := w.ended()
	w.mu.Unlock()
	w.end()
	if first {
		for _, way := range ways {
			way.close()
		}
		if w.listener != nil {
			w.listener.stop()
		}
	}
	w.busy.Wait()
	return nil
}

// ended takes all ways from the wire. The lock is held.
func (w *Wire) ended() []*way {
	var ways []*way
	for node, way := range w.dialed {
		ways = append(ways, way)
		delete(w.dialed, node)
	}
	if w.hub != nil {
		ways = append(ways, w.hub)
	}
	if w.own != nil {
		ways = append(ways, w.own)
	}
	return ways
}

// Unproved returns how many connections to the listener have not proved a node's key, how many may for one address and
// altogether, and how many were refused or cut off.
func (w *Wire) Unproved() (now, each, all int, refused uint64) {
	if w.listener == nil {
		return 0, 0, 0, 0
	}
	return w.listener.front.limiter.State()
}
