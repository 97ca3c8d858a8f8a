package gateway

import (
	"context"

	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
)

// InviteRequest asks for an invitation. The host of the node that accepts it will be held under Name.
type InviteRequest struct {
	Acting
	Name    string            `json:"name"`
	Expires capabilities.Time `json:"expires,omitzero"` // default: a day from now
}

func invite(ctx context.Context, a *actors.Agent, r InviteRequest) (view.Invitation, error) {
	return a.Invite(ctx, actors.NewInvitation{Name: r.Name, Until: r.Expires})
}

func uninvite(ctx context.Context, a *actors.Agent, r NameRequest) (Done, error) {
	return Done{}, a.Uninvite(ctx, r.Name)
}

// ListInvitationsRequest lists the invitations that are open, oldest first.
type ListInvitationsRequest struct {
	Acting
	Paging
}

// ListInvitationsResponse has them, without their secrets.
type ListInvitationsResponse struct {
	Invitations []view.Invitation `json:"invitations"`
	Paged
}

func listInvitations(ctx context.Context, a *actors.Agent, r ListInvitationsRequest) (ListInvitationsResponse, error) {
	all, err := a.Invitations(ctx)
	if err != nil {
		return ListInvitationsResponse{}, err
	}
	open, paged, err := pageOf(all, r.Paging, func(i view.Invitation) string { return i.ID.String() })
	return ListInvitationsResponse{open, paged}, err
}

// AcceptRequest takes up the invitation that another node gave out.
type AcceptRequest struct {
	Acting
	Name    string `json:"name"`
	Locator string `json:"locator"`
}

func accept(ctx context.Context, a *actors.Agent, r AcceptRequest) (view.Accepted, error) {
	return a.Accept(ctx, r.Name, r.Locator)
}

// ListNodesRequest lists the nodes that this one knows.
type ListNodesRequest struct {
	Acting
	Paging
}

// ListNodesResponse has the nodes that this one knows, in the order in which it came to.
type ListNodesResponse struct {
	Nodes []view.Peer `json:"nodes"`
	Paged
}

func listNodes(ctx context.Context, s *Server, r ListNodesRequest) (ListNodesResponse, error) {
	all, err := s.node.Nodes(ctx)
	if err != nil {
		return ListNodesResponse{}, err
	}
	known, paged, err := pageOf(all, r.Paging, func(p view.Peer) string { return p.Node.String() })
	return ListNodesResponse{known, paged}, err
}

// Peers counts the nodes that this one knows, and what went between them and it.
type Peers struct {
	Known     int          `json:"known"`
	Reachable int          `json:"reachable"`
	Waiting   int          `json:"waiting"` // parcels that have not arrived
	Traffic   view.Traffic `json:"traffic"`
}

func countPeers(known []view.Peer, traffic view.Traffic) Peers {
	count := Peers{Known: len(known), Traffic: traffic}
	for _, p := range known {
		if p.Reachable {
			count.Reachable++
		}
		count.Waiting += p.Waiting
	}
	return count
}
