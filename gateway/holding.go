package gateway

import (
	"context"
	"encoding/json"
	"slices"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// MakeAgentRequest makes an agent, which the caller then holds under Name.
type MakeAgentRequest struct {
	Acting
	Kind   events.AgentKind  `json:"kind,omitempty"` // host or guest; default guest
	Name   string            `json:"name"`
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// MakeAgentResponse has the new agent's ID.
type MakeAgentResponse struct {
	Agent capabilities.ID  `json:"agent"`
	Name  string           `json:"name"`
	Kind  events.AgentKind `json:"kind"`
}

func makeAgent(ctx context.Context, a *actors.Agent, r MakeAgentRequest) (MakeAgentResponse, error) {
	if r.Kind == "" {
		r.Kind = events.Guest
	}
	made, err := a.Make(ctx, actors.NewAgent{Kind: r.Kind, Name: r.Name, Title: r.Title, Labels: r.Labels})
	if err != nil {
		return MakeAgentResponse{}, err
	}
	return MakeAgentResponse{Agent: made.ID(), Name: r.Name, Kind: r.Kind}, nil
}

// ListNamesRequest lists the names that an agent holds, or those within what stands under a path.
type ListNamesRequest struct {
	Acting
	Paging
	Path string `json:"path,omitempty"`
}

// ListNamesResponse has the names, sorted.
type ListNamesResponse struct {
	Names   []string `json:"names"`
	Revoked []string `json:"revoked,omitempty"` // those of them that are good for nothing any more
	Paged
}

func listNames(ctx context.Context, a *actors.Agent, r ListNamesRequest) (ListNamesResponse, error) {
	all, err := a.Names(ctx, r.Path)
	if err != nil {
		return ListNamesResponse{}, err
	}
	names, paged, err := pageOf(all, r.Paging, func(name string) string { return name })
	found := ListNamesResponse{Names: names, Paged: paged}
	if err != nil || r.Path != "" {
		return found, err
	}
	revoked, err := a.RevokedNames(ctx)
	for _, name := range revoked {
		if slices.Contains(names, name) {
			found.Revoked = append(found.Revoked, name)
		}
	}
	return found, err
}

// LookupRequest asks for the value under a name. Reveal opens what is sealed.
type LookupRequest struct {
	Acting
	Name   string `json:"name"`
	Reveal bool   `json:"reveal,omitempty"`
}

// LookupResponse has the value.
type LookupResponse struct {
	Value capabilities.Value `json:"value"`
}

func lookup(ctx context.Context, a *actors.Agent, r LookupRequest) (LookupResponse, error) {
	v, err := a.Show(ctx, r.Name, r.Reveal)
	return LookupResponse{Value: v}, err
}

// NameRequest is about one name.
type NameRequest struct {
	Acting
	Name string `json:"name"`
}

// LocateResponse says where a name's target is.
type LocateResponse struct {
	Locator string            `json:"locator"`
	ID      capabilities.ID   `json:"id"`
	Kind    capabilities.Kind `json:"kind,omitempty"`
}

func locate(ctx context.Context, a *actors.Agent, r NameRequest) (LocateResponse, error) {
	l, err := a.Locate(ctx, r.Name)
	if err != nil {
		return LocateResponse{}, err
	}
	return LocateResponse{Locator: l.String(), ID: l.ID, Kind: l.Kind}, nil
}

// StoreNameRequest puts a value under a name. A string is a locator or the text of a JSON document;
// anything else is the value itself.
type StoreNameRequest struct {
	Acting
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

func storeName(ctx context.Context, a *actors.Agent, r StoreNameRequest) (Done, error) {
	if len(r.Value) == 0 {
		return Done{}, parley.Refuse(parley.InvalidArgument, "store what under %.80q? there is no value", r.Name)
	}
	text := string(r.Value)
	if r.Value[0] == '"' {
		if err := json.Unmarshal(r.Value, &text); err != nil {
			return Done{}, err
		}
	}
	return Done{}, a.Store(ctx, r.Name, text)
}

// RenameNameRequest moves what stands under Old to New.
type RenameNameRequest struct {
	Acting
	Old string `json:"old"`
	New string `json:"new"`
}

func renameName(ctx context.Context, a *actors.Agent, r RenameNameRequest) (Done, error) {
	return Done{}, a.Rename(ctx, r.Old, r.New)
}

func removeName(ctx context.Context, a *actors.Agent, r NameRequest) (Done, error) {
	return Done{}, a.Remove(ctx, r.Name)
}

// CopyNameRequest puts what stands under Old under New too, narrowed to a facet.
type CopyNameRequest struct {
	Acting
	Old   string            `json:"old"`
	New   string            `json:"new"`
	Facet capabilities.Mode `json:"facet,omitempty"` // ask or read; default everything
	Until capabilities.Time `json:"until,omitzero"`
	Uses  uint32            `json:"uses,omitempty"`
}

func copyName(ctx context.Context, a *actors.Agent, r CopyNameRequest) (Done, error) {
	facet := capabilities.Facet{Mode: r.Facet, Until: r.Until, Uses: r.Uses}
	if err := facet.Check(); err != nil {
		return Done{}, err
	}
	return Done{}, a.Copy(ctx, r.Old, r.New, facet)
}

// ListGrantsRequest lists what the agent gave out, oldest first.
type ListGrantsRequest struct {
	Acting
	Paging
}

// ListGrantsResponse has the grants.
type ListGrantsResponse struct {
	Grants []view.Granted `json:"grants"`
	Paged
}

func listGrants(ctx context.Context, a *actors.Agent, r ListGrantsRequest) (ListGrantsResponse, error) {
	all, err := a.Grants(ctx)
	if err != nil {
		return ListGrantsResponse{}, err
	}
	grants, paged, err := pageOf(all, r.Paging, func(g view.Granted) string { return g.ID.String() })
	return ListGrantsResponse{grants, paged}, err
}

// RevokeRequest takes back what was given, and all that was derived from it.
type RevokeRequest struct {
	Acting
	Grant string `json:"grant"`
}

func revoke(ctx context.Context, a *actors.Agent, r RevokeRequest) (Done, error) {
	id, err := capabilities.ParseID(r.Grant)
	if err != nil {
		return Done{}, err
	}
	return Done{}, a.Revoke(ctx, id)
}
