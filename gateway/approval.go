package gateway

import (
	"context"
	"encoding/json"

	"parley"
	"parley/actors"
	"parley/capabilities"
)

// ApproveRequest asks whether a tool may be called with an input, any JSON value.
type ApproveRequest struct {
	Acting
	Recipient string            `json:"recipient,omitempty"` // default: the agent's host
	Tool      string            `json:"tool"`
	Input     json.RawMessage   `json:"input"`
	Key       string            `json:"key,omitempty"`
	Deadline  capabilities.Time `json:"deadline,omitzero"`
	Attended  bool              `json:"attended,omitempty"` // ask only where somebody follows the mail of who is asked
}

func approve(ctx context.Context, a *actors.Agent, r ApproveRequest) (actors.Permission, error) {
	if len(r.Input) == 0 {
		return actors.Permission{}, parley.Refuse(parley.InvalidArgument, "an approval needs the input of the call")
	}
	return a.Approve(ctx, actors.Approval{
		To: r.Recipient, Tool: r.Tool, Input: string(r.Input), Key: r.Key, Deadline: r.Deadline, Attended: r.Attended,
	})
}

// ListRulesRequest asks for the standing rules of the agent, or of one that it holds under a name.
type ListRulesRequest struct {
	Acting
	Agent string `json:"agent,omitempty"`
}

// ListRulesResponse has them, oldest first.
type ListRulesResponse struct {
	Rules []actors.Rule `json:"rules"`
}

func listRules(ctx context.Context, s *Server, r ListRulesRequest) (ListRulesResponse, error) {
	_, agent, err := s.ruled(ctx, r.Acting, r.Agent)
	if err != nil {
		return ListRulesResponse{}, err
	}
	rules, err := agent.Rules(ctx)
	return ListRulesResponse{Rules: rules}, err
}

// RemoveRuleRequest ends a standing rule of an agent that the host holds under a name.
type RemoveRuleRequest struct {
	Acting
	Agent string          `json:"agent"`
	Rule  capabilities.ID `json:"rule"`
}

func removeRule(ctx context.Context, s *Server, r RemoveRuleRequest) (Done, error) {
	by, agent, err := s.ruled(ctx, r.Acting, r.Agent)
	if err != nil {
		return Done{}, err
	}
	return Done{}, by.RemoveRule(ctx, agent, r.Rule)
}

// ruled gives who asks about rules, and the agent whose rules they are.
func (s *Server) ruled(ctx context.Context, as Acting, name string) (by, agent *actors.Agent, err error) {
	if by, err = s.agent(ctx, as.actor()); err != nil {
		return nil, nil, err
	}
	if name == "" {
		return by, by, nil
	}
	if !by.IsHost() {
		return nil, nil, parley.Refuse(parley.NotPermitted, "the rules of others are for the node's host")
	}
	agent, err = s.node.ActAs(ctx, name)
	return by, agent, err
}
