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
		return outputEnd(ctx, agent, r)
	}
	limit := r.Limit
	if limit <= 0 || limit > api.MaxPieces {
		limit = api.MaxPieces
	}
	read := agent.Output().Since
	if r.WaitMs != 0 {
		var cancel context.CancelFunc
		if ctx, cancel, err = bounded(ctx, &r.WaitMs); err != nil {
			return got, err
		}
		defer cancel()
		read = agent.Output().Await
	}
	var room api.PageRoom
	for len(got.Pieces) < limit {
		step := min(outputStep, limit-len(got.Pieces))
		pieces, err := read(ctx, got.Cursor, step)
		if err != nil {
			return got, err
		}
		for _, p := range pieces {
			if full, err := room.IsFull(p); full || err != nil {
				return got, err
			}
			got.Pieces, got.Cursor = append(got.Pieces, p), p.Cursor
		}
		if len(pieces) < step {
			return got, nil
		}
		read = agent.Output().Since // wait only for the first pieces
	}
	return got, nil
}

// outputStep is the number of pieces that are read at once.
const outputStep = 32

func outputEnd(ctx context.Context, agent *actors.Agent, r api.ReadOutputRequest) (api.ReadOutputResponse, error) {
	got := api.ReadOutputResponse{Pieces: []view.OutputPiece{}}
	if *r.Tail < 0 || r.After != 0 || r.WaitMs != 0 || r.Limit != 0 {
		return got, parley.Refuse(parley.InvalidArgument, "tail is a number of pieces, and goes without after, limit and waitMs")
	}
	for most, step := min(*r.Tail, api.MaxPieces), outputStep; ; step *= 2 {
		pieces, cursor, err := agent.Output().Latest(ctx, min(most, step))
		if err != nil {
			return got, err
		}
		fitting, err := api.NewestFitting(pieces)
		if err != nil {
			return got, err
		}
		got.Pieces, got.Cursor = fitting, cursor
		if len(fitting) < len(pieces) || len(pieces) < step || step >= most {
			return got, nil
		}
	}
}
