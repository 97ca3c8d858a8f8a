package backend

import (
	"cmp"
	"context"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// bearer is the header that most servers take a secret in.
const bearer = "Authorization: Bearer {}"

func makeResource(ctx context.Context, a *actors.Agent, r api.MakeResourceRequest) (view.MadeResource, error) {
	m := events.ResourceMade{Kind: r.Kind, Facet: r.Facet, Folder: r.Folder, File: r.File, Command: r.Command, Address: r.Address}
	if r.Kind == capabilities.KindSecret {
		m.Header = cmp.Or(r.Header, bearer)
		if r.Authority != "" {
			m.Authority = []byte(r.Authority)
		}
	}
	return actors.ResourcesOf(a).Make(ctx, actors.NewResource{Name: r.Name, Made: m, Secret: r.Secret}, r.Again)
}

func endResource(ctx context.Context, a *actors.Agent, r api.NameRequest) (api.Done, error) {
	return api.Done{}, actors.ResourcesOf(a).End(ctx, r.Name)
}

func invoke(ctx context.Context, a *actors.Agent, r api.InvokeRequest) (view.Use, error) {
	if r.Name == "" {
		if r.Verb != "" || r.Use != "" {
			return view.Use{}, parley.Refuse(parley.InvalidArgument, "which one is to be used?").WithHint("without a verb too, what is held is listed")
		}
		return actors.ResourcesOf(a).Held(ctx)
	}
	wait, err := waitTime(r.WaitMs)
	if err != nil {
		return view.Use{}, err
	}
	for name, v := range r.Input {
		if v.Has(capabilities.Value.IsRef) || v.Has(capabilities.Value.IsSealed) {
			return view.Use{}, parley.Refuse(parley.InvalidArgument, "the input of a use is plain data, and %s is not", parley.Quoted(name, 40))
		}
	}
	u := actors.Used{Name: r.Name, Verb: r.Verb, Input: r.Input, Key: r.Key, Wait: wait}
	if r.Use != "" {
		if u.Use, err = capabilities.ParseID(r.Use); err != nil {
			return view.Use{}, err
		}
	}
	return actors.ResourcesOf(a).Use(ctx, u)
}
