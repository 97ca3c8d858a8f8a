package client

import (
	"context"

	"parley/actors/view"
	"parley/gateway/api"
)

// Invoke uses a resource, and blocks until the use has ended. It is charged before it goes out. With a key of the agent's own another
// call with the same input is the same use. A use that failed, was denied or is unknown is returned with its error.
func (c *Client) Invoke(ctx context.Context, r api.InvokeRequest) (view.Use, error) {
	for {
		u, err := api.Invoke.Do(ctx, c, r)
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
