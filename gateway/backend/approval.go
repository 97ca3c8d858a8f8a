package backend

import (
	"context"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
)

func approve(ctx context.Context, a *actors.Agent, r api.ApproveRequest) (view.Permission, error) {
	if err := checkApproval(r); err != nil {
		return view.Permission{}, err
	}
	return a.Approve(ctx, approvalOf(r))
}

func checkApproval(r api.ApproveRequest) error {
	if len(r.Input) == 0 {
		return parley.Refuse(parley.InvalidArgument, "an approval needs the input of the call")
	}
	return nil
}

func approvalOf(r api.ApproveRequest) actors.Approval {
	return actors.Approval{
		To: r.Recipient, Tool: r.Tool, Input: string(r.Input), Folder: r.Folder, Key: r.Key, Deadline: r.Deadline, Attended: r.Attended,
	}
}

func listRules(ctx context.Context, b *Backend, p *principal, r api.ListRulesRequest) (api.ListRulesResponse, error) {
	_, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return api.ListRulesResponse{}, err
	}
	all, err := agent.Rules().List(ctx)
	if err != nil {
		return api.ListRulesResponse{}, err
	}
	rules, paged, err := api.PageOf(all, r.Paging, func(r view.Rule) string { return r.Rule.String() })
	return api.ListRulesResponse{Rules: rules, Paged: paged}, err
}

func removeRule(ctx context.Context, b *Backend, p *principal, r api.RemoveRuleRequest) (api.Done, error) {
	by, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, by.Rules().Remove(ctx, agent, r.Rule)
}

func limitRule(ctx context.Context, b *Backend, p *principal, r api.LimitRuleRequest) (api.Done, error) {
	by, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return api.Done{}, err
	}
	if r.Rule.IsZero() {
		rules, err := agent.Rules().List(ctx)
		if err != nil {
			return api.Done{}, err
		}
		for _, rule := range rules {
			if !r.Form.IsZero() && rule.Form == r.Form {
				r.Rule = rule.Rule
			}
		}
	}
	return api.Done{}, by.Rules().Limit(ctx, agent, r.Rule, r.Until)
}

// ruled returns the agent that asks about rules, and the agent whose rules they are: itself, or one that it is the host
// of.
func (b *Backend) ruled(ctx context.Context, p *principal, as api.Acting, which string) (by, agent *actors.Agent, err error) {
	if by, err = b.agent(ctx, p, as.Actor()); err != nil || which == "" {
		return by, by, err
	}
	if agent, err = by.Agents().Find(ctx, which); err != nil {
		return nil, nil, err
	}
	return by, agent, by.Agents().MayLookInto(ctx, agent)
}
