package actors

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/time/rate"

	"parley"
	"parley/actors/transport"
	"parley/capabilities"
	"parley/events"
)

// peer is another node: what is known of it, and the mail for it.
type peer struct {
	node *Node
	id   capabilities.NodeID

	reachable atomic.Bool
	heard     atomic.Int64 // the last time, in unix milliseconds
	taking    atomic.Int64 // bytes of its packets that are being taken in
	mailIn    atomic.Uint64
	mailOut   atomic.Uint64

	moves         *rate.Limiter  // how often its place is noted anew
	sayIntroduced rate.Sometimes // that it has introduced too many

	crashed atomic.Bool // its actor is being restarted

	wake chan struct{} // has one when there may be something to do
	back chan struct{} // has one when it was heard of, so that there is no sense in waiting

	mu       sync.Mutex
	hints    []string
	stamp    capabilities.Time
	within   events.Network                      // the nearest in which it is dialled
	owed     map[capabilities.ID]int             // how many items each mailbox owes to it
	ready    []capabilities.ID                   // mailboxes to be asked for theirs
	queued   map[capabilities.ID]bool            // those in ready
	direct   []*directSend                       // what is to be said at once
	inFlight map[capabilities.ID]map[uint64]bool // items that are on their way, by mailbox
	epoch    uint64                              // of the newest window
	receives receiveWindow                       // for packets that come from it
}

// directSend is a settlement on its way to a form's home that is not in this node's log. Its result is sent once.
type directSend struct {
	item   packetItem
	result chan sendResult // has room for one
}

// sendResult is the home's reply: the time at which the form was settled, or an error. NODE_UNREACHABLE means that the
// home did not get the settlement, as far as is known.
type sendResult struct {
	at  capabilities.Time
	err error
}

const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
	retryHeard = 15 * time.Second // of a node of which only another has spoken
	callTime   = 5 * time.Second  // what a packet may take: the other's disk included
	dialTime   = 3 * time.Second
	quiet      = 3 * time.Second

	// retryCrashed is the pause after a crash. It is so long that a peer's actor never crashes too often.
	retryCrashed   = 15 * time.Second
	maxDirectSends = 4096 // waiting for one node
)

func (p *peer) signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// addOwed adds to the number of items that a mailbox owes to the node.
func (p *peer) addOwed(id capabilities.ID, more int) {
	p.mu.Lock()
	p.owed[id] = max(p.owed[id]+more, 0)
	if p.owed[id] == 0 {
		delete(p.owed, id)
	}
	p.mu.Unlock()
	if more > 0 {
		p.ask(id)
	}
}

// setOwed sets the number of items that a mailbox owes to the node.
func (p *peer) setOwed(id capabilities.ID, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owed[id] = n; n == 0 {
		delete(p.owed, id)
	}
}

// ask queues a mailbox to be asked for its items.
func (p *peer) ask(id capabilities.ID) {
	p.mu.Lock()
	if !p.queued[id] {
		p.queued[id] = true
		p.ready = append(p.ready, id)
	}
	p.mu.Unlock()
	p.signal(p.wake)
}

// askAll queues all mailboxes that owe something.
func (p *peer) askAll() {
	p.mu.Lock()
	ids := make([]capabilities.ID, 0, len(p.owed))
	for id := range p.owed {
		ids = append(ids, id)
	}
	p.mu.Unlock()
	for _, id := range ids {
		p.ask(id)
	}
}

// waiting returns the number of items that have not arrived.
func (p *peer) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.direct)
	for _, owed := range p.owed {
		n += owed
	}
	return n
}

// next takes mailboxes from the queue, at most most.
func (p *peer) next(most int) []capabilities.ID {
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

func (p *peer) place() introduction {
	p.mu.Lock()
	defer p.mu.Unlock()
	return introduction{Node: p.id, Hints: p.hints, Stamp: p.stamp}
}

func (p *peer) moveTo(hints []string, stamp capabilities.Time, within events.Network) {
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
	p.signal(p.back)
	p.signal(p.wake)
}

// peerActor is the actor of a peer. Its one message is Started: the handler carries the peer's mail until the node ends.
// A crash ends the handler, and the actor is restarted to begin another send window after a pause.
type peerActor struct {
	peer  *peer
	ended func()
}

// Receive carries the mail.
func (a *peerActor) Receive(ctx actor.Context) {
	p := a.peer
	switch ctx.Message().(type) {
	case *actor.Started:
		if p.crashed.Swap(false) {
			select {
			case <-time.After(retryCrashed):
			case <-p.node.life.Done():
			}
			p.askAll()
		}
		p.run(p.node.life)
		a.ended()
	case *actor.Restarting:
		p.crashed.Store(true)
	case *actor.Stopped:
		a.ended()
	}
}

// spawn starts the peer's actor. The node waits for it when it closes.
func (p *peer) spawn() {
	n := p.node
	n.tasks.Add(1)
	ended := sync.OnceFunc(n.tasks.Done)
	n.registry.tree.spawn(peerName(p.id), actor.PropsFromProducer(
		func() actor.Actor { return &peerActor{p, ended} },
		actor.WithGuardian(n.peers.strategy),
	))
}

// run carries the node's mail until ctx ends. A node that is out of reach is looked for until it shows.
func (p *peer) run(ctx context.Context) {
	wait := retryFirst
	for ctx.Err() == nil {
		if p.isIdle() {
			select {
			case <-p.wake:
				if !p.isIdle() {
					p.signal(p.wake) // it is for what comes after
				}
			case <-p.back:
			case <-ctx.Done():
			}
			continue
		}
		if !p.reachable.Load() && !p.announce(ctx) {
			p.failDirectSends()
			p.pause(ctx, wait)
			wait = min(2*wait, p.longestWait())
			continue
		}
		wait = retryFirst
		if !p.idle(ctx) {
			continue
		}
		f := p.newSendWindow()
		for f.run(ctx) != nil && p.reachable.Load() && ctx.Err() == nil {
			p.pause(ctx, wait)
			wait = min(2*wait, retryMost)
			f = p.newSendWindow()
		}
	}
}

// longestWait is how long the node is left alone at most. Who has spoken of it may have made its addresses up.
func (p *peer) longestWait() time.Duration {
	if p.node.peers.isIntroduced(p.id) {
		return retryHeard
	}
	return retryMost
}

// isIdle reports whether the node need not be looked for: it was dropped, or is known only by introduction and owed
// nothing.
func (p *peer) isIdle() bool {
	return p.node.peers.isDropped(p.id) || !p.reachable.Load() && p.waiting() == 0 && p.node.peers.isIntroduced(p.id)
}

// failDirectSends fails all waiting direct sends with NODE_UNREACHABLE.
func (p *peer) failDirectSends() {
	p.mu.Lock()
	said := p.direct
	p.direct = nil
	p.mu.Unlock()
	for _, e := range said {
		e.result <- sendResult{err: parley.Refuse(parley.NodeUnreachable, "node %s is out of reach", p.id)}
	}
}

// idle waits until there is something to do, and reports whether there is. A node that has not been heard for a
// while is asked whether it is there still.
func (p *peer) idle(ctx context.Context) bool {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	select {
	case <-p.wake:
		return true
	case <-timer.C:
		if p.silence() >= quiet {
			p.announce(ctx)
		}
	case <-ctx.Done():
	}
	return false
}

// silence is how long ago the node was heard.
func (p *peer) silence() time.Duration { return time.Since(time.UnixMilli(p.heard.Load())) }

func (p *peer) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.back:
	case <-ctx.Done():
	}
}

// call sends a packet and keeps the books on whether the node can be reached.
func (p *peer) call(ctx context.Context, kind transport.Kind, body []byte) (transport.Packet, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := p.node.transport.Call(ctx, p.id, kind, body)
	if err != nil && p.dial(ctx) == nil {
		answer, err = p.node.transport.Call(ctx, p.id, kind, body)
	}
	if err != nil {
		if p.reachable.Swap(false) {
			p.node.log.Warn("node out of reach", "node", p.id.String(), "error", err)
		}
		return answer, err
	}
	p.hear()
	return answer, nil
}

// dial connects to the node where it is said to be.
func (p *peer) dial(ctx context.Context) error {
	at := p.place()
	if len(at.Hints) == 0 {
		return parley.Refuse(parley.NodeUnreachable, "it is not known where node %s is", p.id)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	p.mu.Lock()
	within := p.within
	p.mu.Unlock()
	return p.node.transport.DialWithin(ctx, p.id, at.Hints, "", within)
}

// leaves notes that the node stops.
func (p *peer) leaves() {
	if p.reachable.Swap(false) {
		p.node.log.Info("node has stopped", "node", p.id.String())
	}
	p.signal(p.wake)
}

// hear notes that the node has shown itself.
func (p *peer) hear() {
	p.heard.Store(time.Now().UnixMilli())
	if !p.reachable.Swap(true) {
		p.node.log.Info("node reached", "node", p.id.String())
		p.signal(p.back)
		p.askAll()
	}
}

// announce tells the node where this one is, and hears where it is itself. What goes wrong shows with the mail.
func (p *peer) announce(ctx context.Context) bool {
	body, err := writePacket(p.node.placeNow())
	if err != nil {
		return false
	}
	answer, err := p.call(ctx, packetAnnounce, body)
	if err != nil {
		return false
	}
	at, err := readPacket[placePacket](answer.Body)
	if err != nil || answer.Kind != packetNoted {
		return false
	}
	p.node.hearFrom(ctx, p.id, at)
	return true
}

// within is how long ago a node may have been heard for it to count as reachable without another look.
const within = 250 * time.Millisecond

// inReach reports whether the node can be reached now. It may ask.
func (p *peer) inReach(ctx context.Context) bool {
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

// sendDirect sends a settlement with the next packet, and returns the home's reply.
func (p *peer) sendDirect(ctx context.Context, item packetItem) sendResult {
	e := &directSend{item: item, result: make(chan sendResult, 1)}
	p.mu.Lock()
	full := len(p.direct) >= maxDirectSends
	if !full {
		p.direct = append(p.direct, e)
	}
	p.mu.Unlock()
	if full {
		return sendResult{err: parley.Refuse(parley.NodeUnreachable, "too much waits for node %s", p.id)}
	}
	p.signal(p.wake)
	select {
	case v := <-e.result:
		return v
	case <-ctx.Done():
		return sendResult{err: parley.Refuse(parley.NodeUnreachable, "node %s did not answer in time", p.id)}
	}
}
