package actors

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// heaviestShown is how many agents and other nodes are shown.
const heaviestShown = 5

// Quotas says which quotas there are, and who uses most of them.
func (n *Node) Quotas(ctx context.Context) (view.NodeQuotas, error) {
	q := view.NodeQuotas{Agents: n.accounts.agents.Quotas.Named(), Peers: n.accounts.peers.Named(), Heaviest: n.accounts.heaviest(heaviestShown, n.now())}
	q.PeersUsed = n.accounts.heaviestPeers(heaviestShown)
	hosts := map[capabilities.NodeID]capabilities.ID{}
	known, ids := n.peers.list()
	for i, p := range known {
		hosts[p.id] = ids[i]
	}
	return query(ctx, n.Host(), func(s *mailbox.State, _ capabilities.Time) (view.NodeQuotas, error) {
		for i := range q.Heaviest {
			q.Heaviest[i].Name = s.NameOf(q.Heaviest[i].Agent)
		}
		for i := range q.PeersUsed {
			q.PeersUsed[i].Name = s.NameOf(hosts[q.PeersUsed[i].Node])
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
func (a *Agent) QuotaOf(ctx context.Context, agent *Agent) (view.AgentUse, error) {
	if err := a.MayLookInto(ctx, agent); err != nil && !a.IsHost() {
		return view.AgentUse{}, err
	}
	if _, err := agent.Version(ctx); err != nil { // its account is open then
		return view.AgentUse{}, err
	}
	u := a.node.accounts.use(agent.id, a.node.now())
	var err error
	u.Name, err = query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (string, error) { return s.NameOf(u.Agent), nil })
	return u, err
}

// LimitPeer gives another node quotas of its own, each for every mailbox that it sends to. Only the node's host may.
func (a *Agent) LimitPeer(ctx context.Context, node capabilities.NodeID, quotas map[string]int64, reset bool) error {
	return a.do(ctx, mailbox.SetQuota{Node: node, Quotas: quotas, Reset: reset})
}

// heaviestPeers returns the other nodes that use most of their quotas.
func (a *accounts) heaviestPeers(most int) []view.PeerUse {
	now := a.node.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]view.PeerUse, 0, len(a.held))
	for node := range a.held {
		all = append(all, a.peerLocked(node, now))
	}
	inbox := mailbox.QuotaInbox.String()
	slices.SortFunc(all, func(x, y view.PeerUse) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(y.Used[inbox], x.Used[inbox]), bytes.Compare(x.Node[:], y.Node[:]))
	})
	return all[:min(most, len(all))]
}

// peerLocked returns what another node uses. The caller has the lock.
func (a *accounts) peerLocked(node capabilities.NodeID, now capabilities.Time) view.PeerUse {
	var used mailbox.Amounts
	quotas := a.quotas(ofNode(node))
	u := view.PeerUse{Node: node, Quotas: quotas.Named()}
	fullest := func(amounts mailbox.Amounts) {
		if q, share := amounts.Fullest(quotas); share > u.Share {
			u.Share, u.Quota = share, q.String()
		}
	}
	effort := mailbox.Amounts{mailbox.QuotaProcessor: a.effortOf(ofNode(node)).inMinute(now)}
	for _, amounts := range a.held[node] {
		used = used.Plus(amounts)
		fullest(amounts)
	}
	fullest(effort)
	u.Used = used.Plus(effort).Named()
	return u
}

// ofPeer returns what another node uses.
func (a *accounts) ofPeer(node capabilities.NodeID) view.PeerUse {
	now := a.node.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.peerLocked(node, now)
}
