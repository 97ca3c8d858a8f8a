package client

import (
	"context"

	"parley/actors/view"
	"parley/gateway/api"
)

// Attention is what an agent has set of how mail reaches the sessions of its coding agent.
type Attention = view.Attention

// AttentionChange says what SetAttention changes. What is nil stays.
type AttentionChange struct {
	AllSessions   *bool   // each session is offered the agent's mail, and not only the one that was active last
	Quiet         *string // hours of a day as 22:00-07:00, always or never
	Zone          *string // the time zone of Quiet; the node's without it
	Interruptions *string // the least priority that comes in the middle of a turn, or none
}

// AttentionOf returns how mail reaches the sessions of the coding agent that a client acts for.
func AttentionOf(ctx context.Context, c *Client) (Attention, error) {
	return get[Attention](ctx, c, "get_attention", api.GetAttentionRequest{})
}

// SetAttention changes how mail reaches them.
func SetAttention(ctx context.Context, c *Client, change AttentionChange) (Attention, error) {
	return get[Attention](ctx, c, "set_attention", api.SetAttentionRequest{
		AllSessions: change.AllSessions, Quiet: change.Quiet, Zone: change.Zone, Interruptions: change.Interruptions,
	})
}
