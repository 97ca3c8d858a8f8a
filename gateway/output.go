package gateway

import (
	"context"

	"parley"
	"parley/actors"
	"parley/actors/view"
)

// ReadOutputRequest reads what an agent's program has put out: what came after a cursor, for some of which it waits where
// a WaitMs is given, or with a Tail the end of it.
type ReadOutputRequest struct {
	Acting
	AgentID string `json:"agentId"`
	After   uint64 `json:"after,omitempty"`
	Limit   int    `json:"limit,omitempty"`  // default and at most 500
	WaitMs  int64  `json:"waitMs,omitempty"` // at most 50,000
	Tail    *int   `json:"tail,omitempty"`   // so many of the newest pieces, at most 500 or as many as fit; 0 gives the cursor alone
}

// ReadOutputResponse has it, oldest first, and the cursor to go on from.
type ReadOutputResponse struct {
	Pieces []view.OutputPiece `json:"pieces"`
	Cursor uint64             `json:"cursor"`
}

// MaxPieces is how many pieces of output one call gives at most.
const MaxPieces = 500

func readOutput(ctx context.Context, a *actors.Agent, r ReadOutputRequest) (ReadOutputResponse, error) {
	got := ReadOutputResponse{Pieces: []view.OutputPiece{}, Cursor: r.After}
	agent, err := a.Find(ctx, r.AgentID)
	if err == nil {
		err = a.MayLookInto(ctx, agent)
	}
	if err != nil {
		return got, err
	}
	if r.Tail != nil {
		return outputEnd(ctx, agent, r)
	}
	limit := r.Limit
	if limit <= 0 || limit > MaxPieces {
		limit = MaxPieces
	}
	read := agent.Output
	if r.WaitMs != 0 {
		var cancel context.CancelFunc
		if ctx, cancel, err = bounded(ctx, &r.WaitMs); err != nil {
			return got, err
		}
		defer cancel()
		read = agent.AwaitOutput
	}
	var room pageRoom
	for len(got.Pieces) < limit {
		step := min(outputStep, limit-len(got.Pieces))
		pieces, err := read(ctx, got.Cursor, step)
		if err != nil {
			return got, err
		}
		for _, p := range pieces {
			if full, err := room.isFull(p); full || err != nil {
				return got, err
			}
			got.Pieces, got.Cursor = append(got.Pieces, p), p.Cursor
		}
		if len(pieces) < step {
			return got, nil
		}
		read = agent.Output // there is something: no more is waited for
	}
	return got, nil
}

// outputStep is how many pieces are read at once.
const outputStep = 32

func outputEnd(ctx context.Context, agent *actors.Agent, r ReadOutputRequest) (ReadOutputResponse, error) {
	got := ReadOutputResponse{Pieces: []view.OutputPiece{}}
	if *r.Tail < 0 || r.After != 0 || r.WaitMs != 0 || r.Limit != 0 {
		return got, parley.Refuse(parley.InvalidArgument, "tail is a number of pieces, and goes without after, limit and waitMs")
	}
	for most, step := min(*r.Tail, MaxPieces), outputStep; ; step *= 2 {
		pieces, cursor, err := agent.OutputEnd(ctx, min(most, step))
		if err != nil {
			return got, err
		}
		fitting, err := newestFitting(pieces)
		if err != nil {
			return got, err
		}
		got.Pieces, got.Cursor = fitting, cursor
		if len(fitting) < len(pieces) || len(pieces) < step || step >= most {
			return got, nil
		}
	}
}
