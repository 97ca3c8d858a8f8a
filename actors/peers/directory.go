package peers

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/time/rate"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Directory holds the other nodes that this one knows. Whom the node has met or invited stands in its host's log, from
// which the directory is made. Its methods may be called by many goroutines.
type Directory struct {
	o    Options
	node Node

	strangers      *rate.Limiter // packets of unknown nodes
	refusedPackets atomic.Uint64
	refusedWarning rate.Sometimes // unknown nodes can have any number of packets refused

	mu      sync.Mutex
	life    context.Context // of the node; nil before Start
	tasks   sync.WaitGroup
	stopped bool
	link    Link
	all     map[capabilities.NodeID]*Peer
	met     []capabilities.NodeID // in order
	hosts   map[capabilities.NodeID]capabilities.ID
	invited map[ulid.ULID]*events.InvitationMade
	awaited map[capabilities.NodeID]chan struct{}     // nodes whose invitation is being accepted
	dropped map[capabilities.NodeID]capabilities.Time // the last time that a node was
	closed  bool
}

const (
	strangersRate  = 10 // packets a second, of all unknown nodes
	strangersBurst = 20
)

// New returns a directory without nodes.
func New(o Options) *Directory {
	return &Directory{
		o: o, node: o.Node, strangers: rate.NewLimiter(strangersRate, strangersBurst), refusedWarning: rate.Sometimes{Interval: time.Second},
		all: map[capabilities.NodeID]*Peer{}, hosts: map[capabilities.NodeID]capabilities.ID{},
		invited: map[ulid.ULID]*events.InvitationMade{}, dropped: map[capabilities.NodeID]capabilities.Time{}, awaited: map[capabilities.NodeID]chan struct{}{},
	}
}

// Start begins to carry mail over a link until life ends.
func (d *Directory) Start(life context.Context, link Link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.life, d.link = life, link
	for _, p := range d.all {
		p.spawn(life)
	}
}

// Close lets no more packets in. What is on its way out goes on until life ends.
func (d *Directory) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// Stop ends what the directory has begun. The caller ends the life of the directory first.
func (d *Directory) Stop() {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	d.tasks.Wait()
}

// isOpen reports whether packets are let in.
func (d *Directory) isOpen() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.closed && d.link != nil
}

// leaveTime bounds the time in which a stopping node tells its peers.
const leaveTime = 300 * time.Millisecond

// Leave tells the reachable nodes that this one stops. It does not block for long.
func (d *Directory) Leave(ctx context.Context) {
	if d.transport() == nil {
		return
	}
	body, err := WritePacket(d.address())
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	var told sync.WaitGroup
	all, _ := d.Known()
	for _, p := range all {
		if p.reachable.Load() {
			told.Go(func() { _, _ = d.transport().Call(ctx, p.id, KindLeave, body) }) // a node that is not told finds out
		}
	}
	told.Wait()
}

func (d *Directory) transport() Link {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.link
}

// Peer returns the peer of a node. If there is none, it makes one.
func (d *Directory) Peer(id capabilities.NodeID) *Peer {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, ok := d.all[id]; ok {
		return p
	}
	p := newPeer(d, id)
	d.all[id] = p
	if !d.closed && d.link != nil {
		p.spawn(d.life)
	}
	return p
}

func (d *Directory) get(id capabilities.NodeID) (*Peer, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.all[id]
	return p, ok
}

// Known returns the nodes that were met or introduced, in order, with their hosts. The host of a node that was only
// introduced is zero.
func (d *Directory) Known() ([]*Peer, []capabilities.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, hosts := make([]*Peer, len(d.met)), make([]capabilities.ID, len(d.met))
	for i, id := range d.met {
		all[i], hosts[i] = d.all[id], d.hosts[id]
	}
	return all, hosts
}

// Knows reports whether a node was met or introduced.
func (d *Directory) Knows(id capabilities.NodeID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, met := d.hosts[id]
	return met
}

// isIntroduced reports whether a node is known only by introduction.
func (d *Directory) isIntroduced(id capabilities.NodeID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	host, met := d.hosts[id]
	return met && host.IsZero()
}

// IsDropped reports whether a node was dropped, and not met again.
func (d *Directory) IsDropped(id capabilities.NodeID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, met := d.hosts[id]
	_, dropped := d.dropped[id]
	return dropped && !met
}

// Dropped returns the nodes that were ever dropped, each with the last time.
func (d *Directory) Dropped() []mailbox.DroppedPeer {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]mailbox.DroppedPeer, 0, len(d.dropped))
	for node, at := range d.dropped {
		all = append(all, mailbox.DroppedPeer{Node: node, At: at})
	}
	return all
}

// Remember takes over the state of the host's mailbox, in place of what was noted before: some of that may have been
// lost on its way to the log.
func (d *Directory) Remember(s *mailbox.State) {
	d.mu.Lock()
	clear(d.hosts)
	clear(d.invited)
	clear(d.dropped)
	d.met = nil
	d.mu.Unlock()
	for _, i := range s.Peers.Invitations(d.node.Now()) {
		d.invite(&i.InvitationMade)
	}
	for _, p := range s.Peers.Dropped() {
		d.drop(p)
	}
	for _, a := range s.Peers.All() {
		d.addPeer(&events.NodeMet{Node: a.Node, Host: a.Host, By: a.By, Hints: a.Hints, Stamp: a.Stamp, Network: a.Network})
	}
}

// Note takes over events of the host's mailbox.
func (d *Directory) Note(evs []events.Event) {
	for _, e := range evs {
		switch e := e.(type) {
		case *events.NodeMet:
			d.addPeer(e)
		case *events.NodeDropped:
			d.drop(mailbox.DroppedPeer{Node: e.Node, At: e.Date})
		case *events.InvitationMade:
			d.invite(e)
		case *events.InvitationEnded:
			d.mu.Lock()
			delete(d.invited, e.Invitation.ULID)
			d.mu.Unlock()
		}
	}
}

func (d *Directory) invite(e *events.InvitationMade) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.invited[e.Invitation.ULID] = e
}

// Invited returns the number of open invitations.
func (d *Directory) Invited() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.invited)
}

func (d *Directory) addPeer(e *events.NodeMet) {
	p := d.Peer(e.Node)
	d.mu.Lock()
	host, before := d.hosts[e.Node]
	if !before {
		d.met = append(d.met, e.Node)
	}
	if !before || host.IsZero() {
		d.hosts[e.Node] = e.Host
	}
	d.mu.Unlock()
	p.moveTo(e.Hints, e.Stamp, e.Network)
}

func (d *Directory) drop(p mailbox.DroppedPeer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.hosts, p.Node)
	d.met = slices.DeleteFunc(d.met, func(id capabilities.NodeID) bool { return id == p.Node })
	d.dropped[p.Node] = p.At
	if p := d.all[p.Node]; p != nil {
		p.reachable.Store(false)
	}
}

// CutOff ends the connections with a node, which may not connect again.
func (d *Directory) CutOff(node capabilities.NodeID) {
	if link := d.transport(); link != nil {
		link.Hangup(node)
		link.Disconnect(node)
	}
}

// Admits reports whether a node may connect to this one's listener: it is known, or its token shows an invitation.
func (d *Directory) Admits(node capabilities.NodeID, token string) bool {
	if d.Knows(node) {
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
	d.mu.Lock()
	i, open := d.invited[invitation]
	d.mu.Unlock()
	return open && i.Until.Std().After(time.Now()) && subtle.ConstantTimeCompare(i.Digest, Digest(secret)) == 1
}

// Digest returns the digest by which an invitation's secret is kept.
func Digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// Token returns the token that a node shows to the listener of a node that has invited it.
func Token(invitation ulid.ULID, secret string) string { return invitation.String() + "." + secret }

// await has packets of an unknown node wait until the function that it returns is called. It returns nil if they do
// already.
func (d *Directory) await(id capabilities.NodeID) (over func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.awaited[id] != nil {
		return nil
	}
	done := make(chan struct{})
	d.awaited[id] = done
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.awaited, id)
		close(done)
	}
}

// belongs reports whether a node is known. While an invitation of the node is being accepted, it blocks until that is
// over.
func (d *Directory) belongs(ctx context.Context, id capabilities.NodeID) bool {
	d.mu.Lock()
	over := d.awaited[id]
	d.mu.Unlock()
	if over != nil {
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
	return d.Knows(id)
}

// Hints returns the addresses that other nodes are told.
func (d *Directory) Hints() []string {
	link := d.transport()
	if d.o.Public != "" && link.Address() != "" {
		return []string{"nats://" + d.o.Public}
	}
	return link.Hints()
}

// address returns the addresses of this node.
func (d *Directory) address() AddressPacket {
	return AddressPacket{Hints: d.Hints(), Stamp: d.node.Now()}
}

// RefusedPackets returns the number of packets that were refused.
func (d *Directory) RefusedPackets() uint64 { return d.refusedPackets.Load() }
