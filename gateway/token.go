package gateway

import (
	"context"

	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
)

// CreateTokenRequest makes a token for the agent. With no scopes it has read, ask and answer, and reveal unless it is the
// node's host's. With no time it is good for ever.
type CreateTokenRequest struct {
	Acting
	Scopes []string          `json:"scopes,omitempty"`
	Until  capabilities.Time `json:"until,omitzero"`
	Note   string            `json:"note,omitempty"`
}

func createToken(ctx context.Context, a *actors.Agent, r CreateTokenRequest) (view.Token, error) {
	return a.MakeToken(ctx, actors.NewToken{Scopes: r.Scopes, Until: r.Until, Note: r.Note})
}

// ListTokensRequest asks for the agent's tokens.
type ListTokensRequest struct {
	Acting
	Paging
}

// ListTokensResponse has those that are good, oldest first, without their secrets.
type ListTokensResponse struct {
	Tokens []view.Token `json:"tokens"`
	Paged
}

func listTokens(ctx context.Context, a *actors.Agent, r ListTokensRequest) (ListTokensResponse, error) {
	all, err := a.Tokens(ctx)
	if err != nil {
		return ListTokensResponse{}, err
	}
	tokens, paged, err := pageOf(all, r.Paging, func(t view.Token) string { return t.ID.String() })
	return ListTokensResponse{tokens, paged}, err
}

// RevokeTokenRequest ends one of the agent's tokens.
type RevokeTokenRequest struct {
	Acting
	Token capabilities.ID `json:"token"`
}

func revokeToken(ctx context.Context, a *actors.Agent, r RevokeTokenRequest) (Done, error) {
	return Done{}, a.RevokeToken(ctx, r.Token)
}
