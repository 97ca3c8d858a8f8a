package actors

import (
	"context"
	"encoding/json"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/rule"
	"parley/persistence/projection"
)

// Mandates lists the mandates of the agent, oldest first: those that last and, with all, the last ones that have ended.
func (rs Rules) Mandates(ctx context.Context, all bool) ([]view.Mandate, error) {
	return queryListing(ctx, rs.agent, func(s *mailbox.State, now capabilities.Time) ([]view.Mandate, error) {
		list := []view.Mandate{}
		for _, m := range s.Rules.Mandates() {
			if all || m.EndOf(now) == "" {
				list = append(list, mandateOf(s, m, now))
			}
		}
		return list, nil
	})
}

// AllMandates lists the mandates of all agents of this node that the agent may look into, as Mandates does, by their IDs. Those that were
// given in the last moments may be missing while the node reads much.
func (rs Rules) AllMandates(ctx context.Context, all bool) (list []view.Mandate, err error) {
	n := rs.agent.node
	x, err := n.searches.opened(ctx)
	if err != nil {
		return nil, parley.Refuse(parley.ReadOnly, "the index for searching cannot be opened: %v", err)
	}
	var mailboxes []capabilities.ID
	for id := range n.journal.Mailboxes() {
		mailboxes = append(mailboxes, id)
	}
	if _, err := rs.catchUp(ctx, x, mailboxes); err != nil {
		return nil, err
	}
	mandated, err := x.Mandated(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range mailboxes {
		agent := &Agent{node: n, id: id}
		if !mandated[projection.Key(id)] || rs.agent.Agents().MayLookInto(ctx, agent) != nil {
			continue
		}
		some, err := agent.Rules().Mandates(ctx, all)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	slices.SortFunc(list, func(a, b view.Mandate) int { return a.Mandate.Compare(b.Mandate) })
	return list, nil
}

func mandateOf(s *mailbox.State, m *mailbox.Mandate, now capabilities.Time) view.Mandate {
	v := view.Mandate{
		Mandate: m.MandateGiven.Mandate, Agent: s.ID, Form: m.Form, By: m.By, Session: m.Session, Words: m.Words(), Given: m.Given, Until: m.Until,
		Calls: int(m.Calls), Used: len(m.Charges), End: m.EndOf(now), Ended: m.Ended,
	}
	for i, sum := range m.Sums {
		v.Sums = append(v.Sums, view.SpentSum{
			Tool: sum.Tool, Member: sum.Member,
			Most: rule.AmountText(sum.Most), Spent: rule.AmountText(m.Spent[i]), Left: rule.AmountText(sum.Most - m.Spent[i]),
		})
	}
	return v
}

// Mandate returns a mandate of the agent with the last calls that it has covered, oldest first, at most so many. Calls that are in an archive
// elsewhere are left out.
func (rs Rules) Mandate(ctx context.Context, id capabilities.ID, limit int) (m view.Mandate, calls []view.MandateCall, err error) {
	var versions []uint64
	m, err = queryListing(ctx, rs.agent, func(s *mailbox.State, now capabilities.Time) (m view.Mandate, err error) {
		versions = nil
		for _, one := range s.Rules.Mandates() {
			if one.MandateGiven.Mandate != id {
				continue
			}
			for _, c := range one.Charges[max(0, len(one.Charges)-limit):] {
				versions = append(versions, c.Version)
			}
			return mandateOf(s, one, now), nil
		}
		return m, mailbox.NoMandate(id)
	})
	if err != nil {
		return m, nil, err
	}
	calls = []view.MandateCall{}
	logged, err := rs.logged(ctx, rs.agent.id, versions)
	if err != nil {
		return m, nil, err
	}
	for _, l := range logged {
		e, ok := l.Event.(*events.MandateCharged)
		if !ok {
			return m, nil, parley.Refuse(parley.Internal, "version %d of mailbox %s is no charge", l.Version, rs.agent.id)
		}
		call := view.MandateCall{At: l.At, Tool: e.Tool, Input: json.RawMessage(e.Input), Folder: e.Folder}
		for _, n := range e.Amounts {
			call.Amounts = append(call.Amounts, rule.AmountText(n))
		}
		calls = append(calls, call)
	}
	return m, calls, nil
}

// EndMandate ends a mandate of an agent that this one is the host of. No call that comes later passes by it.
func (rs Rules) EndMandate(ctx context.Context, agent *Agent, id capabilities.ID) error {
	return agent.do(ctx, mailbox.EndMandate{Mandate: id, By: rs.agent.id})
}
