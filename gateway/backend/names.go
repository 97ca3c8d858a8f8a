package backend

import (
	"cmp"
	"context"
	"encoding/json"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/people"
)

func makeAgent(ctx context.Context, a *actors.Agent, r api.MakeAgentRequest) (api.MakeAgentResponse, error) {
	if r.Kind == "" {
		r.Kind = events.Guest
	}
	if err := people.CheckDescription(r.Title, r.Labels, nil); err != nil {
		return api.MakeAgentResponse{}, err
	}
	made, err := a.Make(ctx, actors.NewAgent{Kind: r.Kind, Name: r.Name, Title: r.Title, Labels: r.Labels})
	if err != nil {
		return api.MakeAgentResponse{}, err
	}
	return api.MakeAgentResponse{Agent: made.ID(), Name: r.Name, Kind: r.Kind}, nil
}

func listNames(ctx context.Context, a *actors.Agent, r api.ListNamesRequest) (api.ListNamesResponse, error) {
	if err := r.Paging.Check(); err != nil {
		return api.ListNamesResponse{}, err
	}
	all, err := a.Names().List(ctx, r.Path, r.After, r.Most()+1)
	if err != nil {
		return api.ListNamesResponse{}, err
	}
	r.After = "" // they are those behind it
	names, paged, err := api.PageOf(all, r.Paging, func(name string) string { return name })
	found := api.ListNamesResponse{Names: names, Paged: paged}
	if err == nil && r.Path == "" {
		found.Revoked, err = a.Names().Revoked(ctx, names)
	}
	return found, err
}

func lookup(ctx context.Context, a *actors.Agent, r api.LookupRequest) (api.LookupResponse, error) {
	v, err := a.Names().Show(ctx, r.Name, r.Reveal)
	return api.LookupResponse{Value: v}, err
}

func locate(ctx context.Context, a *actors.Agent, r api.NameRequest) (api.LocateResponse, error) {
	l, err := a.Names().Locate(ctx, r.Name)
	if err != nil {
		return api.LocateResponse{}, err
	}
	return api.LocateResponse{Locator: l.String(), ID: l.ID, Kind: l.Kind}, nil
}

func storeName(ctx context.Context, a *actors.Agent, r api.StoreNameRequest) (api.Done, error) {
	if len(r.Value) == 0 {
		return api.Done{}, parley.Refuse(parley.InvalidArgument, "store what under %.80q? there is no value", r.Name)
	}
	text := string(r.Value)
	if r.Value[0] == '"' {
		if err := json.Unmarshal(r.Value, &text); err != nil {
			return api.Done{}, err
		}
	}
	return api.Done{}, a.Names().Store(ctx, r.Name, text)
}

func renameName(ctx context.Context, a *actors.Agent, r api.RenameNameRequest) (api.Done, error) {
	if r.Force {
		return api.Done{}, a.Names().Replace(ctx, r.Old, r.New)
	}
	return api.Done{}, a.Names().Rename(ctx, r.Old, r.New)
}

func removeName(ctx context.Context, a *actors.Agent, r api.NameRequest) (api.Done, error) {
	return api.Done{}, a.Names().Remove(ctx, r.Name)
}

func copyName(ctx context.Context, a *actors.Agent, r api.CopyNameRequest) (api.Done, error) {
	facet := capabilities.Facet{Mode: r.Facet, Until: r.Until, Uses: r.Uses}
	if err := cmp.Or(facet.Check(), r.Narrow.Check()); err != nil {
		return api.Done{}, err
	}
	facet = facet.Narrow(r.Narrow)
	return api.Done{}, a.Names().Copy(ctx, r.Old, r.New, facet)
}

func listGrants(ctx context.Context, a *actors.Agent, r api.ListGrantsRequest) (api.ListGrantsResponse, error) {
	if err := r.Paging.Check(); err != nil {
		return api.ListGrantsResponse{}, err
	}
	f := view.GrantFilter{Most: r.Most() + 1}
	if r.After != "" {
		var err error
		if f.After, err = capabilities.ParseID(r.After); err != nil {
			return api.ListGrantsResponse{}, err
		}
	}
	all, err := a.Names().Grants(ctx, f)
	if err != nil {
		return api.ListGrantsResponse{}, err
	}
	r.After = "" // they are those behind it
	grants, paged, err := api.PageOf(all, r.Paging, func(g view.Granted) string { return g.ID.String() })
	return api.ListGrantsResponse{Grants: grants, Paged: paged}, err
}

func revoke(ctx context.Context, a *actors.Agent, r api.RevokeRequest) (api.Done, error) {
	id, err := capabilities.ParseID(r.Grant)
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, a.Names().Revoke(ctx, id)
}
