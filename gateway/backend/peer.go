package backend

import (
	"context"
	"slices"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
)

func invite(ctx context.Context, a *actors.Agent, r api.InviteRequest) (view.Invitation, error) {
	return a.Peers().Invite(ctx, actors.NewInvitation{Name: r.Name, Until: r.Expires})
}

func uninvite(ctx context.Context, a *actors.Agent, r api.NameRequest) (api.Done, error) {
	return api.Done{}, a.Peers().Uninvite(ctx, r.Name)
}

func listInvitations(ctx context.Context, a *actors.Agent, r api.ListInvitationsRequest) (api.ListInvitationsResponse, error) {
	all, err := a.Peers().Invitations(ctx)
	if err != nil {
		return api.ListInvitationsResponse{}, err
	}
	open, paged, err := api.PageOf(all, r.Paging, func(i view.Invitation) string { return i.ID.String() })
	return api.ListInvitationsResponse{Invitations: open, Paged: paged}, err
}

func accept(ctx context.Context, a *actors.Agent, r api.AcceptRequest) (view.Accepted, error) {
	return a.Peers().Accept(ctx, r.Name, r.Locator)
}

func listNodes(ctx context.Context, b *Backend, _ *principal, r api.ListNodesRequest) (api.ListNodesResponse, error) {
	all, err := b.node.Nodes(ctx)
	if err != nil {
		return api.ListNodesResponse{}, err
	}
	known, paged, err := api.PageOf(all, r.Paging, func(p view.Peer) string { return p.Node.String() })
	return api.ListNodesResponse{Nodes: known, Paged: paged}, err
}

// CountPeers sums up other nodes.
func CountPeers(known []view.Peer, traffic view.Traffic) api.Peers {
	count := api.Peers{Known: len(known), Traffic: traffic}
	for _, p := range known {
		if p.Reachable {
			count.Reachable++
		}
		count.Waiting += p.Waiting
	}
	return count
}

func limitPeer(ctx context.Context, b *Backend, _ *principal, r api.LimitPeerRequest) (view.Peer, error) {
	p, err := b.findPeer(ctx, r.Node)
	if err != nil {
		return p, err
	}
	if err := b.node.Host().Peers().Limit(ctx, p.Node, r.Quotas, r.Reset); err != nil {
		return p, err
	}
	return b.findPeer(ctx, p.Node.String())
}

func dropPeer(ctx context.Context, b *Backend, _ *principal, r api.DropPeerRequest) (view.DroppedPeer, error) {
	p, err := b.findPeer(ctx, r.Node)
	if err != nil {
		return view.DroppedPeer{}, err
	}
	return b.node.Host().Peers().Drop(ctx, p.Node)
}

// findPeer returns another node by its ID, or by the host's name for its host.
func (b *Backend) findPeer(ctx context.Context, which string) (view.Peer, error) {
	known, err := b.node.Nodes(ctx)
	if err != nil {
		return view.Peer{}, err
	}
	i := slices.IndexFunc(known, func(p view.Peer) bool { return p.Node.String() == which || p.Name != "" && p.Name == which })
	if i < 0 {
		return view.Peer{}, parley.Refuse(parley.NodeUnknown, "no node %.80q is known", which).WithHint("parley node ls lists those that are")
	}
	return known[i], nil
}
