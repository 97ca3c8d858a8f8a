package client

import (
	"context"
	"iter"
	"time"

	"parley/gateway/api"
)

// Output is a piece of the output of an agent's program. It may begin and end within a line.
type Output struct {
	Cursor  uint64    `json:"cursor"` // where to go on after it; it grows from each piece of the agent's to the next
	Run     ID        `json:"run"`
	Message ID        `json:"message,omitempty"` // what the run was for; "" if for none
	Stream  string    `json:"stream"`            // output, errors, or notice: a JSON object of what the program reports of its doing
	At      time.Time `json:"at"`
	Text    string    `json:"text"`
}

// outputPage is a page of output.
type outputPage struct {
	Pieces []Output `json:"pieces"`
	Cursor uint64   `json:"cursor"`
}

// Output yields the output of an agent's program after a cursor, oldest first. Cursor 0 is the beginning of what the node keeps.
// An error comes last. Output is for the agent itself, its host and its maker.
func (c *Client) Output(ctx context.Context, agent string, after uint64) iter.Seq2[Output, error] {
	return c.output(ctx, agent, after, false)
}

// FollowOutput is Output that continues with new output, also through restarts of the node, until ctx ends. It misses nothing that
// the node keeps, and yields nothing twice. From the Cursor of a piece it yields what came after the piece, also in another process.
func (c *Client) FollowOutput(ctx context.Context, agent string, after uint64) iter.Seq2[Output, error] {
	return c.output(ctx, agent, after, true)
}

func (c *Client) output(ctx context.Context, agent string, after uint64, follow bool) iter.Seq2[Output, error] {
	return func(yield func(Output, error) bool) {
		for at := after; ; {
			r := api.ReadOutputRequest{AgentID: agent, After: at}
			if follow {
				r.WaitMs = turn(ctx, turnTime)
			}
			page, err := get[outputPage](ctx, c, "read_output", r)
			if err != nil {
				yield(Output{}, err)
				return
			}
			for _, piece := range page.Pieces {
				if !yield(piece, nil) {
					return
				}
			}
			if at = page.Cursor; len(page.Pieces) == 0 && !follow {
				return
			}
		}
	}
}

// OutputTail returns the newest pieces of an agent's output, oldest first and at most 500. It also returns the cursor
// after them, from which FollowOutput continues. For 0 pieces it returns the cursor alone.
func (c *Client) OutputTail(ctx context.Context, agent string, pieces int) ([]Output, uint64, error) {
	page, err := get[outputPage](ctx, c, "read_output", api.ReadOutputRequest{AgentID: agent, Tail: &pieces})
	return page.Pieces, page.Cursor, err
}
