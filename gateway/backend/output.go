package backend

import (
	"context"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
)

func readOutput(ctx context.Context, a *actors.Agent, r api.ReadOutputRequest) (api.ReadOutputResponse, error) {
	got := api.ReadOutputResponse{Pieces: []view.OutputPiece{}, Cursor: r.After}
	agent, err := a.Agents().Find(ctx, r.AgentID)
	if err == nil {
		err = a.Agents().MayLookInto(ctx, agent)
	}
	if err != nil {
		return got, err
	}
	if r.Tail != nil {
		return outputEnd(ctx, a, agent, r)
	}
	limit := r.Limit
	if limit <= 0 || limit > api.MaxPieces {
		limit = api.MaxPieces
	}
	if r.WaitMs != 0 { // for the first pieces only
		waiting, cancel, err := bounded(ctx, &r.WaitMs)
		if err != nil {
			return got, err
		}
		defer cancel()
		if now, err := agent.Output().Beyond(waiting, r.After); err != nil || now <= r.After {
			return got, err
		}
	}
	var room api.PageRoom
	for more := true; more && len(got.Pieces) < limit; {
		step := min(outputStep, limit-len(got.Pieces))
		err := a.Mail().InTurn(ctx, func() error {
			pieces, err := agent.Output().Since(ctx, got.Cursor, step)
			more = len(pieces) == step
			for _, p := range pieces {
				if err != nil {
					break
				}
				var full bool
				if full, err = room.IsFull(p); full || err != nil {
					more = false
					break
				}
				got.Pieces, got.Cursor = append(got.Pieces, p), p.Cursor
			}
			return err
		})
		if err != nil {
			return got, err
		}
	}
	return got, nil
}

// outputStep is the number of pieces that are read at once.
const outputStep = 32

func outputEnd(ctx context.Context, a, agent *actors.Agent, r api.ReadOutputRequest) (api.ReadOutputResponse, error) {
	got := api.ReadOutputResponse{Pieces: []view.OutputPiece{}}
	if *r.Tail < 0 || r.After != 0 || r.WaitMs != 0 || r.Limit != 0 {
		return got, parley.Refuse(parley.InvalidArgument, "tail is a number of pieces, and goes without after, limit and waitMs")
	}
	for most, step := min(*r.Tail, api.MaxPieces), outputStep; ; step *= 2 {
		read := 0
		err := a.Mail().InTurn(ctx, func() error {
			pieces, cursor, err := agent.Output().Latest(ctx, min(most, step))
			if err != nil {
				return err
			}
			read, got.Cursor = len(pieces), cursor
			got.Pieces, err = api.NewestFitting(pieces)
			return err
		})
		if err != nil || len(got.Pieces) < read || read < step || step >= most {
			return got, err
		}
	}
}
