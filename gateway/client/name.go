package client

import (
	"context"
	"encoding/json"

	"parley/gateway/api"
)

// Names lists the names that the agent holds, sorted, or those below a path.
func (c *Client) Names(ctx context.Context, path string) ([]string, error) {
	r := api.ListNamesRequest{Path: path, Paging: api.Paging{Limit: c.pageSize}}
	return api.All(ctx, c, api.ListNames, r, func(n api.ListNamesResponse) []string { return n.Names })
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
