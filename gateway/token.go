package gateway

import (
	"context"

	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
)

func createToken(ctx context.Context, a *actors.Agent, r api.CreateTokenRequest) (view.Token, error) {
	return a.Tokens().Make(ctx, actors.NewToken{Scopes: r.Scopes, Until: r.Until, Note: r.Note})
}

func listTokens(ctx context.Context, a *actors.Agent, r api.ListTokensRequest) (api.ListTokensResponse, error) {
	all, err := a.Tokens().List(ctx)
	if err != nil {
		return api.ListTokensResponse{}, err
	}
	tokens, paged, err := pageOf(all, r.Paging, func(t view.Token) string { return t.ID.String() })
	return api.ListTokensResponse{Tokens: tokens, Paged: paged}, err
}

func revokeToken(ctx context.Context, a *actors.Agent, r api.RevokeTokenRequest) (api.Done, error) {
	return api.Done{}, a.Tokens().Revoke(ctx, r.Token)
}
