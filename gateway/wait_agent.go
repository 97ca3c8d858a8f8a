package gateway

import (
	"context"
	"encoding/json"

	"parley"
	"parley/actors"
)

// Finished is how an agent was when it had nothing more to do, or with the status timeout when the wait was over.
type Finished struct {
	Status string          `json:"status"` // idle, error, permission, timeout
	Final  json.RawMessage `json:"final"`  // its snapshot
}

// WaitForFinish waits until an agent has nothing more to do. It goes on through restarts of the node.
func (c *Client) WaitForFinish(ctx context.Context, as Acting, agent string, w Waiting) (Finished, error) {
	turns := newTurns(w)
	got := Finished{}
	for {
		waitMs, err := turns.next()
		if parley.CodeOf(err) == parley.Timeout && got.Status != "" {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		err = c.call(ctx, "wait_for_finish", WaitForFinishRequest{Acting: as, AgentID: agent, TimeoutMs: waitMs}, &got)
		if err == nil && got.Status != actors.FinishTimeout {
			return got, nil
		}
		if err := turns.took(ctx, err); err != nil {
			return got, err
		}
		if agent, err = got.agent(agent); err != nil {
			return got, err
		}
	}
}

// agent gives the ID of the agent that was waited for: what it was called by may be another's by the next turn.
func (f Finished) agent(called string) (string, error) {
	if f.Status == "" {
		return called, nil
	}
	var final struct{ ID string }
	if err := json.Unmarshal(f.Final, &final); err != nil || final.ID == "" {
		return "", parley.Refuse(parley.Internal, "the node's answer to wait_for_finish cannot be read")
	}
	return final.ID, nil
}

// FollowOutput gives what an agent's program puts out after a cursor to each, as it comes, until ctx ends or each
// fails. It goes on through restarts of the node.
func (c *Client) FollowOutput(ctx context.Context, as Acting, agent string, after uint64, each func(ReadOutputResponse) error) error {
	turns := newTurns(Waiting{Known: true})
	for {
		waitMs, err := turns.next()
		if err != nil {
			return err
		}
		var page ReadOutputResponse
		err = c.call(ctx, "read_output", ReadOutputRequest{Acting: as, AgentID: agent, After: after, WaitMs: waitMs}, &page)
		if err := turns.took(ctx, err); err != nil {
			return err
		}
		if err != nil || len(page.Pieces) == 0 {
			continue
		}
		if err := each(page); err != nil {
			return err
		}
		after = page.Cursor
	}
}
