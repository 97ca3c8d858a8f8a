package actors

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/fair"
	"parley/mailbox"
	"parley/mailbox/rule"
	"parley/persistence"
	"parley/persistence/projection"
)

// ruledTime is how long a list of ruled calls has the index read of mailboxes that it lacks.
const ruledTime = time.Second

// Ruled returns calls of agents of this node that were decided without a question, the newest first: by a standing rule, a mandate or the
// policy. The caller may look into the agents. Behind is the number of their events that the index still lacks. Calls that are in an archive
// elsewhere are left out.
func (rs Rules) Ruled(ctx context.Context, agents []capabilities.ID, q view.RuledQuery) (calls []view.RuledCall, behind uint64, err error) {
	found, behind, err := rs.findRuled(ctx, agents, q)
	if err != nil {
		return nil, 0, err
	}
	calls, err = rs.readRuled(ctx, found)
	return calls, behind, err
}

// CountRuled returns how many calls Ruled would return without a limit: up to view.MaxCounted and one more. Those in an archive elsewhere are
// among them.
func (rs Rules) CountRuled(ctx context.Context, agents []capabilities.ID, q view.RuledQuery) (int, error) {
	q.Limit = view.MaxCounted + 1
	found, _, err := rs.findRuled(ctx, agents, q)
	return len(found), err
}

// findRuled returns what the index has of calls that were decided without a question.
func (rs Rules) findRuled(ctx context.Context, agents []capabilities.ID, q view.RuledQuery) (found []projection.Ruled, behind uint64, err error) {
	n := rs.agent.node
	x, err := n.searches.opened(ctx)
	if err != nil {
		return nil, 0, parley.Refuse(parley.ReadOnly, "the index for searching cannot be opened: %v", err)
	}
	for again := false; ; again = true {
		if behind, err = rs.catchUp(ctx, x, agents); err != nil {
			return nil, 0, err
		}
		err = rs.agent.Mail().InTurn(ctx, func() (err error) {
			found, err = x.Ruled(ctx, projection.RuledQuery{
				Agents: agents, Words: q.Text, Tool: q.Tool, Verdict: q.Verdict, Since: q.Since, Before: q.Before.At, BeforeID: q.Before.ID, Limit: int64(q.Limit),
			})
			return err
		})
		if errors.Is(err, projection.ErrOrder) && !again { // it was damaged, and is empty now
			continue
		}
		return found, behind, err
	}
}

// catchUp adds what the index lacks of mailboxes, for a time, as addMissing does of one. It returns how many events are left.
func (rs Rules) catchUp(ctx context.Context, x *projection.Index, agents []capabilities.ID) (left uint64, err error) {
	s := rs.agent.node.searches
	marks, err := x.Marks(ctx)
	if err != nil {
		return 0, parley.Refuse(parley.ReadOnly, "the index for searching cannot be read: %v", err)
	}
	end := fair.EndOf(ctx, ruledTime)
	first := true
	for _, id := range agents {
		missing := s.lacks(id, marks[projection.Key(id)])
		for missing > 0 && (first || time.Now().Before(end)) {
			first = false
			var failed error
			if err := rs.agent.Mail().InTurn(ctx, func() error {
				missing, failed = s.add(ctx, id)
				return nil
			}); err != nil {
				return 0, err
			}
			if failed != nil {
				break // what the index has is shown
			}
		}
		left += missing
	}
	return left, nil
}

// readRuled returns calls that the index has found, as the log has them.
func (rs Rules) readRuled(ctx context.Context, found []projection.Ruled) ([]view.RuledCall, error) {
	versions := map[capabilities.ID][]uint64{}
	for _, f := range found {
		versions[f.Agent] = append(versions[f.Agent], f.Version)
		if f.ByVersion > 0 {
			versions[f.Agent] = append(versions[f.Agent], f.ByVersion)
		}
	}
	logged := map[capabilities.ID]map[uint64]events.Event{}
	for id, some := range versions {
		slices.Sort(some)
		entries, err := rs.logged(ctx, id, slices.Compact(some))
		if err != nil {
			return nil, err
		}
		logged[id] = make(map[uint64]events.Event, len(entries))
		for _, e := range entries {
			logged[id][e.Version] = e.Event
		}
	}
	calls := make([]view.RuledCall, 0, len(found))
	for _, f := range found {
		c := view.RuledCall{Place: view.RuledPlace{At: f.At, ID: f.ID}, Agent: f.Agent, Allowed: f.Allowed}
		switch e := logged[f.Agent][f.Version].(type) {
		case *events.RuleUsed:
			c.Rule, c.Call = e.Rule, parley.Permission{Tool: e.Tool, Input: e.Input}
		case *events.MandateCharged:
			c.Mandate, c.Call = e.Mandate, parley.Permission{Tool: e.Tool, Input: e.Input, Folder: e.Folder}
		default:
			continue
		}
		switch e := logged[f.Agent][f.ByVersion].(type) {
		case *events.RuleAdded:
			c.Words, c.Call.Folder = rule.Words(&e.Covers), e.Covers.Folder
		case *events.MandateGiven:
			given := mailbox.Mandate{MandateGiven: *e}
			c.Words = strings.Join(given.Words(), "; ")
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// logged returns the events of a mailbox with some versions, ascending. Those in an archive elsewhere are left out.
func (rs Rules) logged(ctx context.Context, id capabilities.ID, versions []uint64) (logged []persistence.Entry, err error) {
	j := rs.agent.node.journal
	for len(versions) > 0 {
		err = rs.agent.Mail().InTurn(ctx, func() (err error) {
			logged, err = j.EventsAt(ctx, id, versions)
			return err
		})
		away, ok := errors.AsType[*persistence.Elsewhere](err)
		if !ok {
			return logged, err
		}
		_, last := j.VersionsIn(id, away.Segment)
		versions = slices.DeleteFunc(versions, func(v uint64) bool { return v <= last })
	}
	return nil, nil
}
