package backend

import (
	"context"
	"slices"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/call"
	"parley/gateway/call/risk"
	"parley/mailbox"
)

func approve(ctx context.Context, b *Backend, p *principal, r api.ApproveRequest) (view.Permitted, error) {
	a, caller, ask, err := approvalFor(ctx, b, p, r)
	if err != nil {
		return view.Permitted{}, err
	}
	if denied, err := deniedByLease(ctx, caller, r.Approval); denied.Decided || err != nil {
		return denied, err
	}
	if r.Attended {
		return actors.ApproveAttended(ctx, a, ask)
	}
	return a.Approve(ctx, ask)
}

// approvalFor returns the approval of a request, the agent that asks for it, which is of a session its address with the rules, and the agent that
// makes the call: the session.
func approvalFor(ctx context.Context, b *Backend, p *principal, r api.ApproveRequest) (a, caller *actors.Agent, ask mailbox.RequestApproval, err error) {
	if a, err = b.agent(ctx, p, r.As); err != nil {
		return a, a, ask, err
	}
	if err = checkApproval(r); err != nil {
		return a, a, ask, err
	}
	ask = approvalOf(r.Approval)
	session := p.inSession()
	if session == nil && p.local && b.sessions.Has(a.ID()) { // the host names it
		session = a
	}
	if session == nil || session.ID() != a.ID() && p.agent.ID() != a.ID() {
		return a, a, ask, nil
	}
	status, err := session.Status(ctx)
	ask.Session, ask.SessionAgent = parley.Shown(status.Title, maxSession), session.ID()
	return actors.AgentOf(b.node, status.Of), session, ask, err
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
		Permission: parley.Permission{Tool: r.Tool, Input: string(r.Input), Folder: r.Folder, Reason: r.Reason, Part: r.Part, Passkey: r.Passkey},
		To:         r.To, Key: r.Key, Deadline: r.Deadline, Editable: r.Editable,
		Remind: r.Remind, Escalate: r.Escalate, Need: r.Need, Veto: r.Veto, Origin: r.Origin,
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

func makeRule(ctx context.Context, b *Backend, p *principal, r api.MakeRuleRequest) (view.TriedRule, error) {
	by, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return view.TriedRule{}, err
	}
	if r.Proposal != "" && (!r.Form.IsZero() || r.Offer != "" || r.Never) {
		return view.TriedRule{}, parley.Refuse(parley.InvalidArgument, "a rule is made of a form or of a proposal, which says itself what it does")
	}
	if !r.Never {
		sent := r.Passkey
		r.Passkey = nil
		if err := b.signedLeave(ctx, p, by, agent, string(api.MakeRule), r, sent); err != nil {
			return view.TriedRule{}, err
		}
	}
	if r.Proposal != "" {
		return by.Rules().MakeProposed(ctx, agent, r.Proposal, r.Until, isRisky)
	}
	return by.Rules().Make(ctx, agent, r.Form, r.Offer, !r.Never, r.Until, isRisky)
}

func removeRule(ctx context.Context, b *Backend, p *principal, r api.RemoveRuleRequest) (api.Done, error) {
	by, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, by.Rules().Remove(ctx, agent, r.Rule)
}

func pauseRule(ctx context.Context, b *Backend, p *principal, r api.PauseRuleRequest) (api.Done, error) {
	by, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return api.Done{}, err
	}
	if r.Resume {
		sent := r.Passkey
		r.Passkey = nil
		allows := func(rule view.Rule) bool { return rule.Rule == r.Rule && rule.Allow && rule.Paused }
		if err := b.signedRule(ctx, p, by, agent, allows, string(api.PauseRule), r, sent); err != nil {
			return api.Done{}, err
		}
	}
	return api.Done{}, by.Rules().Pause(ctx, agent, r.Rule, !r.Resume)
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
	sent := r.Passkey
	r.Passkey = nil
	longer := func(rule view.Rule) bool {
		return rule.Rule == r.Rule && rule.Allow && rule.Until != 0 && rule.Until < r.Until
	}
	if err := b.signedRule(ctx, p, by, agent, longer, string(api.LimitRule), r, sent); err != nil {
		return api.Done{}, err
	}
	return api.Done{}, by.Rules().Limit(ctx, agent, r.Rule, r.Until)
}

// signedRule is signedLeave for a change of a rule of an agent, if it is one that loosens.
func (b *Backend) signedRule(ctx context.Context, p *principal, by, agent *actors.Agent, loosens func(view.Rule) bool, operation string, request any, sent *parley.PasskeySignature) error {
	rules, err := agent.Rules().List(ctx)
	if err != nil || !slices.ContainsFunc(rules, loosens) {
		return err
	}
	return b.signedLeave(ctx, p, by, agent, operation, request, sent)
}

func tryRules(ctx context.Context, b *Backend, p *principal, r api.TryRulesRequest) (view.Trial, error) {
	if r.Number != "" || r.ID != "" {
		return tryOffers(ctx, b, p, r)
	}
	_, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return view.Trial{}, err
	}
	all, err := agent.Rules().List(ctx)
	if err != nil {
		return view.Trial{}, err
	}
	var ids []capabilities.ID
	var tried []actors.TriedRule
	for _, rule := range all {
		if len(r.Rules) == 0 || slices.Contains(r.Rules, rule.Rule) {
			ids, tried = append(ids, rule.Rule), append(tried, actors.TriedRule{Tool: rule.Tool, Covers: rule.Covers, Allow: rule.Allow})
		}
	}
	for _, id := range r.Rules {
		if !slices.Contains(ids, id) {
			return view.Trial{}, parley.Refuse(parley.NotPermitted, "the agent has no rule %s", id).WithHint("parley agent rules ls lists them")
		}
	}
	t, err := agent.Rules().Try(ctx, tried, nil)
	if err == nil {
		for i := range t.Rules {
			t.Rules[i].Rule = ids[i]
		}
	}
	return t, err
}

func proposeRules(ctx context.Context, b *Backend, p *principal, r api.ProposeRulesRequest) (view.Trial, error) {
	_, agent, err := b.ruled(ctx, p, r.Acting, r.Agent)
	if err != nil {
		return view.Trial{}, err
	}
	return agent.Rules().Propose(ctx, isRisky)
}

// isRisky reports whether a call is of high risk: it is allowed one by one.
func isRisky(p *parley.Permission) bool { return call.Read(p).Risks.Level() == risk.High }

// riskOf returns what may go wrong if a call is made.
func riskOf(p *parley.Permission) mailbox.Risk {
	level := map[risk.Level]mailbox.RiskLevel{risk.None: mailbox.NoRisk, risk.Notable: mailbox.SomeRisk}
	r := mailbox.Risk{Level: mailbox.HighRisk, Secret: hasSecret(p)}
	if known, ok := level[call.Read(p).Risks.Level()]; ok {
		r.Level = known
	}
	return r
}

// tryOffers tries the rules that an approval offers on the past of who asked it.
func tryOffers(ctx context.Context, b *Backend, p *principal, r api.TryRulesRequest) (view.Trial, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Trial{}, err
	}
	if r.Agent != "" || len(r.Rules) > 0 {
		return view.Trial{}, parley.Refuse(parley.InvalidArgument, "an approval or rules of an agent can be tried, not both")
	}
	by, err := b.agent(ctx, p, r.As)
	if err != nil {
		return view.Trial{}, err
	}
	m, offers, err := by.Rules().OffersOf(ctx, ref)
	if err != nil {
		return view.Trial{}, err
	}
	if m.From.Node != by.ID().Node {
		return view.Trial{}, parley.Refuse(parley.NotPermitted, "the past of %s is on another node", m.From)
	}
	agent, open := actors.AgentOf(b.node, m.From), m.Permission
	if m.Outcome != nil {
		open = nil
	}
	if err := by.Agents().MayLookInto(ctx, agent); err != nil {
		return view.Trial{}, err
	}
	var ids []string
	var tried []actors.TriedRule
	for _, o := range offers {
		if len(r.Offers) == 0 || slices.Contains(r.Offers, o.ID) {
			ids, tried = append(ids, o.ID), append(tried, actors.TriedRule{Tool: m.Permission.Tool, Covers: o.Rule, Allow: !r.Deny})
		}
	}
	for _, id := range r.Offers {
		if !slices.Contains(ids, id) {
			return view.Trial{}, parley.Refuse(parley.InvalidArgument, "the approval does not offer the rule %s", parley.Quoted(id, 100)).WithHint("parley permit show lists those that it offers")
		}
	}
	t, err := agent.Rules().Try(ctx, tried, open)
	if err == nil {
		for i := range t.Rules {
			t.Rules[i].Offer = ids[i]
		}
	}
	return t, err
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
