package mailbox

import (
	"bytes"
	"maps"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

func unknownNode(node capabilities.NodeID) error {
	return parley.Refuse(parley.NodeUnknown, "node %s is not known", node.Short()).WithHint("parley node ls lists those that are")
}

// DroppedPeer is a node that the host has dropped, with the time.
type DroppedPeer struct {
	Node capabilities.NodeID
	At   capabilities.Time
}

// DropNode removes another node, and the nodes that are known only by its introduction. It frees the host's names for
// the node's agents.
type DropNode struct{ Node capabilities.NodeID }

func (c DropNode) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkNodeHost(); err != nil {
		return nil, err
	}
	if _, known := s.Peers.byNode[c.Node]; !known {
		return nil, unknownNode(c.Node)
	}
	evs := []events.Event{&events.NodeDropped{Node: c.Node, Date: now}}
	for _, name := range slices.Sorted(maps.Keys(s.Names.values)) { // those in the tables are of this node
		if ref, ok := s.Names.values[name].AsRef(); ok && ref.Target.Node == c.Node {
			evs = append(evs, &events.NameUnbound{Name: name})
		}
	}
	for _, other := range s.Peers.introducedOnlyBy(c.Node) {
		evs = append(evs, &events.NodeDropped{Node: other, Date: now})
	}
	return evs, nil
}

// introducedOnlyBy returns the nodes that are known only by the introductions of a node.
func (r *PeerDirectory) introducedOnlyBy(node capabilities.NodeID) (all []capabilities.NodeID) {
	for _, a := range r.nodes {
		if a.Way == node && a.isIntroduced() {
			all = append(all, a.Node)
		}
	}
	return all
}

func (r *PeerDirectory) drop(e *events.NodeDropped) {
	r.nodes = slices.DeleteFunc(r.nodes, func(a PeerRecord) bool { return a.Node == e.Node })
	r.index()
	if i := r.quota(capabilities.ID{}, e.Node); i >= 0 {
		r.quotas = slices.Delete(r.quotas, i, i+1)
	}
	r.dropped = slices.DeleteFunc(r.dropped, func(d DroppedPeer) bool { return d.Node == e.Node })
	r.dropped = append(r.dropped, DroppedPeer{Node: e.Node, At: e.Date})
}

// index rebuilds byNode and introduced.
func (r *PeerDirectory) index() {
	r.byNode, r.introduced = make(map[capabilities.NodeID]int, len(r.nodes)), nil
	for i, n := range r.nodes {
		r.byNode[n.Node] = i
		r.count(n, 1)
	}
}

// Dropped returns the nodes that the host has ever dropped, each with the last time. The slice belongs to the state.
func (r *PeerDirectory) Dropped() []DroppedPeer { return r.dropped }

func (r *PeerDirectory) wasDropped(node capabilities.NodeID) bool {
	return slices.ContainsFunc(r.dropped, func(d DroppedPeer) bool { return d.Node == node })
}

// RevokePeerGrants revokes the grants that agents of another node got before it was dropped. It also revokes the grants
// by which they reach this agent.
type RevokePeerGrants struct{ DroppedPeer }

func (c RevokePeerGrants) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	var evs []events.Event
	seen := map[capabilities.ID]bool{}
	for _, g := range slices.Concat(s.Grants.All(), s.Grants.Minted()) {
		if g.To.Node == c.Node && g.Revoked == 0 && g.At <= c.At && !seen[g.ID] {
			seen[g.ID] = true
			evs = append(evs, &events.CapabilityRevoked{Grant: g.ID, By: s.ID, Date: now})
		}
	}
	return evs[:min(len(evs), forgottenAtOnce)], nil
}

// DropDeliveries drops the items of the outbox for a node that was dropped. Forms that only its agents could answer
// are declined.
type DropDeliveries struct{ Node capabilities.NodeID }

func (c DropDeliveries) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	d := RecordDelivery{Refused: string(parley.NodeUnknown) + ": the node was dropped"}
	for _, p := range s.Outbox.items {
		if p.To.Node == c.Node && len(d.Items) < forgottenAtOnce {
			d.Items = append(d.Items, p)
		}
	}
	return d.decide(s, now, ids)
}

// forgottenAtOnce bounds the events of one decision about a dropped node. Several decisions may be necessary.
const forgottenAtOnce = 1000

// InvolvesDropped reports whether the mailbox still has grants or items for a dropped node.
func (s *State) InvolvesDropped(d DroppedPeer) bool {
	before := func(g capabilities.Grant) bool { return g.To.Node == d.Node && g.Revoked == 0 && g.At <= d.At }
	return s.Outbox.involves(d.Node) ||
		slices.ContainsFunc(s.Grants.All(), before) || slices.ContainsFunc(s.Grants.Minted(), before)
}

// PeerDirectory holds the other nodes that the host of a node knows, with their quotas, and its invitations.
type PeerDirectory struct {
	invitations []Invitation // in the order in which they were made
	nodes       []PeerRecord
	byNode      map[capabilities.NodeID]int
	introduced  map[capabilities.NodeID]int // introduced nodes, by the one that was met
	quotas      []events.QuotaSet           // one for each agent and node that has its own
	dropped     []DroppedPeer               // nodes, in order
}

// PeerRecord describes another node.
type PeerRecord struct {
	Node  capabilities.NodeID
	Host  capabilities.ID     // zero if it is known only by introduction
	By    capabilities.NodeID // the node that introduced it first; zero if it was met
	Hints []string
	Stamp capabilities.Time

	Network events.Network      // the nearest in which it may be dialled
	Way     capabilities.NodeID // of an introduced node: the met node at the start of its introductions
}

// Bounds of a peer directory.
const (
	maxInvitations = 256    // open
	maxNodes       = 10_000 // known
	maxIntroduced  = 1_000  // by one met node, with those that it has introduced
	maxHints       = 8
	maxHint        = 255 // bytes
)

func (r *PeerDirectory) addPeer(e *events.NodeMet) {
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
		a.Way = r.introducer(a.By)
	}
	r.count(a, 1)
	if r.byNode == nil {
		r.byNode = map[capabilities.NodeID]int{}
	}
	r.byNode[e.Node] = len(r.nodes)
	r.nodes = append(r.nodes, a)
}

// introducedBy returns the number of introduced nodes with the same introducer as another node. A node cannot pass the
// bound by introducing many keys of its own.
func (r *PeerDirectory) introducedBy(node capabilities.NodeID) int {
	return r.introduced[r.introducer(node)]
}

// introducer returns the met node at the start of a node's introductions: the node itself if it was met.
func (r *PeerDirectory) introducer(node capabilities.NodeID) capabilities.NodeID {
	if i, known := r.byNode[node]; known && r.nodes[i].isIntroduced() {
		return r.nodes[i].Way
	}
	return node
}

// isIntroduced reports whether a node is known only by introduction.
func (a PeerRecord) isIntroduced() bool { return a.Host.IsZero() && a.Way != (capabilities.NodeID{}) }

// count changes the number of nodes with an introducer, if the node was introduced.
func (r *PeerDirectory) count(a PeerRecord, more int) {
	if !a.isIntroduced() {
		return
	}
	if r.introduced == nil {
		r.introduced = map[capabilities.NodeID]int{}
	}
	r.introduced[a.Way] += more
}

// network returns the nearest network in which a node may be dialled. An unknown node is only dialled in the public
// one.
func (r *PeerDirectory) network(node capabilities.NodeID) events.Network {
	if i, known := r.byNode[node]; known {
		return r.nodes[i].Network
	}
	return events.PublicNetwork
}

// All returns the nodes that the host knows, in the order in which they became known. The slice belongs to the state.
func (r *PeerDirectory) All() []PeerRecord { return r.nodes }

// AddPeer adds another node. It binds a name to its host, by the grant Theirs, and grants this host to it.
type AddPeer struct {
	Host   capabilities.ID
	Name   string
	Theirs capabilities.ID
	Ours   capabilities.ID
	Hints  []string
	Stamp  capabilities.Time

	Network events.Network // in which it was met
}

func (c AddPeer) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.CheckAddPeer(c.Name, c.Ours); err != nil {
		return nil, err
	}
	return c.events(s, now)
}

// CheckAddPeer refuses a name or grant that AddPeer would refuse, before the node is contacted. It refuses with
// INVITATION_USED if this node has accepted the invitation before.
func (s *State) CheckAddPeer(name string, ours capabilities.ID) error {
	if err := s.Profile.checkNodeHost(); err != nil {
		return err
	}
	if _, before := s.Grants.given.Get(ours); before {
		return parley.Refuse(parley.InvitationUsed, "this node has accepted the invitation already")
	}
	return s.checkFree(name)
}

// events returns the events that add the peer.
func (c AddPeer) events(s *State, now capabilities.Time) ([]events.Event, error) {
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

// UpdatePeer records the addresses of a node, from itself or by introduction.
type UpdatePeer struct {
	Node  capabilities.NodeID
	By    capabilities.NodeID // zero if they are from the node itself
	Hints []string
	Stamp capabilities.Time
}

func (c UpdatePeer) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := checkHints(c.Hints); err != nil {
		return nil, err
	}
	i, known := s.Peers.byNode[c.Node]
	introduced := c.By != (capabilities.NodeID{})
	if introduced {
		c.Stamp = 0 // it is not by the clock of the node itself
	}
	switch {
	case c.Node == s.ID.Node:
		return nil, parley.Refuse(parley.InvalidArgument, "a node is not introduced to itself")
	case !known && len(s.Peers.nodes) >= maxNodes:
		return nil, parley.Refuse(parley.TooLarge, "%d nodes are known already", maxNodes)
	case known && introduced:
		return nil, nil // a node's own addresses come first
	case introduced && s.Peers.wasDropped(c.Node):
		return nil, nil // only an invitation brings it back
	case introduced && s.Peers.introducedBy(c.By) >= maxIntroduced:
		return nil, parley.Refuse(parley.TooLarge, "the node has introduced %d others already", maxIntroduced)
	case known && (c.Stamp <= s.Peers.nodes[i].Stamp || slices.Equal(c.Hints, s.Peers.nodes[i].Hints)):
		return nil, nil
	}
	e := &events.NodeMet{Node: c.Node, By: c.By, Hints: c.Hints, Stamp: c.Stamp}
	if introduced { // no nearer than its introducer
		e.Network = s.Peers.network(c.By)
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

// Invitation is an invitation by a node's host. Ended means that it was used or revoked. By is the node that used it.
type Invitation struct {
	events.InvitationMade
	Ended bool
	By    capabilities.NodeID
}

func (r *PeerDirectory) addInvitation(e *events.InvitationMade) {
	r.invitations = append(r.invitations, Invitation{InvitationMade: *e})
}

func (r *PeerDirectory) endInvitation(e *events.InvitationEnded) {
	if i := r.invitation(e.Invitation); i >= 0 {
		r.invitations[i].Ended, r.invitations[i].By = true, e.Node
	}
}

func (r *PeerDirectory) invitation(id capabilities.ID) int {
	return slices.IndexFunc(r.invitations, func(i Invitation) bool { return i.Invitation == id })
}

// invited returns the index of the open invitation under a name; -1 if there is none.
func (r *PeerDirectory) invited(name string) int {
	name = capabilities.Normal(name)
	return slices.IndexFunc(r.invitations, func(i Invitation) bool { return !i.Ended && i.Name == name })
}

// Invitations returns the invitations that are open at a time. The slice is the caller's.
func (r *PeerDirectory) Invitations(now capabilities.Time) []Invitation {
	return slices.DeleteFunc(slices.Clone(r.invitations), func(i Invitation) bool { return i.Ended || i.Until <= now })
}

// MakeInvitation makes an invitation, and ends an open one under the same name. If it is made by a Token of the host,
// it ends at Within at the latest.
type MakeInvitation struct {
	Name   string
	Digest []byte // SHA-256 of its secret
	Until  capabilities.Time
	Token  capabilities.ID
	Within capabilities.Time
}

func (c MakeInvitation) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.Profile.checkNodeHost(); err != nil {
		return nil, err
	}
	if err := checkEnd(max(c.Until, 1), now); err != nil {
		return nil, err
	}
	if c.Within != 0 && c.Until > c.Within {
		c.Until = c.Within
	}
	var evs []events.Event
	if i := s.Peers.invited(c.Name); i >= 0 {
		evs = append(evs, &events.InvitationEnded{Invitation: s.Peers.invitations[i].Invitation})
	} else if err := s.checkFree(c.Name); err != nil {
		return nil, err
	}
	if len(s.Peers.Invitations(now)) >= maxInvitations {
		return nil, parley.Refuse(parley.QuotaExceeded, "%d invitations are open already", maxInvitations).
			WithHint("parley node invite --revoke NAME ends one")
	}
	return append(evs, &events.InvitationMade{Invitation: ids(), Name: c.Name, Digest: c.Digest, Until: c.Until, Grant: ids(), Token: c.Token}), nil
}

// EndInvitation revokes the open invitation under a name.
type EndInvitation struct{ Name string }

func (c EndInvitation) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	i := s.Peers.invited(c.Name)
	if i < 0 {
		return nil, parley.Refuse(parley.UnknownName, "no invitation is open under %.200q", c.Name).
			WithHint("parley node invite --list shows those that are")
	}
	return []events.Event{&events.InvitationEnded{Invitation: s.Peers.invitations[i].Invitation}}, nil
}

// CheckInvitation returns an invitation if a node may use it with a secret of the given digest: it is open, or that
// node has used it. It refuses with NOT_PERMITTED or INVITATION_USED.
func (s *State) CheckInvitation(invitation capabilities.ID, digest []byte, node capabilities.NodeID, now capabilities.Time) (Invitation, error) {
	i := s.Peers.invitation(invitation)
	if i < 0 || !bytes.Equal(s.Peers.invitations[i].Digest, digest) { // digests need no comparison in constant time
		return Invitation{}, parley.Refuse(parley.NotPermitted, "there is no such invitation")
	}
	inv := s.Peers.invitations[i]
	switch {
	case inv.Ended && inv.By != node:
		return inv, parley.Refuse(parley.InvitationUsed, "the invitation was used or revoked").WithHint("ask for another")
	case !inv.Ended && inv.Until <= now:
		return inv, parley.Refuse(parley.InvitationUsed, "the invitation was good until %s", inv.Until).WithHint("ask for another")
	case !inv.Ended && !s.Tokens.isStanding(inv.Token, now):
		return inv, parley.Refuse(parley.InvitationUsed, "the invitation has ended with the token that made it").WithHint("ask for another")
	}
	return inv, nil
}

// RedeemInvitation adds the node that uses an invitation. Grant is the grant of its host.
type RedeemInvitation struct {
	Invitation capabilities.ID
	Digest     []byte
	Host       capabilities.ID
	Grant      capabilities.ID
	Hints      []string
	Stamp      capabilities.Time
	Network    events.Network // in which it was met
}

func (c RedeemInvitation) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	inv, err := s.CheckInvitation(c.Invitation, c.Digest, c.Host.Node, now)
	if err != nil {
		return nil, err
	}
	if inv.Ended { // its reply was lost
		return nil, nil
	}
	if c.Host.Node == s.ID.Node || c.Grant.Node != c.Host.Node {
		return nil, parley.Refuse(parley.InvalidArgument, "a node does not accept its own invitation")
	}
	added, err := AddPeer{
		Host: c.Host, Name: inv.Name, Theirs: c.Grant, Ours: inv.Grant, Hints: c.Hints, Stamp: c.Stamp, Network: c.Network,
	}.events(s, now)
	if err != nil {
		return nil, err
	}
	return append([]events.Event{&events.InvitationEnded{Invitation: c.Invitation, Node: c.Host.Node}}, added...), nil
}
