package gateway

import (
	"context"

	"parley/actors"
	"parley/capabilities"
)

// CreateTokenRequest asks for a token for the agent.
type CreateTokenRequest struct {
	Acting
	actors.NewToken
}

func createToken(ctx context.Context, a *actors.Agent, r CreateTokenRequest) (actors.Token, error) {
	return a.MakeToken(ctx, r.NewToken)
}

// ListTokensRequest asks for the agent's tokens.
type ListTokensRequest struct {
	Acting
	Paging
}

// ListTokensResponse has those that are good, oldest first, without their secrets.
type ListTokensResponse struct {
	Tokens []actors.Token `json:"tokens"`
	Paged
}

func listTokens(ctx context.Context, a *actors.Agent, r ListTokensRequest) (ListTokensResponse, error) {
	all, err := a.Tokens(ctx)
	if err != nil {
		return ListTokensResponse{}, err
	}
	tokens, paged, err := pageOf(all, r.Paging, func(t actors.Token) string { return t.ID.String() })
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
