package actors

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/rule"
	"parley/persistence/projection"
)

// Bounds of proposals.
const (
	minAlike      = 5    // decisions about the calls of a rule that is proposed, all alike
	maxProposed   = 10   // rules
	maxCandidates = 2000 // calls of a tool from which rules are made: the newest
	maxTools      = 64   // of which calls are looked at
)

// Propose proposes rules for calls that whoever was asked has always decided alike, five times or more: the widest coverage first, and of
// those that cover the same calls the narrowest. It makes none. Isrisky reports calls about which no rule is ever proposed, nor one that
// covers them.
func (rs Rules) Propose(ctx context.Context, isRisky func(*parley.Permission) bool) (view.Trial, error) {
	t, _, err := rs.propose(ctx, isRisky)
	return t, err
}

// propose returns the rules that are proposed, as they are shown and as they are made.
func (rs Rules) propose(ctx context.Context, isRisky func(*parley.Permission) bool) (t view.Trial, proposed []TriedRule, err error) {
	standing, err := rs.List(ctx)
	if err != nil {
		return t, nil, err
	}
	mail := rs.agent.Mail()
	behind, err := mail.addMissing(ctx)
	if err != nil {
		return t, nil, err
	}
	x, err := rs.agent.node.searches.opened(ctx)
	if err != nil {
		return t, nil, parley.Refuse(parley.ReadOnly, "the index for searching cannot be opened: %v", err)
	}
	tools, err := x.Tools(ctx, rs.agent.id, maxTools)
	if err != nil {
		return t, nil, err
	}
	t.Rules, t.Behind = []view.TriedRule{}, behind
	for _, tool := range tools {
		var some []TriedRule
		err := mail.InTurn(ctx, func() error {
			calls, err := x.Calls(ctx, rs.agent.id, tool, 0, maxCandidates)
			some = candidates(calls, ofTool(standing, tool), isRisky)
			return err
		})
		if err != nil {
			return t, nil, err
		}
		if len(some) == 0 {
			continue
		}
		risky := make([]bool, len(some))
		tried, err := tryAll(some, nil, isRisky, risky, func(tool string, before int64, try func([]projection.Call)) error {
			return mail.InTurn(ctx, func() error {
				calls, err := x.Calls(ctx, rs.agent.id, tool, before, triedAtOnce)
				try(calls)
				return err
			})
		})
		if err != nil {
			return t, nil, err
		}
		t.Calls, t.Long, t.More = t.Calls+tried.Calls, t.Long+tried.Long, t.More || tried.More
		for i, r := range tried.Rules {
			if unseen := tried.More || tried.Long > 0 && strings.HasPrefix(string(some[i].Covers.Kind), string(events.CoversFile)); unseen {
				continue // it might cover what was not looked at; rules for commands cover no long input
			}
			if r.Against == 0 && r.Allowed+r.Denied >= minAlike && !risky[i] {
				r.Proposal = proposalID(&some[i])
				t.Rules, proposed = append(t.Rules, r), append(proposed, some[i])
			}
		}
	}
	t.Rules, proposed = best(t.Rules, proposed)
	return t, proposed, nil
}

// ofTool returns the standing rules for a tool.
func ofTool(all []view.Rule, tool string) (some []rule.Standing) {
	for i := range all {
		if all[i].Tool == tool {
			some = append(some, rule.Standing{Covers: &all[i].Covers, Allow: all[i].Allow})
		}
	}
	return some
}

// proposalID returns the ID of a rule that is proposed.
func proposalID(r *TriedRule) string {
	id := "always-"
	if !r.Allow {
		id = "never-"
	}
	return id + rule.ID(&r.Covers)
}

// candidates returns the rules that calls of a tool offer which were decided alike, and which no standing rule decides: of calls that were
// allowed all that they offer, of those that were denied that for the very call. It returns those that most decisions speak for.
func candidates(calls []projection.Call, standing []rule.Standing, isRisky func(*parley.Permission) bool) []TriedRule {
	type candidate struct {
		TriedRule
		decided int
	}
	var all []*candidate
	byID := map[string]*candidate{}
	add := func(r TriedRule, decided int) {
		id := proposalID(&r)
		if byID[id] == nil {
			byID[id] = &candidate{TriedRule: r}
			all = append(all, byID[id])
		}
		byID[id].decided += decided
	}
	for _, c := range calls {
		p := parley.Permission{Tool: c.Tool, Input: c.Input, Folder: c.Folder}
		if c.Input == "" || c.Folder == "" || (c.Allowed > 0) == (c.Denied > 0) || isRisky(&p) {
			continue
		}
		read := rule.Read(&p)
		if len(read.Decide(standing).Rules) > 0 {
			continue
		}
		add(TriedRule{Tool: c.Tool, Covers: read.Exact(), Allow: c.Allowed > 0}, c.Allowed+c.Denied)
		if c.Allowed > 0 {
			for _, covers := range read.Offers() {
				add(TriedRule{Tool: c.Tool, Covers: covers, Allow: true}, c.Allowed)
			}
		}
	}
	all = slices.DeleteFunc(all, func(c *candidate) bool { return c.decided < minAlike })
	slices.SortStableFunc(all, func(a, b *candidate) int { return cmp.Compare(b.decided, a.decided) })
	var some []TriedRule
	for _, c := range all[:min(len(all), maxTried)] {
		some = append(some, c.TriedRule)
	}
	return some
}

// best returns the proposals that cover most calls, without those that cover no more than a narrower one of the same folder. A call
// offers the narrower first.
func best(shown []view.TriedRule, rules []TriedRule) ([]view.TriedRule, []TriedRule) {
	order := make([]int, len(shown))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shown[b].Covered, shown[a].Covered) })
	kept, made := []view.TriedRule{}, []TriedRule{}
	for _, i := range order {
		same := slices.IndexFunc(made, func(r TriedRule) bool {
			return r.Tool == rules[i].Tool && r.Allow == rules[i].Allow && r.Covers.Folder == rules[i].Covers.Folder
		})
		if same >= 0 && kept[same].Covered == shown[i].Covered && wideness(&rules[i].Covers) >= wideness(&made[same].Covers) {
			continue
		}
		if len(kept) < maxProposed {
			kept, made = append(kept, shown[i]), append(made, rules[i])
		}
	}
	return kept, made
}

// wideness orders the kinds of coverage by how much they may cover.
func wideness(c *events.Coverage) int {
	return slices.Index([]events.CoverageKind{events.CoversCall, events.CoversFile, events.CoversCommands, events.CoversFiles}, c.Kind)
}

// MakeProposed makes a rule that is proposed for an agent that this one is the host of, by the ID of the proposal. It is refused if it is
// not proposed any more: something was decided otherwise meanwhile.
func (rs Rules) MakeProposed(ctx context.Context, agent *Agent, proposal string, until capabilities.Time, isRisky func(*parley.Permission) bool) (view.TriedRule, error) {
	t, proposed, err := agent.Rules().propose(ctx, isRisky)
	if err != nil {
		return view.TriedRule{}, err
	}
	i := slices.IndexFunc(t.Rules, func(r view.TriedRule) bool { return r.Proposal == proposal })
	if i < 0 {
		return view.TriedRule{}, parley.Refuse(parley.InvalidArgument, "the rule %s is not proposed", parley.Quoted(proposal, 100)).WithHint("parley agent rules propose lists those that are")
	}
	t.Rules[i].Rule, err = rs.add(ctx, agent, mailbox.AddRule{Tool: proposed[i].Tool, Covers: proposed[i].Covers, Allow: proposed[i].Allow, Until: until})
	return t.Rules[i], err
}
