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
}

// ListTokensResponse has those that are good, oldest first, without their secrets.
type ListTokensResponse struct {
	Tokens []actors.Token `json:"tokens"`
}

func listTokens(ctx context.Context, a *actors.Agent, _ ListTokensRequest) (ListTokensResponse, error) {
	tokens, err := a.Tokens(ctx)
	return ListTokensResponse{Tokens: tokens}, err
}

// RevokeTokenRequest ends one of the agent's tokens.
type RevokeTokenRequest struct {
	Acting
	Token capabilities.ID `json:"token"`
}

func revokeToken(ctx context.Context, a *actors.Agent, r RevokeTokenRequest) (Done, error) {
	return Done{}, a.RevokeToken(ctx, r.Token)
}
