package client

import (
	"context"

	"parley/actors/view"
	"parley/gateway/api"
)

// Proof returns a file that shows the decision on a form to somebody who has no access to the node: see docs/proofs.md. With digestOnly
// it tells the digest of what was shown, and not that. Parley proof verify reads it.
func Proof(ctx context.Context, c *Client, form ID, digestOnly bool) ([]byte, error) {
	got, err := get[view.Proof](ctx, c, "proof", api.ProofRequest{FormRef: refTo(form), DigestOnly: digestOnly})
	return []byte(got.Proof), err
}
