package web

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/people"
	"parley/mailbox"
)

// maxTrial is how long a page waits for rules to be tried on the past. It is drawn without that then: the index is behind, as after a
// start.
const maxTrial = 250 * time.Millisecond

// tryRules says beside each rule that a call offers, open or decided, what it would have decided of the agent's past calls. An open call of
// high risk offers none.
func (p *page) tryRules(c *card) {
	a := c.Approval
	if len(c.Offers) == 0 && (a.Decision == nil || !a.MayRule()) {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx(), maxTrial)
	defer cancel()
	t, err := api.TryRules.Do(ctx, p, api.TryRulesRequest{Acting: api.Acting{As: c.As}, FormRef: api.RefTo(c.MessageID.String()), Deny: c.Decision.Denied})
	if err != nil || t.Behind > 0 {
		return
	}
	of := func(id string) (r view.TriedRule) {
		if i := slices.IndexFunc(t.Rules, func(r view.TriedRule) bool { return r.Offer == id }); i >= 0 {
			return t.Rules[i]
		}
		return r
	}
	for i := range c.Offers {
		if r := of(c.Offers[i].Value); r.Covered > 0 {
			c.Offers[i].Tried = &tried{Covered: r.Covered, Of: t.Calls, Against: r.Against, Calls: triedCalls(p, ctx, c, r)}
		}
	}
	said := func(id string) string { return triedWords(of(id)) }
	rules := c.Offers
	if a.Rule != nil { // the buttons repeat the choice without it
		rules = a.Rule.Choices
	}
	for i := range rules {
		rules[i].Past = said(rules[i].Value)
	}
	if len(rules) > 0 {
		return
	}
	only := said(mailbox.OffersOf(&a.Permission)[0].ID)
	for i := range a.Decision.Choices {
		if c := &a.Decision.Choices[i]; only != "" && c.Value == mailbox.Always {
			c.Description += " — " + only
		}
	}
}

// tried is what a rule would have decided of the agent's past calls.
type tried struct {
	Covered, Of int
	Against     int         // decisions of people that were others
	Calls       []triedCall // of these, the newest
}

// triedCall is a past call that a rule would have decided otherwise.
type triedCall struct {
	What   string
	By     string // who decided
	Denied bool
	At     capabilities.Time
	Reason string
}

// IsOwn reports whether the decisions that are shown are all the reader's.
func (t tried) IsOwn() bool {
	return !slices.ContainsFunc(t.Calls, func(c triedCall) bool { return c.By != people.You })
}

// triedCalls returns the calls that a rule would have decided otherwise, with who decided them and why. Those that cannot be read are left out.
func triedCalls(p *page, ctx context.Context, c *card, r view.TriedRule) (all []triedCall) {
	if len(r.Examples) == 0 {
		return nil
	}
	name, ok := p.site.NameOf(ctx, p.principal, c.From)
	if !ok {
		return nil
	}
	agent, err := p.agentOf(name)
	if err != nil {
		return nil
	}
	for _, e := range r.Examples {
		m, err := agent.Message(ctx, capabilities.FormNumber(e.Number))
		if err != nil || m.Outcome == nil {
			continue
		}
		p.name(&m)
		decided := decisionOf(m)
		all = append(all, triedCall{
			What: newRow(p.base, local{}, m, p.site.readings.Of(&m)).Line, By: partyOf(m.Outcome.By, m.Outcome.ByName).Name, Denied: decided.Denied, At: m.Outcome.At, Reason: decided.Reason,
		})
	}
	return all
}

// triedWords says what was decided of the past calls that a rule covers, in a few words; "" if nobody decided one. They hold for the rule that
// allows and for the one that denies.
func triedWords(r view.TriedRule) string {
	switch {
	case r.Allowed+r.Denied == 0:
		return ""
	case r.Covered == 1:
		return fmt.Sprintf("1 past call: %d allowed, %d denied", r.Allowed, r.Denied)
	}
	return fmt.Sprintf("%d past calls: %d allowed, %d denied", r.Covered, r.Allowed, r.Denied)
}

// proposal is a rule that is proposed on the page of an agent.
type proposal struct {
	view.TriedRule
	Past string // what was decided of the calls that it covers
}

// proposed returns the rules that follow from what was decided of the agent's calls. It returns none where that takes too long.
func (p *agentRequest) proposed() (all []proposal) {
	ctx, cancel := context.WithTimeout(p.ctx(), maxTrial)
	defer cancel()
	if t, err := api.ProposeRules.Do(ctx, p, api.ProposeRulesRequest{Agent: p.data.Name}); err == nil {
		for _, r := range t.Rules {
			all = append(all, proposal{r, triedWords(r)})
		}
	}
	return all
}

// proposalOf returns the request that makes a proposed rule which the page's form names.
func proposalOf(agent string, sent url.Values) (r api.MakeRuleRequest, err error) {
	r.Agent, r.Proposal = agent, sent.Get("add")
	if after := sent.Get("until/" + r.Proposal); after != "" {
		r.Until, err = endAfter(after)
	}
	return r, err
}
