package backend

import (
	"context"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

func listMandates(ctx context.Context, b *Backend, p *principal, r api.ListMandatesRequest) (api.ListMandatesResponse, error) {
	if r.Everyone && r.Agent != "" {
		return api.ListMandatesResponse{}, parley.Refuse(parley.InvalidArgument, "the mandates are those of everyone, or of one agent")
	}
	_, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return api.ListMandatesResponse{}, err
	}
	list := agent.Rules().Mandates
	if r.Everyone {
		list = agent.Rules().AllMandates
	}
	all, err := list(ctx, r.All)
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
