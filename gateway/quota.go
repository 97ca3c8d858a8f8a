package gateway

import (
	"context"
	"slices"

	"parley"
	"parley/actors"
	"parley/actors/view"
)

// SetQuotaRequest gives an agent, which shares them with those that it makes, quotas of its own. Those that are not
// mentioned stay as they are; -1 is no limit.
type SetQuotaRequest struct {
	Acting
	AgentID string           `json:"agentId"`
	Quotas  map[string]int64 `json:"quotas,omitempty"`
	Reset   bool             `json:"reset,omitempty"` // what was set before is dropped first
}

func setQuota(ctx context.Context, a *actors.Agent, r SetQuotaRequest) (view.AgentUse, error) {
	agent, err := a.Find(ctx, r.AgentID)
	if err != nil {
		return view.AgentUse{}, err
	}
	if err := a.SetQuota(ctx, agent, r.Quotas, r.Reset); err != nil {
		return view.AgentUse{}, err
	}
	return a.QuotaOf(ctx, agent)
}

// GetQuotaRequest asks what an agent, with those that it made, uses of its quotas.
type GetQuotaRequest struct {
	Acting
	AgentID string `json:"agentId"`
}

func getQuota(ctx context.Context, a *actors.Agent, r GetQuotaRequest) (view.AgentUse, error) {
	agent, err := a.Find(ctx, r.AgentID)
	if err != nil {
		return view.AgentUse{}, err
	}
	return a.QuotaOf(ctx, agent)
}

// LimitPeerRequest gives another node quotas of its own, each for every mailbox that it sends to.
type LimitPeerRequest struct {
	Acting
	Node   string           `json:"node"` // its ID, or the host's name for its host
	Quotas map[string]int64 `json:"quotas,omitempty"`
	Reset  bool             `json:"reset,omitempty"` // what was set before is dropped first
}

func limitPeer(ctx context.Context, s *Server, r LimitPeerRequest) (view.Peer, error) {
	p, err := s.findPeer(ctx, r.Node)
	if err != nil {
		return p, err
	}
	if err := s.node.Host().LimitPeer(ctx, p.Node, r.Quotas, r.Reset); err != nil {
		return p, err
	}
	return s.findPeer(ctx, p.Node.String())
}

// DropPeerRequest ends what the node has to do with another.
type DropPeerRequest struct {
	Acting
	Node string `json:"node"` // its ID, or the host's name for its host
}

func dropPeer(ctx context.Context, s *Server, r DropPeerRequest) (view.DroppedPeer, error) {
	p, err := s.findPeer(ctx, r.Node)
	if err != nil {
		return view.DroppedPeer{}, err
	}
	return s.node.Host().DropPeer(ctx, p.Node)
}

// findPeer returns another node by its ID, or by the host's name for its host.
func (s *Server) findPeer(ctx context.Context, which string) (view.Peer, error) {
	known, err := s.node.Nodes(ctx)
	if err != nil {
		return view.Peer{}, err
	}
	i := slices.IndexFunc(known, func(p view.Peer) bool { return p.Node.String() == which || p.Name != "" && p.Name == which })
	if i < 0 {
		return view.Peer{}, parley.Refuse(parley.NodeUnknown, "no node %.80q is known", which).WithHint("parley peers lists those that are")
	}
	return known[i], nil
}
