package gateway

import (
	"context"
	"slices"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
)

func setQuota(ctx context.Context, a *actors.Agent, r api.SetQuotaRequest) (view.AgentUse, error) {
	agent, err := a.Agents().Find(ctx, r.AgentID)
	if err != nil {
		return view.AgentUse{}, err
	}
	if err := a.Agents().SetQuota(ctx, agent, r.Quotas, r.Reset); err != nil {
		return view.AgentUse{}, err
	}
	return a.Agents().Quota(ctx, agent)
}

func getQuota(ctx context.Context, a *actors.Agent, r api.GetQuotaRequest) (view.AgentUse, error) {
	agent, err := a.Agents().Find(ctx, r.AgentID)
	if err != nil {
		return view.AgentUse{}, err
	}
	return a.Agents().Quota(ctx, agent)
}

func limitPeer(ctx context.Context, s *Server, r api.LimitPeerRequest) (view.Peer, error) {
	p, err := s.findPeer(ctx, r.Node)
	if err != nil {
		return p, err
	}
	if err := s.node.Host().Peers().Limit(ctx, p.Node, r.Quotas, r.Reset); err != nil {
		return p, err
	}
	return s.findPeer(ctx, p.Node.String())
}

func dropPeer(ctx context.Context, s *Server, r api.DropPeerRequest) (view.DroppedPeer, error) {
	p, err := s.findPeer(ctx, r.Node)
	if err != nil {
		return view.DroppedPeer{}, err
	}
	return s.node.Host().Peers().Drop(ctx, p.Node)
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
