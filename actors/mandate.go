package actors

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/rule"
	"parley/persistence"
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
	var logged []persistence.Entry
	for len(versions) > 0 {
		err = rs.agent.Mail().InTurn(ctx, func() (err error) {
			logged, err = rs.agent.node.journal.EventsAt(ctx, rs.agent.id, versions)
			return err
		})
		away, ok := errors.AsType[*persistence.Elsewhere](err)
		if !ok {
			break
		}
		_, last := rs.agent.node.journal.VersionsIn(rs.agent.id, away.Segment)
		versions, err = slices.DeleteFunc(versions, func(v uint64) bool { return v <= last }), nil
	}
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
