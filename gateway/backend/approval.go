package backend

import (
	"context"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/mailbox"
)

func approve(ctx context.Context, b *Backend, p *principal, r api.ApproveRequest) (view.Permitted, error) {
	a, ask, err := approvalFor(ctx, b, p, r)
	if err != nil {
		return view.Permitted{}, err
	}
	if r.Attended {
		return actors.ApproveAttended(ctx, a, ask)
	}
	return a.Approve(ctx, ask)
}

// approvalFor returns the approval of a request, and the agent that asks for it: of a session its address, which has the rules.
func approvalFor(ctx context.Context, b *Backend, p *principal, r api.ApproveRequest) (a *actors.Agent, ask mailbox.RequestApproval, err error) {
	if a, err = b.agent(ctx, p, r.As); err != nil {
		return a, ask, err
	}
	if err = checkApproval(r); err != nil {
		return a, ask, err
	}
	ask = approvalOf(r.Approval)
	session := p.inSession()
	if session == nil && p.local && b.sessions.Has(a.ID()) { // the host names it
		session = a
	}
	if session == nil || session.ID() != a.ID() && p.agent.ID() != a.ID() {
		return a, ask, nil
	}
	status, err := session.Status(ctx)
	ask.Session = parley.Shown(status.Title, maxSession)
	return actors.AgentOf(b.node, status.Of), ask, err
}

// maxSession bounds the title of a session in an approval, in bytes.
const maxSession = 120

func checkApproval(r api.ApproveRequest) error {
	if len(r.Input) == 0 {
		return parley.Refuse(parley.InvalidArgument, "an approval needs the input of the call")
	}
	return nil
}

func approvalOf(r parley.Approval) mailbox.RequestApproval {
	return mailbox.RequestApproval{
		Permission: parley.Permission{Tool: r.Tool, Input: string(r.Input), Folder: r.Folder, Reason: r.Reason, Part: r.Part},
		To:         r.To, Key: r.Key, Deadline: r.Deadline, Editable: r.Editable,
		Remind: r.Remind, Escalate: r.Escalate, Need: r.Need, Veto: r.Veto,
	}
}

// maxReasons bounds the texts of the decisions of one call, in bytes.
const maxReasons = 256 << 10

func decideMany(ctx context.Context, a *actors.Agent, r api.DecideManyRequest) (api.DecideManyResponse, error) {
	var resp api.DecideManyResponse
	switch {
	case len(r.Decisions) == 0:
		return resp, parley.Refuse(parley.InvalidArgument, "no decision was given")
	case len(r.Decisions) > api.MaxDecisions:
		return resp, parley.Refuse(parley.TooLarge, "%d decisions are over the limit of %d", len(r.Decisions), api.MaxDecisions).WithHint("decide in several calls")
	case len(r.Key) > maxKey:
		return resp, parley.Refuse(parley.TooLarge, "a key of %d bytes is over the limit of %d", len(r.Key), maxKey)
	}
	size := 0
	for i, d := range r.Decisions {
		size += len(d.Reason) + len(d.Rule)
		if d.Digest == "" {
			return resp, parley.Refuse(parley.InvalidArgument, "decision %d has no digest of the call that was shown", i)
		}
	}
	if size > maxReasons {
		return resp, parley.Refuse(parley.TooLarge, "reasons and rules of %d bytes are over the limit of %d", size, maxReasons)
	}
	resp.Results = make([]api.Decided, len(r.Decisions))
	for i, d := range actors.VotingAgain(a, r.SecondVote).Decide(ctx, r.Key, r.Decisions) {
		resp.Results[i].Form = r.Decisions[i].Form
		if d.Err != nil {
			resp.Results[i].Error = api.Shown(d.Err)
		} else {
			resp.Results[i].Outcome = &d.Outcome
		}
	}
	return resp, nil
}

// maxKey bounds the key of decisions, in bytes.
const maxKey = 255

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
