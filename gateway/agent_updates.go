package gateway

import (
	"context"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

// SubscribeAgentsFrame follows the agents that the caller sees and a filter picks. The first updates are of all there
// are, so that a subscription needs no cursor. With a Mark a frame follows those: who comes back knows then which of the
// agents that it knew are gone.
type SubscribeAgentsFrame struct {
	api.Acting
	SubscriptionID string `json:"subscriptionId"`
	Mark           bool   `json:"mark,omitempty"`
	Filter         struct {
		view.AgentFilter
		AgentID string `json:"agentId,omitempty"` // only this one
	} `json:"filter,omitzero"`
}

// AgentUpdateFrame is an agent as it is now. One that the filter no longer picks is removed.
type AgentUpdateFrame struct {
	Type           string           `json:"type"` // agent_update
	SubscriptionID string           `json:"subscriptionId"`
	Kind           string           `json:"kind"` // upsert, remove
	Agent          view.AgentStatus `json:"agent"`
}

// AgentsToldFrame is the mark: all agents that there are have been told.
type AgentsToldFrame struct {
	Type           string `json:"type"` // agents_told
	SubscriptionID string `json:"subscriptionId"`
}

// agentsFrame opens a subscription to agents.
func agentsFrame(c *wsSession, h *head, text []byte) error {
	var f SubscribeAgentsFrame
	if err := decode(text, &f); err != nil {
		return err
	}
	return c.subscribe(h, f.SubscriptionID, func(ctx context.Context) error {
		agent, err := c.server.agent(ctx, f.As)
		if err != nil {
			return err
		}
		var only capabilities.ID
		if f.Filter.AgentID != "" {
			one, err := agent.Find(ctx, f.Filter.AgentID)
			if err != nil {
				return err
			}
			only = one.ID()
		}
		var mark func()
		if f.Mark {
			mark = func() { c.tell(AgentsToldFrame{Type: "agents_told", SubscriptionID: f.SubscriptionID}) }
		}
		return agent.FollowAgents(ctx, f.Filter.AgentFilter, only, func(s view.AgentStatus, gone bool) error {
			if err := c.check(ctx); err != nil {
				return err
			}
			kind := "upsert"
			if gone {
				kind = "remove"
			}
			c.tell(AgentUpdateFrame{Type: "agent_update", SubscriptionID: f.SubscriptionID, Kind: kind, Agent: s})
			return ctx.Err()
		}, mark)
	})
}
