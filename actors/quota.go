package actors

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"parley/capabilities"
	"parley/mailbox"
)

// NodeQuotas says what agents and other nodes may have the node hold, and who uses most of that. It knows the agents
// whose mailboxes were read since the node started.
type NodeQuotas struct {
	Agents    mailbox.Amounts `json:"agents"` // of each, where nothing else is set
	Peers     mailbox.Amounts `json:"peers"`  // of each other node, for each mailbox that it sends to
	Heaviest  []AgentUse      `json:"heaviestAgents"`
	PeersUsed []PeerUse       `json:"heaviestPeers"`
}

// PeerUse is what another node has this one hold, in all mailboxes together, and its quotas in each.
type PeerUse struct {
	Node   capabilities.NodeID `json:"node"`
	Name   string              `json:"name,omitempty"` // the host's name for the other's host
	Used   mailbox.Amounts     `json:"used"`
	Quotas mailbox.Amounts     `json:"quotas"`
	Share  float64             `json:"share"` // of the quota that is fullest in one mailbox
	Quota  string              `json:"quota,omitempty"`
}

// heaviestShown is how many agents and other nodes are shown.
const heaviestShown = 5

// Quotas says which quotas there are, and who uses most of them.
func (n *Node) Quotas(ctx context.Context) (NodeQuotas, error) {
	q := NodeQuotas{Agents: n.accounts.agents.Quotas, Peers: n.accounts.peers, Heaviest: n.accounts.heaviest(heaviestShown, n.now())}
	q.PeersUsed = n.accounts.heaviestPeers(heaviestShown)
	hosts := map[capabilities.NodeID]capabilities.ID{}
	known, ids := n.peers.list()
	for i, p := range known {
		hosts[p.id] = ids[i]
	}
	return visitFor(ctx, n.Host(), func(b *mailboxActor) (NodeQuotas, error) {
		for i := range q.Heaviest {
			q.Heaviest[i].Name = b.state.NameOf(q.Heaviest[i].Agent)
		}
		for i := range q.PeersUsed {
			q.PeersUsed[i].Name = b.state.NameOf(hosts[q.PeersUsed[i].Node])
		}
		return q, nil
	})
}

// SetQuota gives an agent, which shares them with those that it makes, quotas of its own. -1 is none. With reset, what
// was set before is dropped. Only the node's host may.
func (a *Agent) SetQuota(ctx context.Context, agent *Agent, quotas map[string]int64, reset bool) error {
	return a.do(ctx, mailbox.SetQuota{Agent: agent.id, Quotas: quotas, Reset: reset})
}

// QuotaOf says what an agent's account uses. It is for the agent itself, its host and its maker.
func (a *Agent) QuotaOf(ctx context.Context, agent *Agent) (AgentUse, error) {
	if err := a.MayLookInto(ctx, agent); err != nil && !a.IsHost() {
		return AgentUse{}, err
	}
	if _, err := agent.Version(ctx); err != nil { // its account is open then
		return AgentUse{}, err
	}
	u := a.node.accounts.use(agent.id, a.node.now())
	var err error
	u.Name, err = visitFor(ctx, a, func(b *mailboxActor) (string, error) { return b.state.NameOf(u.Agent), nil })
	return u, err
}

// LimitPeer gives another node quotas of its own, each for every mailbox that it sends to. Only the node's host may.
func (a *Agent) LimitPeer(ctx context.Context, node capabilities.NodeID, quotas map[string]int64, reset bool) error {
	return a.do(ctx, mailbox.SetQuota{Node: node, Quotas: quotas, Reset: reset})
}

// heaviestPeers returns the other nodes that use most of their quotas.
func (a *accounts) heaviestPeers(most int) []PeerUse {
	now := a.node.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]PeerUse, 0, len(a.held))
	for node := range a.held {
		all = append(all, a.peerLocked(node, now))
	}
	slices.SortFunc(all, func(x, y PeerUse) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(y.Used[mailbox.QuotaInbox], x.Used[mailbox.QuotaInbox]), bytes.Compare(x.Node[:], y.Node[:]))
	})
	return all[:min(most, len(all))]
}

// peerLocked returns what another node uses. The caller has the lock.
func (a *accounts) peerLocked(node capabilities.NodeID, now capabilities.Time) PeerUse {
	u := PeerUse{Node: node, Quotas: a.quotas(ofNode(node))}
	effort := mailbox.Amounts{mailbox.QuotaProcessor: a.effortOf(ofNode(node)).inMinute(now)}
	for _, amounts := range a.held[node] {
		u.Used = u.Used.Plus(amounts)
		u.fullest(amounts)
	}
	u.fullest(effort)
	u.Used = u.Used.Plus(effort)
	return u
}

// fullest takes up how full a quota is in one mailbox, if that is more than in others.
func (u *PeerUse) fullest(amounts mailbox.Amounts) {
	if q, share := amounts.Fullest(u.Quotas); share > u.Share {
		u.Share, u.Quota = share, q.String()
	}
}

// ofPeer returns what another node uses.
func (a *accounts) ofPeer(node capabilities.NodeID) PeerUse {
	now := a.node.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.peerLocked(node, now)
}
