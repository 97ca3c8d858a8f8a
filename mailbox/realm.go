package mailbox

import (
	"bytes"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// peerDirectory is what the host of a node knows beyond it: other nodes, and whom it has invited.
type peerDirectory struct {
	invitations []Invitation // in the order in which they were made
	nodes       []PeerRecord
	byNode      map[capabilities.NodeID]int
	brought     map[capabilities.NodeID]int // introduced nodes, by the one that was met
	quotas      []events.QuotaSet           // one for each agent and node that has its own
	dropped     []DroppedPeer               // nodes, in order
}

// Invitation is one that a node's host has made. Ended says that it is good no more; By, which node used it.
type Invitation struct {
	events.InvitationMade
	Ended bool
	By    capabilities.NodeID
}

// PeerRecord is another node, as far as it is known.
type PeerRecord struct {
	Node  capabilities.NodeID
	Host  capabilities.ID     // zero if it is known only by introduction
	By    capabilities.NodeID // who introduced it first; zero if it came itself
	Hints []string
	Stamp capabilities.Time

	Network events.Network      // the nearest in which it may be dialled
	Way     capabilities.NodeID // of an introduced one: who was met itself and began the introductions that led to it
}

// Bounds of what a node's host keeps.
const (
	maxInvitations = 256    // open
	maxNodes       = 10_000 // known
	maxIntroduced  = 1_000  // by one that was met, and by those whom it has introduced
	maxHints       = 8
	maxHint        = 255 // bytes
)

func (r *peerDirectory) made(e *events.InvitationMade) {
	r.invitations = append(r.invitations, Invitation{InvitationMade: *e})
}

func (r *peerDirectory) ended(e *events.InvitationEnded) {
	if i := r.invitation(e.Invitation); i >= 0 {
		r.invitations[i].Ended, r.invitations[i].By = true, e.Node
	}
}

func (r *peerDirectory) invitation(id capabilities.ID) int {
	return slices.IndexFunc(r.invitations, func(i Invitation) bool { return i.Invitation == id })
}

// invited finds the open invitation under a name.
func (r *peerDirectory) invited(name string) int {
	return slices.IndexFunc(r.invitations, func(i Invitation) bool { return !i.Ended && i.Name == name })
}

func (r *peerDirectory) met(e *events.NodeMet) {
	a := PeerRecord{Node: e.Node, Host: e.Host, By: e.By, Hints: e.Hints, Stamp: e.Stamp, Network: e.Network}
	if i, known := r.byNode[e.Node]; known {
		was := r.nodes[i]
		if a.Host.IsZero() {
			a.Host = was.Host
		}
		if a.Network == events.AnyNetwork {
			a.Network = was.Network
		}
		a.By, a.Way = was.By, was.Way
		r.count(was, -1)
		r.count(a, 1)
		r.nodes[i] = a
		return
	}
	if a.By != (capabilities.NodeID{}) {
		a.Way = r.metBy(a.By)
	}
	r.count(a, 1)
	if r.byNode == nil {
		r.byNode = map[capabilities.NodeID]int{}
	}
	r.byNode[e.Node] = len(r.nodes)
	r.nodes = append(r.nodes, a)
}

// introducedBy counts the nodes that are known by introduction alone and came by way of the same node: the one that
// was met itself. Who introduces many keys of its own does not become many.
func (r *peerDirectory) introducedBy(node capabilities.NodeID) int { return r.brought[r.metBy(node)] }

// metBy returns the node by way of which what another introduces comes.
func (r *peerDirectory) metBy(node capabilities.NodeID) capabilities.NodeID {
	if i, known := r.byNode[node]; known && r.nodes[i].isIntroduced() {
		return r.nodes[i].Way
	}
	return node
}

// isIntroduced reports whether nothing is known of a node but what another has said.
func (a PeerRecord) isIntroduced() bool { return a.Host.IsZero() && a.Way != (capabilities.NodeID{}) }

// count enters one more introduced node, or one less.
func (r *peerDirectory) count(a PeerRecord, more int) {
	if !a.isIntroduced() {
		return
	}
	if r.brought == nil {
		r.brought = map[capabilities.NodeID]int{}
	}
	r.brought[a.Way] += more
}

// network returns the nearest network in which a node may be dialled. One that is not known is dialled nowhere near.
func (r *peerDirectory) network(node capabilities.NodeID) events.Network {
	if i, known := r.byNode[node]; known {
		return r.nodes[i].Network
	}
	return events.PublicNetwork
}

// Peers returns the nodes that the host knows, in the order in which it came to. The slice is the state's own.
func (s *State) Peers() []PeerRecord { return s.peers.nodes }

// Invitations returns those that are open at a time. The slice is the caller's.
func (s *State) Invitations(now capabilities.Time) []Invitation {
	return slices.DeleteFunc(slices.Clone(s.peers.invitations), func(i Invitation) bool { return i.Ended || i.Until <= now })
}

func (s *State) mustBeNodesHost() error {
	if s.Profile.Kind != events.Host || !s.Profile.By.IsZero() {
		return parley.Refuse(parley.NotPermitted, "only the node's own host deals with other nodes")
	}
	return nil
}

// MakeInvitation makes an invitation. One that is open under the same name ends. One that is made by a Token of the host is good
// no longer than Within.
type MakeInvitation struct {
	Name   string
	Digest []byte // SHA-256 of its secret
	Until  capabilities.Time
	Token  capabilities.ID
	Within capabilities.Time
}

func (c MakeInvitation) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.mustBeNodesHost(); err != nil {
		return nil, err
	}
	if c.Until <= now {
		return nil, parley.Refuse(parley.InvalidArgument, "the invitation would have ended at %s", c.Until)
	}
	if c.Within != 0 && c.Until > c.Within {
		c.Until = c.Within
	}
	var evs []events.Event
	if i := s.peers.invited(c.Name); i >= 0 {
		evs = append(evs, &events.InvitationEnded{Invitation: s.peers.invitations[i].Invitation})
	} else if err := s.checkFree(c.Name); err != nil {
		return nil, err
	}
	if len(s.Invitations(now)) >= maxInvitations {
		return nil, parley.Refuse(parley.QuotaExceeded, "%d invitations are open already", maxInvitations).
			WithHint("parley invite --revoke NAME ends one")
	}
	return append(evs, &events.InvitationMade{Invitation: ids(), Name: c.Name, Digest: c.Digest, Until: c.Until, Grant: ids(), Token: c.Token}), nil
}

// EndInvitation revokes the open invitation under a name.
type EndInvitation struct{ Name string }

func (c EndInvitation) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	i := s.peers.invited(c.Name)
	if i < 0 {
		return nil, parley.Refuse(parley.UnknownName, "no invitation is open under %.200q", c.Name).
			WithHint("parley invite --list shows those that are")
	}
	return []events.Event{&events.InvitationEnded{Invitation: s.peers.invitations[i].Invitation}}, nil
}

// CheckInvitation reports whether an invitation is good for a node that shows its secret's digest: it is open, or
// was used by that node.
func (s *State) CheckInvitation(invitation capabilities.ID, digest []byte, node capabilities.NodeID, now capabilities.Time) (Invitation, error) {
	i := s.peers.invitation(invitation)
	if i < 0 || !bytes.Equal(s.peers.invitations[i].Digest, digest) { // of digests, time tells nothing of use
		return Invitation{}, parley.Refuse(parley.NotPermitted, "there is no such invitation")
	}
	inv := s.peers.invitations[i]
	switch {
	case inv.Ended && inv.By != node:
		return inv, parley.Refuse(parley.InvitationUsed, "the invitation was used or revoked").WithHint("ask for another")
	case !inv.Ended && inv.Until <= now:
		return inv, parley.Refuse(parley.InvitationUsed, "the invitation was good until %s", inv.Until).WithHint("ask for another")
	case !inv.Ended && !s.hasStanding(inv.Token, now):
		return inv, parley.Refuse(parley.InvitationUsed, "the invitation has ended with the token that made it").WithHint("ask for another")
	}
	return inv, nil
}

// RedeemInvitation takes in the host of a node that shows an invitation. Grant is the one by which that gives itself.
type RedeemInvitation struct {
	Invitation capabilities.ID
	Digest     []byte
	Host       capabilities.ID
	Grant      capabilities.ID
	Hints      []string
	Stamp      capabilities.Time
	Network    events.Network // in which it has come
}

func (c RedeemInvitation) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	inv, err := s.CheckInvitation(c.Invitation, c.Digest, c.Host.Node, now)
	if err != nil {
		return nil, err
	}
	if inv.Ended { // its answer was lost on the way
		return nil, nil
	}
	if c.Host.Node == s.ID.Node || c.Grant.Node != c.Host.Node {
		return nil, parley.Refuse(parley.InvalidArgument, "a node does not accept its own invitation")
	}
	met, err := s.addPeer(AddPeer{Host: c.Host, Name: inv.Name, Theirs: c.Grant, Ours: inv.Grant, Hints: c.Hints, Stamp: c.Stamp, Network: c.Network}, now)
	if err != nil {
		return nil, err
	}
	return append([]events.Event{&events.InvitationEnded{Invitation: c.Invitation, Node: c.Host.Node}}, met...), nil
}

// AddPeer binds a name to the host of another node, by the grant that it gave, and gives it this host.
type AddPeer struct {
	Host   capabilities.ID
	Name   string
	Theirs capabilities.ID
	Ours   capabilities.ID
	Hints  []string
	Stamp  capabilities.Time

	Network events.Network // in which it was found
}

func (c AddPeer) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.CheckAddPeer(c.Name, c.Ours); err != nil {
		return nil, err
	}
	return s.addPeer(c, now)
}

// CheckAddPeer refuses what Meet would refuse before anybody is met: INVITATION_USED says that this node has
// accepted the invitation before.
func (s *State) CheckAddPeer(name string, ours capabilities.ID) error {
	if err := s.mustBeNodesHost(); err != nil {
		return err
	}
	if _, before := s.given.Get(ours); before {
		return parley.Refuse(parley.InvitationUsed, "this node has accepted the invitation already")
	}
	return s.checkFree(name)
}

func (s *State) addPeer(c AddPeer, now capabilities.Time) ([]events.Event, error) {
	if err := checkHints(c.Hints); err != nil {
		return nil, err
	}
	theirs := agentRef(c.Host)
	theirs.Grant = c.Theirs
	evs := []events.Event{
		&events.NodeMet{Node: c.Host.Node, Host: c.Host, Hints: c.Hints, Stamp: c.Stamp, Network: c.Network},
		&events.NameBound{Name: c.Name, Value: capabilities.Reference(theirs)},
	}
	return append(evs, &events.CapabilityGranted{Grant: capabilities.Grant{
		ID: c.Ours, Target: s.ID, Kind: capabilities.KindAgent, Name: capabilities.NameSelf, To: c.Host, By: s.ID, At: now,
	}}), nil
}

// UpdatePeer takes in where a node is to be found: from itself, or by introduction.
type UpdatePeer struct {
	Node  capabilities.NodeID
	By    capabilities.NodeID // zero if it says so itself
	Hints []string
	Stamp capabilities.Time
}

func (c UpdatePeer) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := checkHints(c.Hints); err != nil {
		return nil, err
	}
	i, known := s.peers.byNode[c.Node]
	introduced := c.By != (capabilities.NodeID{})
	if introduced {
		c.Stamp = 0 // it is by the clock of a node that has not spoken yet
	}
	switch {
	case c.Node == s.ID.Node:
		return nil, parley.Refuse(parley.InvalidArgument, "a node is not introduced to itself")
	case !known && len(s.peers.nodes) >= maxNodes:
		return nil, parley.Refuse(parley.TooLarge, "%d nodes are known already", maxNodes)
	case known && introduced:
		return nil, nil // what a node says of itself goes before what others say of it
	case introduced && s.peers.wasDropped(c.Node):
		return nil, nil // it comes back by an invitation alone
	case introduced && s.peers.introducedBy(c.By) >= maxIntroduced:
		return nil, parley.Refuse(parley.TooLarge, "the node has introduced %d others already", maxIntroduced)
	case known && (c.Stamp <= s.peers.nodes[i].Stamp || slices.Equal(c.Hints, s.peers.nodes[i].Hints)):
		return nil, nil
	}
	e := &events.NodeMet{Node: c.Node, By: c.By, Hints: c.Hints, Stamp: c.Stamp}
	if introduced { // nobody leads nearer than they are
		e.Network = s.peers.network(c.By)
	}
	return []events.Event{e}, nil
}

func checkHints(hints []string) error {
	if len(hints) > maxHints {
		return parley.Refuse(parley.TooLarge, "%d hints are over the limit of %d", len(hints), maxHints)
	}
	for _, h := range hints {
		if len(h) > maxHint || bytes.ContainsAny([]byte(h), "\x00\r\n ") {
			return parley.Refuse(parley.InvalidArgument, "a hint is not an address")
		}
	}
	return nil
}
