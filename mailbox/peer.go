package mailbox

import (
	"maps"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// SetQuota gives an agent, or another node, quotas of its own. Those that are not mentioned stay as they are.
type SetQuota struct {
	Agent  capabilities.ID
	Node   capabilities.NodeID // zero if it is for an agent
	Quotas map[string]int64
	Reset  bool // what was set before is dropped first
}

func (c SetQuota) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.Profile.Kind != events.Host || !s.Profile.By.IsZero() {
		return nil, parley.Refuse(parley.NotPermitted, "only the node's own host sets quotas")
	}
	if err := CheckQuotas(c.Quotas); err != nil {
		return nil, err
	}
	if c.Agent.IsZero() == (c.Node == capabilities.NodeID{}) {
		return nil, parley.Refuse(parley.InvalidArgument, "a quota is of an agent or of a node")
	}
	if _, known := s.peers.byNode[c.Node]; c.Agent.IsZero() && !known {
		return nil, unknownNode(c.Node)
	}
	all := map[string]int64{}
	i := s.peers.quota(c.Agent, c.Node)
	if i >= 0 && !c.Reset {
		for _, l := range s.peers.quotas[i].Quotas {
			all[l.Name] = l.Limit
		}
	}
	maps.Copy(all, c.Quotas)
	e := &events.QuotaSet{Agent: c.Agent, Node: c.Node}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e.Quotas = append(e.Quotas, events.QuotaLimit{Name: name, Limit: all[name]})
	}
	if i >= 0 && slices.Equal(s.peers.quotas[i].Quotas, e.Quotas) || i < 0 && len(e.Quotas) == 0 {
		return nil, nil
	}
	return []events.Event{e}, nil
}

func unknownNode(node capabilities.NodeID) error {
	return parley.Refuse(parley.NodeUnknown, "node %s is not known", node).WithHint("parley nodes lists those that are")
}

// quota finds what was set for an agent or a node.
func (r *peerDirectory) quota(agent capabilities.ID, node capabilities.NodeID) int {
	return slices.IndexFunc(r.quotas, func(q events.QuotaSet) bool { return q.Agent == agent && q.Node == node })
}

func (r *peerDirectory) setQuota(e *events.QuotaSet) {
	i := r.quota(e.Agent, e.Node)
	switch {
	case i < 0:
		r.quotas = append(r.quotas, *e)
	case len(e.Quotas) == 0:
		r.quotas = slices.Delete(r.quotas, i, i+1)
	default:
		r.quotas[i] = *e
	}
}

// QuotasSet returns the quotas that the node's host has set. The slice is the state's own.
func (s *State) QuotasSet() []events.QuotaSet { return s.peers.quotas }

// DroppedPeer is a node that the host has dropped, and when.
type DroppedPeer struct {
	Node capabilities.NodeID
	At   capabilities.Time
}

// DropNode has the host know another node no more, nor those that it has introduced and that are known by nobody else.
// The host's names for the node's agents go with it.
type DropNode struct{ Node capabilities.NodeID }

func (c DropNode) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.mustBeNodesHost(); err != nil {
		return nil, err
	}
	if _, known := s.peers.byNode[c.Node]; !known {
		return nil, unknownNode(c.Node)
	}
	evs := []events.Event{&events.NodeDropped{Node: c.Node, Date: now}}
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		if ref, ok := s.names[name].AsRef(); ok && ref.Target.Node == c.Node {
			evs = append(evs, &events.NameUnbound{Name: name})
		}
	}
	for _, other := range s.peers.introducedOnlyBy(c.Node) {
		evs = append(evs, &events.NodeDropped{Node: other, Date: now})
	}
	return evs, nil
}

// introducedOnlyBy returns the nodes that are known by introduction alone and came by way of a node.
func (r *peerDirectory) introducedOnlyBy(node capabilities.NodeID) (all []capabilities.NodeID) {
	for _, a := range r.nodes {
		if a.Way == node && a.isIntroduced() {
			all = append(all, a.Node)
		}
	}
	return all
}

func (r *peerDirectory) drop(e *events.NodeDropped) {
	r.nodes = slices.DeleteFunc(r.nodes, func(a PeerRecord) bool { return a.Node == e.Node })
	r.index()
	if i := r.quota(capabilities.ID{}, e.Node); i >= 0 {
		r.quotas = slices.Delete(r.quotas, i, i+1)
	}
	r.dropped = slices.DeleteFunc(r.dropped, func(d DroppedPeer) bool { return d.Node == e.Node })
	r.dropped = append(r.dropped, DroppedPeer{Node: e.Node, At: e.Date})
}

// index makes byNode and brought anew.
func (r *peerDirectory) index() {
	r.byNode, r.brought = make(map[capabilities.NodeID]int, len(r.nodes)), nil
	for i, n := range r.nodes {
		r.byNode[n.Node] = i
		r.count(n, 1)
	}
}

// DroppedPeers returns the nodes that the host has ever dropped, and the last time that it did. The slice is the state's own.
func (s *State) DroppedPeers() []DroppedPeer { return s.peers.dropped }

func (r *peerDirectory) wasDropped(node capabilities.NodeID) bool {
	return slices.ContainsFunc(r.dropped, func(d DroppedPeer) bool { return d.Node == node })
}

// RevokePeerGrants takes back what the agent gave to the agents of another node before it was dropped, and whatever lets them
// reach this agent.
type RevokePeerGrants struct{ DroppedPeer }

func (c RevokePeerGrants) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	var evs []events.Event
	seen := map[capabilities.ID]bool{}
	for _, g := range slices.Concat(s.Grants(), s.minted.All()) {
		if g.To.Node == c.Node && g.Revoked == 0 && g.At <= c.At && !seen[g.ID] {
			seen[g.ID] = true
			evs = append(evs, &events.CapabilityRevoked{Grant: g.ID, By: s.ID, Date: now})
		}
	}
	return evs[:min(len(evs), forgottenAtOnce)], nil
}

// DropDeliveries ends what the agent owes to another node, which was dropped: forms that only its agents could answer are
// declined.
type DropDeliveries struct{ Node capabilities.NodeID }

func (c DropDeliveries) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	d := RecordDelivery{Refused: string(parley.NodeUnknown) + ": the node was dropped"}
	for _, p := range s.outbox {
		if p.To.Node == c.Node && len(d.Items) < forgottenAtOnce {
			d.Items = append(d.Items, p)
		}
	}
	return d.decide(s, now, ids)
}

// forgottenAtOnce bounds the events of one decision about a node that was dropped. There may be more to decide.
const forgottenAtOnce = 1000

// InvolvesDropped reports whether the mailbox has anything to do with a node that was dropped.
func (s *State) InvolvesDropped(d DroppedPeer) bool {
	before := func(g capabilities.Grant) bool { return g.To.Node == d.Node && g.Revoked == 0 && g.At <= d.At }
	return slices.ContainsFunc(s.outbox, func(p OutboxItem) bool { return p.To.Node == d.Node }) ||
		slices.ContainsFunc(s.Grants(), before) || slices.ContainsFunc(s.minted.All(), before)
}
