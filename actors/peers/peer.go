package peers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"parley"
	"parley/actors/transport"
	"parley/capabilities"
	"parley/events"
)

// Peer is another node: its addresses, and the mail for it. Its methods may be called by many goroutines.
type Peer struct {
	d  *Directory
	id capabilities.NodeID

	reachable atomic.Bool
	lastHeard atomic.Int64 // when a packet last came from it, in unix milliseconds
	accepting atomic.Int64 // bytes of its packets that are being accepted
	mailIn    atomic.Uint64
	mailOut   atomic.Uint64

	moves             *rate.Limiter  // how often new addresses of it are recorded
	introducedWarning rate.Sometimes // the warning of too many introductions

	crashed atomic.Bool // its actor is being restarted
	back    atomic.Bool // it has shown itself, so that the actor need not pause

	mu       sync.Mutex
	tell     func(message any) // to its actor; nil before that is spawned
	notified bool              // the actor is to look for work
	hints    []string
	stamp    capabilities.Time
	within   events.Network                      // the nearest in which it is dialled
	waits    map[capabilities.ID]int             // number of items without an ack, by mailbox
	ready    []capabilities.ID                   // mailboxes to be asked for their items
	queued   map[capabilities.ID]bool            // those in ready
	inFlight map[capabilities.ID]map[uint64]bool // items that are on their way, by mailbox
	epoch    uint64                              // of the newest window
	receives receiveWindow                       // for packets that come from it
}

func newPeer(d *Directory, id capabilities.NodeID) *Peer {
	return &Peer{
		d: d, id: id,
		waits: map[capabilities.ID]int{}, queued: map[capabilities.ID]bool{}, inFlight: map[capabilities.ID]map[uint64]bool{},
		moves: rate.NewLimiter(rate.Every(movesEvery), MovesBurst), introducedWarning: rate.Sometimes{Interval: time.Minute},
	}
}

// ID returns the ID of the node.
func (p *Peer) ID() capabilities.NodeID { return p.id }

// Reachable reports whether the node counts as reachable.
func (p *Peer) Reachable() bool { return p.reachable.Load() }

// LastHeard returns when a packet last came from the node. It is zero if none came since this one started.
func (p *Peer) LastHeard() capabilities.Time { return capabilities.Time(p.lastHeard.Load()) }

// Mail returns the numbers of items that came from the node and went to it.
func (p *Peer) Mail() (in, out uint64) { return p.mailIn.Load(), p.mailOut.Load() }

const (
	callTime = 5 * time.Second // for a packet, with the other node's disk
	dialTime = 3 * time.Second
)

// Add adds to the number of a mailbox's items for the node that have no ack.
func (p *Peer) Add(id capabilities.ID, more int) {
	p.mu.Lock()
	p.waits[id] = max(p.waits[id]+more, 0)
	if p.waits[id] == 0 {
		delete(p.waits, id)
	}
	p.mu.Unlock()
	if more > 0 {
		p.Ask(id)
	}
}

// Set sets the number of a mailbox's items for the node that have no ack.
func (p *Peer) Set(id capabilities.ID, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits[id] = n; n == 0 {
		delete(p.waits, id)
	}
}

// Ask queues a mailbox to be asked for its items.
func (p *Peer) Ask(id capabilities.ID) {
	p.mu.Lock()
	if !p.queued[id] {
		p.queued[id] = true
		p.ready = append(p.ready, id)
	}
	p.mu.Unlock()
	p.notify()
}

// askAll queues all mailboxes that have items for the node.
func (p *Peer) askAll() {
	p.mu.Lock()
	ids := make([]capabilities.ID, 0, len(p.waits))
	for id := range p.waits {
		ids = append(ids, id)
	}
	p.mu.Unlock()
	for _, id := range ids {
		p.Ask(id)
	}
}

// Waiting returns the number of items that have not arrived.
func (p *Peer) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, more := range p.waits {
		n += more
	}
	return n
}

// askLater queues a mailbox after a pause.
func (p *Peer) askLater(id capabilities.ID) {
	time.AfterFunc(retryMost, func() { p.Ask(id) })
}

// hasWork reports whether mailboxes are to be asked. If not, the next notify sends a message.
func (p *Peer) hasWork() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ready) > 0 {
		return true
	}
	p.notified = false
	return false
}

// next takes mailboxes from the queue, at most most.
func (p *Peer) next(most int) []capabilities.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(most, len(p.ready))
	ids := p.ready[:n:n]
	p.ready = p.ready[n:]
	for _, id := range ids {
		delete(p.queued, id)
	}
	return ids
}

// Address returns the addresses of the node, as they were last recorded.
func (p *Peer) Address() Introduction {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Introduction{Node: p.id, Hints: p.hints, Stamp: p.stamp}
}

func (p *Peer) moveTo(hints []string, stamp capabilities.Time, within events.Network) {
	p.mu.Lock()
	same := p.stamp == stamp && slices.Equal(p.hints, hints)
	p.hints, p.stamp = hints, stamp
	if within != events.AnyNetwork {
		p.within = within
	}
	p.mu.Unlock()
	if same {
		return
	}
	p.back.Store(true)
	p.notify()
}

// longestWait returns the longest pause between attempts to reach the node. The addresses of an introduced node may be
// made up.
func (p *Peer) longestWait() time.Duration {
	if p.d.isIntroduced(p.id) {
		return retryIntroduced
	}
	return retryMost
}

// isIdle reports whether the node need not be looked for: it was dropped, or it was only introduced and there is
// nothing for it.
func (p *Peer) isIdle() bool {
	return p.d.IsDropped(p.id) || !p.reachable.Load() && p.Waiting() == 0 && p.d.isIntroduced(p.id)
}

// silence returns the time since the last packet from the node.
func (p *Peer) silence() time.Duration { return time.Since(time.UnixMilli(p.lastHeard.Load())) }

// call sends a packet, and records whether the node is reachable.
func (p *Peer) call(ctx context.Context, kind transport.Kind, body []byte) (transport.Packet, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := p.d.transport().Call(ctx, p.id, kind, body)
	if err != nil && p.Dial(ctx) == nil {
		answer, err = p.d.transport().Call(ctx, p.id, kind, body)
	}
	if err != nil {
		if p.reachable.Swap(false) {
			p.d.o.Log.Warn("node out of reach", "node", p.id.String(), "error", err)
		}
		return answer, err
	}
	p.recordContact()
	return answer, nil
}

// Dial connects to the node at its addresses.
func (p *Peer) Dial(ctx context.Context) error {
	at := p.Address()
	if len(at.Hints) == 0 {
		return parley.Refuse(parley.NodeUnreachable, "it is not known where node %s is", p.id.Short())
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	p.mu.Lock()
	within := p.within
	p.mu.Unlock()
	return p.d.transport().DialWithin(ctx, p.id, at.Hints, "", within)
}

// leaves records that the node stops.
func (p *Peer) leaves() {
	if p.reachable.Swap(false) {
		p.d.o.Log.Info("node has stopped", "node", p.id.String())
	}
	p.notify()
}

// recordContact records that a packet came from the node.
func (p *Peer) recordContact() {
	p.lastHeard.Store(time.Now().UnixMilli())
	if !p.reachable.Swap(true) {
		p.d.o.Log.Info("node reached", "node", p.id.String())
		p.back.Store(true)
		p.askAll()
		p.notify()
	}
}

// announce sends the addresses of this node, and records those of the other. It reports whether the node has replied.
func (p *Peer) announce(ctx context.Context) bool {
	body, err := WritePacket(p.d.address())
	if err != nil {
		return false
	}
	answer, err := p.call(ctx, KindAnnounce, body)
	if err != nil {
		return false
	}
	at, err := ReadPacket[AddressPacket](answer.Body)
	if err != nil || answer.Kind != KindNoted {
		return false
	}
	p.d.updateAddress(ctx, p, at)
	return true
}

// within is the time for which a node counts as reachable after a packet from it.
const within = 250 * time.Millisecond

// InReach reports whether the node can be reached now. It may call the node to find out.
func (p *Peer) InReach(ctx context.Context) bool {
	if !p.reachable.Load() {
		return false
	}
	if p.silence() < within {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return p.announce(ctx)
}
