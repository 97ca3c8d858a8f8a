package client

import (
	"context"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

// Use is a use of a resource.
type Use = view.Use

// NewResource describes a resource to be made.
type NewResource = api.MakeResourceRequest

// Resources are the folders, files, secrets and tools that the agent makes and holds.
type Resources struct{ c *Client }

// ResourcesOf returns the resources that the agent of a client makes and holds.
func ResourcesOf(c *Client) Resources { return Resources{c} }

// Make makes a resource, which the node's host then holds under its name.
func (rs Resources) Make(ctx context.Context, r NewResource) (view.MadeResource, error) {
	return get[view.MadeResource](ctx, rs.c, "make_resource", r)
}

// End ends a resource that the host has made, with all grants of it.
func (rs Resources) End(ctx context.Context, name string) error {
	return rs.c.Call(ctx, "end_resource", api.NameRequest{Name: name}, nil)
}

// Describe returns what the agent holds under a name.
func (rs Resources) Describe(ctx context.Context, name string) (view.Holding, error) {
	got, err := get[Use](ctx, rs.c, "invoke", api.InvokeRequest{Name: name})
	if err != nil || got.Holds == nil {
		return view.Holding{}, err
	}
	return *got.Holds, nil
}

// Use uses a resource, and blocks until the use has ended. It is charged before it goes out. With a key of the agent's own, which may be "",
// another call with the same input is the same use. A use that failed, was denied or is unknown is returned with its error.
func (rs Resources) Use(ctx context.Context, name, verb string, input map[string]capabilities.Value, key string) (Use, error) {
	r := api.InvokeRequest{Name: name, Verb: verb, Input: input, Key: key}
	for {
		u, err := get[Use](ctx, rs.c, "invoke", r)
		if err != nil {
			return u, err
		}
		if u.Error != nil {
			return u, u.Error
		}
		if u.HasEnded() {
			return u, nil
		}
		r.Use = u.Use.String()
	}
}
