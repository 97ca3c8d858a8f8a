package client

import (
	"context"
	"encoding/json"

	"parley/gateway/api"
)

// Names lists the names that the agent holds, sorted, or those below a path.
func (c *Client) Names(ctx context.Context, path string) ([]string, error) {
	var all []string
	for r := (api.ListNamesRequest{Path: path, Paging: api.Paging{Limit: c.pageSize}}); ; {
		n, err := get[api.ListNamesResponse](ctx, c, "list_names", r)
		if err != nil {
			return nil, err
		}
		all = append(all, n.Names...)
		if r.After = n.Next; r.After == "" {
			return all, nil
		}
	}
}

// Lookup reads the value under a name into a pointer, as json.Unmarshal does. A reference is read as a Ref. With reveal, sealed
// values are opened.
func (c *Client) Lookup(ctx context.Context, name string, reveal bool, into any) error {
	var found struct {
		Value json.RawMessage `json:"value"`
	}
	if err := c.Call(ctx, "lookup", api.LookupRequest{Name: name, Reveal: reveal}, &found); err != nil {
		return err
	}
	if err := json.Unmarshal(found.Value, into); err != nil {
		return unreadable("lookup", err)
	}
	return nil
}

// Located is the place of a name's target.
type Located struct {
	Locator string `json:"locator"`
	ID      ID     `json:"id"`
	Kind    string `json:"kind,omitempty"`
}

// Locate returns the locator of the value under a name.
func (c *Client) Locate(ctx context.Context, name string) (Located, error) {
	return get[Located](ctx, c, "locate", api.NameRequest{Name: name})
}

// Store binds a name to a value, or to the target of a locator that the agent can reach already.
func (c *Client) Store(ctx context.Context, name string, value any) error {
	written, err := json.Marshal(value)
	if err != nil {
		return unwritable(err)
	}
	return c.Call(ctx, "store_name", api.StoreNameRequest{Name: name, Value: written}, nil)
}

// Remove removes a name.
func (c *Client) Remove(ctx context.Context, name string) error {
	return c.Call(ctx, "remove_name", api.NameRequest{Name: name}, nil)
}

// NewAgent is an agent to be made: a host or, by default, a guest. The maker holds it under Name.
type NewAgent struct {
	Kind   string            `json:"kind,omitempty"`
	Name   string            `json:"name"`
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// Made is a new agent.
type Made struct {
	Agent ID     `json:"agent"`
	Name  string `json:"name"`
	Kind  string `json:"kind"`
}

// Make creates an agent.
func (c *Client) Make(ctx context.Context, a NewAgent) (Made, error) {
	return get[Made](ctx, c, "make_agent", a)
}
