package backend

import (
	"context"

	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
)

func prove(ctx context.Context, a *actors.Agent, r api.ProofRequest) (view.Proof, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Proof{}, err
	}
	return a.Mail().Prove(ctx, ref, r.DigestOnly)
}
