package actors

import (
	"context"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/rule"
	"parley/persistence/projection"
)

// Bounds of a trial of rules.
const (
	maxTried      = 32      // rules at once
	maxTriedCalls = 200_000 // calls of a tool, of which equal ones count as one: the newest are tried
	triedAtOnce   = 2000    // calls that are read in one turn
)

// TriedRule is a rule that is tried on the past.
type TriedRule struct {
	Tool   string
	Covers events.Coverage
	Allow  bool
}

// Try tries rules on the calls that the agent has asked about so far: how many each alone would have decided, and against how many
// decisions of those who were asked. An open call, which may be nil, is left out once: it is not past. It makes no rule. It refuses
// with TOO_LARGE more than 32 rules.
func (rs Rules) Try(ctx context.Context, rules []TriedRule, open *parley.Permission) (view.Trial, error) {
	if len(rules) > maxTried {
		return view.Trial{}, parley.Refuse(parley.TooLarge, "%d rules are over the limit of %d", len(rules), maxTried).WithHint("try fewer at once")
	}
	mail := rs.agent.Mail()
	behind, err := mail.addMissing(ctx)
	if err != nil {
		return view.Trial{}, err
	}
	x, err := rs.agent.node.searches.opened(ctx)
	if err != nil {
		return view.Trial{}, parley.Refuse(parley.ReadOnly, "the index for searching cannot be opened: %v", err)
	}
	t, err := tryAll(rules, open, nil, nil, func(tool string, before int64, try func([]projection.Call)) error {
		return mail.InTurn(ctx, func() error {
			calls, err := x.Calls(ctx, rs.agent.id, tool, before, triedAtOnce)
			try(calls)
			return err
		})
	})
	t.Behind = behind
	return t, err
}

// tryAll tries rules on all calls of the past. Next has the newest calls of a tool tried that are older than one. With isRisky it sets risky
// for the rules that cover a call of which that is true.
func tryAll(rules []TriedRule, open *parley.Permission, isRisky func(*parley.Permission) bool, risky []bool, next func(tool string, before int64, try func([]projection.Call)) error) (view.Trial, error) {
	t := view.Trial{Rules: make([]view.TriedRule, len(rules))}
	byTool, prepared := map[string][]int{}, make([]*rule.Tried, len(rules))
	for i, r := range rules {
		prepared[i] = rule.Prepare(rule.Standing{Covers: &rules[i].Covers, Allow: r.Allow})
		t.Rules[i] = view.TriedRule{Tool: r.Tool, Allow: r.Allow, Words: rule.Words(&r.Covers)}
		byTool[r.Tool] = append(byTool[r.Tool], i)
	}
	for tool, some := range byTool {
		tried, before, last := 0, int64(0), false
		for !last && tried < maxTriedCalls {
			err := next(tool, before, func(calls []projection.Call) {
				last = len(calls) < triedAtOnce
				tried += len(calls)
				for _, c := range calls {
					before = c.ID
					if open != nil && c.Tool == open.Tool && c.Folder == open.Folder && c.Input == open.Input {
						c.Asked--
					}
					if c.Asked > 0 {
						tryOn(&t, prepared, some, c, isRisky, risky)
					}
				}
			})
			if err != nil {
				return t, err
			}
		}
		t.More = t.More || !last
	}
	return t, nil
}

// tryOn tries some rules on a call.
func tryOn(t *view.Trial, rules []*rule.Tried, some []int, c projection.Call, isRisky func(*parley.Permission) bool, risky []bool) {
	t.Calls += c.Asked
	if c.Input == "" {
		t.Long += c.Asked
		return
	}
	p := &parley.Permission{Tool: c.Tool, Input: c.Input, Folder: c.Folder}
	trial := rule.Try(p)
	for _, i := range some {
		if !trial.Covers(rules[i]) {
			continue
		}
		if isRisky != nil && !risky[i] {
			risky[i] = isRisky(p)
		}
		r := &t.Rules[i]
		r.Covered += c.Asked
		r.Allowed += c.Allowed
		r.Denied += c.Denied
		against, last := c.Denied, c.DeniedLast
		if !r.Allow {
			against, last = c.Allowed, c.AllowedLast
		}
		if against > 0 {
			r.Against += against
			if len(r.Examples) < maxExamples {
				r.Examples = append(r.Examples, view.TriedCall{Number: uint64(last), Input: parley.Shown(c.Input, maxExample)})
			}
		}
	}
}

// Bounds of the calls that are shown of those that a rule would have decided otherwise, and of an input in bytes.
const (
	maxExamples = 5
	maxExample  = 500
)

// OffersOf returns an approval that the agent received or asked, and the rules that it offers.
func (rs Rules) OffersOf(ctx context.Context, ref capabilities.FormRef) (m view.Message, offers []parley.Offer, err error) {
	if m, err = rs.agent.Message(ctx, ref); err != nil {
		return m, nil, err
	}
	if m.Permission == nil {
		return m, nil, parley.Refuse(parley.NoPendingPermission, "message %d is no approval", m.Number)
	}
	offers = mailbox.OffersOf(m.Permission)
	for i := range offers {
		if offers[i].Rule.Kind == events.CoversCall { // the offer leaves out the input
			offers = append([]parley.Offer(nil), offers...)
			offers[i].Rule = rule.Read(m.Permission).Exact()
		}
	}
	return m, offers, nil
}
