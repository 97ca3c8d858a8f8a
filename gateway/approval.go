package gateway

import (
	"context"
	"encoding/json"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
)

// ApproveRequest asks whether a tool may be called with an input, any JSON value.
type ApproveRequest struct {
	Acting
	Recipient string            `json:"recipient,omitempty"` // default: the agent's host
	Tool      string            `json:"tool"`
	Input     json.RawMessage   `json:"input"`
	Folder    string            `json:"folder,omitempty"` // where the call is made: an absolute path; wider rules need it
	Key       string            `json:"key,omitempty"`
	Deadline  capabilities.Time `json:"deadline,omitzero"`
	Attended  bool              `json:"attended,omitempty"` // ask only where somebody follows the mail of who is asked
}

func approve(ctx context.Context, a *actors.Agent, r ApproveRequest) (view.Permission, error) {
	if len(r.Input) == 0 {
		return view.Permission{}, parley.Refuse(parley.InvalidArgument, "an approval needs the input of the call")
	}
	return a.Approve(ctx, actors.Approval{
		To: r.Recipient, Tool: r.Tool, Input: string(r.Input), Folder: r.Folder, Key: r.Key, Deadline: r.Deadline, Attended: r.Attended,
	})
}

// ListRulesRequest asks for the standing rules of the agent, or of one that it is the host of.
type ListRulesRequest struct {
	Acting
	Paging
	Agent string `json:"agent,omitempty"`
}

// ListRulesResponse has them, oldest first.
type ListRulesResponse struct {
	Rules []view.Rule `json:"rules"`
	Paged
}

func listRules(ctx context.Context, s *Server, r ListRulesRequest) (ListRulesResponse, error) {
	_, agent, err := s.ruled(ctx, r.Acting, r.Agent)
	if err != nil {
		return ListRulesResponse{}, err
	}
	all, err := agent.Rules(ctx)
	if err != nil {
		return ListRulesResponse{}, err
	}
	rules, paged, err := pageOf(all, r.Paging, func(r view.Rule) string { return r.Rule.String() })
	return ListRulesResponse{rules, paged}, err
}

// RemoveRuleRequest ends a standing rule of an agent that the caller is the host of.
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

// LimitRuleRequest has a standing rule end at a time: Rule, or that which the answer to an approval has made.
type LimitRuleRequest struct {
	Acting
	Agent string            `json:"agent"`
	Rule  capabilities.ID   `json:"rule,omitzero"`
	Form  capabilities.ID   `json:"form,omitzero"`
	Until capabilities.Time `json:"until"`
}

func limitRule(ctx context.Context, s *Server, r LimitRuleRequest) (Done, error) {
	by, agent, err := s.ruled(ctx, r.Acting, r.Agent)
	if err != nil {
		return Done{}, err
	}
	if r.Rule.IsZero() {
		rules, err := agent.Rules(ctx)
		if err != nil {
			return Done{}, err
		}
		for _, rule := range rules {
			if !r.Form.IsZero() && rule.Form == r.Form {
				r.Rule = rule.Rule
			}
		}
	}
	return Done{}, by.LimitRule(ctx, agent, r.Rule, r.Until)
}

// ruled gives who asks about rules, and the agent whose rules they are: itself, or one that it is the host of.
func (s *Server) ruled(ctx context.Context, as Acting, which string) (by, agent *actors.Agent, err error) {
	if by, err = s.agent(ctx, as.actor()); err != nil || which == "" {
		return by, by, err
	}
	if agent, err = by.Find(ctx, which); err != nil {
		return nil, nil, err
	}
	return by, agent, by.MayLookInto(ctx, agent)
}
