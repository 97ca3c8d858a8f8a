package backend

import (
	"context"

	"parley/actors/view"
	"parley/gateway/api"
)

func listMandates(ctx context.Context, b *Backend, p *principal, r api.ListMandatesRequest) (api.ListMandatesResponse, error) {
	_, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return api.ListMandatesResponse{}, err
	}
	all, err := agent.Rules().Mandates(ctx, r.All)
	if err != nil {
		return api.ListMandatesResponse{}, err
	}
	some, paged, err := api.PageOf(all, r.Paging, func(m view.Mandate) string { return m.Mandate.String() })
	return api.ListMandatesResponse{Mandates: some, Paged: paged}, err
}

// maxMandateCalls bounds the calls of a mandate in a response: the last ones.
const maxMandateCalls = 100

func getMandate(ctx context.Context, b *Backend, p *principal, r api.MandateRequest) (resp api.GetMandateResponse, err error) {
	_, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return resp, err
	}
	resp.Mandate, resp.Covered, err = agent.Rules().Mandate(ctx, r.Mandate, maxMandateCalls)
	return resp, err
}

func endMandate(ctx context.Context, b *Backend, p *principal, r api.MandateRequest) (api.Done, error) {
	by, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, by.Rules().EndMandate(ctx, agent, r.Mandate)
}
