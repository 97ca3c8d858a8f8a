package actors

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/oklog/ulid/v2"
	"golang.org/x/time/rate"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// peers is the other nodes. Whom the node knows, and whom it has invited, stands in its host's log; what is
// here follows from that.
type peers struct {
	node     *Node
	strategy actor.SupervisorStrategy

	mu      sync.Mutex
	all     map[capabilities.NodeID]*peer
	met     []capabilities.NodeID // in order
	hosts   map[capabilities.NodeID]capabilities.ID
	invited map[ulid.ULID]*events.InvitationMade
	awaited map[capabilities.NodeID]chan struct{}     // those whose invitation is being accepted
	dropped map[capabilities.NodeID]capabilities.Time // ever, and the last time
	closed  bool
}

func newPeers(n *Node) *peers {
	return &peers{
		node: n, strategy: &supervision{n.registry.tree, n.stopChild}, all: map[capabilities.NodeID]*peer{}, hosts: map[capabilities.NodeID]capabilities.ID{},
		invited: map[ulid.ULID]*events.InvitationMade{}, dropped: map[capabilities.NodeID]capabilities.Time{}, awaited: map[capabilities.NodeID]chan struct{}{},
	}
}

// of gives a node's peer, which is made and set to work if there is none.
func (ps *peers) of(id capabilities.NodeID) *peer {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p, ok := ps.all[id]; ok {
		return p
	}
	p := &peer{
		node: ps.node, id: id, wake: make(chan struct{}, 1), back: make(chan struct{}, 1),
		owed: map[capabilities.ID]int{}, queued: map[capabilities.ID]bool{},
		inFlight: map[capabilities.ID]map[uint64]bool{},
		moves:    rate.NewLimiter(rate.Every(movesEvery), movesBurst), sayIntroduced: rate.Sometimes{Interval: time.Minute},
	}
	ps.all[id] = p
	if !ps.closed && ps.node.transport != nil {
		p.spawn()
	}
	return p
}

// begin sets those to work that were known before there was a way to them.
func (ps *peers) begin() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		p.spawn()
	}
}

func (ps *peers) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.closed = true
}

func (ps *peers) isClosed() bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.closed
}

// leave tells the nodes that are in reach that this one stops. It does not wait long.
func (ps *peers) leave(ctx context.Context) {
	body, err := writePacket(ps.node.placeNow())
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	var told sync.WaitGroup
	all, _ := ps.list()
	for _, p := range all {
		if p.reachable.Load() {
			told.Go(func() { _, _ = ps.node.transport.Call(ctx, p.id, packetLeave, body) }) // who does not hear it finds out
		}
	}
	told.Wait()
}

// leaveTime bounds how long a node that stops tells others.
const leaveTime = 300 * time.Millisecond

func (ps *peers) get(id capabilities.NodeID) (*peer, bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p, ok := ps.all[id]
	return p, ok
}

// knows reports whether the node has met another.
func (ps *peers) knows(id capabilities.NodeID) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	_, met := ps.hosts[id]
	return met
}

// await has a node that is not known yet wait, until the function that is returned is called. It returns nil if
// that is the case already.
func (ps *peers) await(id capabilities.NodeID) func() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.awaited[id] != nil {
		return nil
	}
	over := make(chan struct{})
	ps.awaited[id] = over
	return func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		delete(ps.awaited, id)
		close(over)
	}
}

// belongs reports whether a node is known, when it will be if it is being met.
func (ps *peers) belongs(ctx context.Context, id capabilities.NodeID) bool {
	ps.mu.Lock()
	over := ps.awaited[id]
	ps.mu.Unlock()
	if over != nil {
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
	return ps.knows(id)
}

// isDropped reports whether a node was dropped, and not met again.
func (ps *peers) isDropped(id capabilities.NodeID) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	_, met := ps.hosts[id]
	_, dropped := ps.dropped[id]
	return dropped && !met
}

// drop notes that a node is known no more.
func (ps *peers) drop(d mailbox.DroppedPeer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.hosts, d.Node)
	ps.met = slices.DeleteFunc(ps.met, func(id capabilities.NodeID) bool { return id == d.Node })
	ps.dropped[d.Node] = d.At
	if p := ps.all[d.Node]; p != nil {
		p.reachable.Store(false)
	}
}

// everDropped returns the nodes that were dropped, and the last time that they were.
func (ps *peers) everDropped() []mailbox.DroppedPeer {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all := make([]mailbox.DroppedPeer, 0, len(ps.dropped))
	for node, at := range ps.dropped {
		all = append(all, mailbox.DroppedPeer{Node: node, At: at})
	}
	return all
}

// isIntroduced reports whether a node is known only by what another has said of it.
func (ps *peers) isIntroduced(id capabilities.NodeID) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	host, met := ps.hosts[id]
	return met && host.IsZero()
}

// remember takes up what the host's log says, in place of what was noted before: some of that may have been lost
// on its way there.
func (ps *peers) remember(s *mailbox.State) {
	ps.mu.Lock()
	clear(ps.hosts)
	clear(ps.invited)
	clear(ps.dropped)
	ps.met = nil
	ps.mu.Unlock()
	for _, i := range s.Peers.Invitations(ps.node.now()) {
		ps.invite(&i.InvitationMade)
	}
	for _, d := range s.Peers.Dropped() {
		ps.drop(d)
	}
	for _, a := range s.Peers.All() {
		ps.meet(&events.NodeMet{Node: a.Node, Host: a.Host, By: a.By, Hints: a.Hints, Stamp: a.Stamp, Network: a.Network})
	}
}

// note is told what happens in the host's mailbox.
func (ps *peers) note(evs []events.Event) {
	for _, e := range evs {
		switch e := e.(type) {
		case *events.NodeMet:
			ps.meet(e)
		case *events.NodeDropped:
			ps.drop(mailbox.DroppedPeer{Node: e.Node, At: e.Date})
		case *events.InvitationMade:
			ps.invite(e)
		case *events.InvitationEnded:
			ps.mu.Lock()
			delete(ps.invited, e.Invitation.ULID)
			ps.mu.Unlock()
		}
	}
}

func (ps *peers) invite(e *events.InvitationMade) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.invited[e.Invitation.ULID] = e
}

func (ps *peers) meet(e *events.NodeMet) {
	p := ps.of(e.Node)
	ps.mu.Lock()
	host, before := ps.hosts[e.Node]
	if !before {
		ps.met = append(ps.met, e.Node)
	}
	if !before || host.IsZero() {
		ps.hosts[e.Node] = e.Host
	}
	ps.mu.Unlock()
	p.moveTo(e.Hints, e.Stamp, e.Network)
}

// admits reports whether a node may connect to this one's listener: it is known, or shows an invitation.
func (ps *peers) admits(node capabilities.NodeID, token string) bool {
	if ps.knows(node) {
		return true
	}
	id, secret, ok := strings.Cut(token, ".")
	if !ok {
		return false
	}
	invitation, err := ulid.ParseStrict(id)
	if err != nil {
		return false
	}
	ps.mu.Lock()
	i, open := ps.invited[invitation]
	ps.mu.Unlock()
	return open && i.Until.Std().After(time.Now()) && subtle.ConstantTimeCompare(i.Digest, digest(secret)) == 1
}

// digest is what is kept of an invitation's secret.
func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// token is what a node shows to a listener that does not know it yet.
func token(invitation ulid.ULID, secret string) string { return invitation.String() + "." + secret }

// list gives the nodes that were met, in order, with their hosts.
func (ps *peers) list() ([]*peer, []capabilities.ID) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all, hosts := make([]*peer, len(ps.met)), make([]capabilities.ID, len(ps.met))
	for i, id := range ps.met {
		all[i], hosts[i] = ps.all[id], ps.hosts[id]
	}
	return all, hosts
}

// later does something after a pause, if the node is there still.
func (n *Node) later(pause time.Duration, do func()) {
	time.AfterFunc(pause, func() {
		if n.life.Err() == nil {
			do()
		}
	})
}

// Drop ends what this node has to do with another: its connection is cut, its mail is refused, what waits for it is
// given up, and what its agents were given is revoked. A new invitation brings it back. Only the node's host may.
func (ps Peers) Drop(ctx context.Context, node capabilities.NodeID) (view.DroppedPeer, error) {
	done := view.DroppedPeer{Node: node}
	evs, err := call(ctx, ps.agent, decide{mailbox.DropNode{Node: node}})
	if err != nil {
		return done, err
	}
	var dropped []mailbox.DroppedPeer
	for _, e := range evs {
		switch e := e.(type) {
		case *events.NodeDropped:
			dropped = append(dropped, mailbox.DroppedPeer{Node: e.Node, At: e.Date})
			ps.agent.node.cutOff(e.Node)
		case *events.NameUnbound:
			done.Names++
		}
	}
	done.Introduced = len(dropped) - 1
	for id, m := range ps.agent.node.journal.Mailboxes() {
		if !ps.agent.node.registry.isAwake(id) && m.Summary.Outbox == 0 {
			continue // it forgets when it is read
		}
		if err := ps.agent.node.forget(ctx, id, dropped, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

// forget has a mailbox forget nodes, and counts what it does.
func (n *Node) forget(ctx context.Context, id capabilities.ID, dropped []mailbox.DroppedPeer, done *view.DroppedPeer) error {
	f, err := call(ctx, &Agent{node: n, id: id}, forgetNodes{dropped})
	done.Revoked += f.revoked
	done.Given += f.given
	if parley.CodeOf(err) == parley.CorruptLog {
		return nil // it is put aside, and sends nothing
	}
	return err
}

// cutOff ends the connections with a node, which may not connect again.
func (n *Node) cutOff(node capabilities.NodeID) {
	if n.transport != nil {
		n.transport.Hangup(node)
		n.transport.Disconnect(node)
	}
}

// isAwake reports whether a mailbox is in memory.
func (r *registry) isAwake(id capabilities.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, awake := r.registrations[id]
	return awake
}

// forgotten counts what a mailbox has let go of.
type forgotten struct{ revoked, given int }

// forgetNodes has a mailbox end what it has to do with nodes that were dropped.
type forgetNodes struct{ dropped []mailbox.DroppedPeer }

func (m forgetNodes) handle(b *mailboxActor) (forgotten, error) { return b.forget(m.dropped) }

// forget ends what the mailbox has to do with nodes that were dropped.
func (b *mailboxActor) forget(dropped []mailbox.DroppedPeer) (f forgotten, err error) {
	for _, d := range dropped {
		if !b.state.InvolvesDropped(d) {
			continue
		}
		b.recordAcks()
		owed := b.countOwed(d.Node) // what is said of the grants below is not counted
		n, err := b.repeat(mailbox.RevokePeerGrants{DroppedPeer: d})
		f.revoked += n
		if err != nil {
			return f, err
		}
		if !b.node.peers.isDropped(d.Node) {
			continue // it is back, and what is owed now is for it
		}
		if err := b.dropDeliveries(d.Node); err != nil {
			return f, err
		}
		f.given += owed
		b.node.peers.of(d.Node).setOwed(b.reg.id, b.countOwed(d.Node))
	}
	return f, nil
}

// dropDeliveries gives up the items for a node. Acks for some of them may come meanwhile.
func (b *mailboxActor) dropDeliveries(node capabilities.NodeID) error {
	b.releasing = true
	defer func() { b.releasing = false }()
	_, err := b.repeat(mailbox.DropDeliveries{Node: node})
	return err
}

// repeat has the state decide on a command until there is nothing left to do, and counts the events.
func (b *mailboxActor) repeat(c mailbox.Command) (total int, err error) {
	for {
		evs, err := b.decide(c)
		if total += len(evs); err != nil || len(evs) == 0 {
			return total, err
		}
	}
}

// forgetDropped forgets the nodes that were dropped while the mailbox was at rest.
func (b *mailboxActor) forgetDropped() {
	if _, err := b.forget(b.node.peers.everDropped()); err != nil {
		b.node.log.Warn("a node that was dropped is not forgotten", "mailbox", b.reg.id.String(), "error", err)
	}
}
