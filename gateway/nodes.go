package gateway

import (
	"context"

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
	open, paged, err := pageOf(all, r.Paging, func(i view.Invitation) string { return i.ID.String() })
	return api.ListInvitationsResponse{Invitations: open, Paged: paged}, err
}

func accept(ctx context.Context, a *actors.Agent, r api.AcceptRequest) (view.Accepted, error) {
	return a.Peers().Accept(ctx, r.Name, r.Locator)
}

func listNodes(ctx context.Context, s *Server, r api.ListNodesRequest) (api.ListNodesResponse, error) {
	all, err := s.node.Nodes(ctx)
	if err != nil {
		return api.ListNodesResponse{}, err
	}
	known, paged, err := pageOf(all, r.Paging, func(p view.Peer) string { return p.Node.String() })
	return api.ListNodesResponse{Nodes: known, Paged: paged}, err
}

func countPeers(known []view.Peer, traffic view.Traffic) api.Peers {
	count := api.Peers{Known: len(known), Traffic: traffic}
	for _, p := range known {
		if p.Reachable {
			count.Reachable++
		}
		count.Waiting += p.Waiting
	}
	return count
}
