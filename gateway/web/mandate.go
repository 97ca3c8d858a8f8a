package web

import (
	"context"
	"slices"

	"parley/actors/view"
	"parley/gateway/api"
)

// Bounds of the mandates of an agent's page.
const (
	maxMandates     = 8  // of which calls are shown: the newest
	maxMandateCalls = 20 // of each: the last ones
)

// mandate is a mandate of an agent with the last calls that it has covered, the newest first.
type mandate struct {
	view.Mandate
	Covered []view.MandateCall
}

// Earlier returns the number of calls that are not shown.
func (m *mandate) Earlier() int { return m.Used - len(m.Covered) }

// mandatesOf returns an agent's mandates, those that last first, and of these and the others the newest.
func mandatesOf(ctx context.Context, agent api.Agent) ([]mandate, error) {
	all, err := agent.Rules().Mandates(ctx, true)
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b view.Mandate) int { return over(a) - over(b) })
	list := make([]mandate, len(all))
	for i, m := range all {
		if list[i].Mandate = m; i >= maxMandates || m.Used == 0 {
			continue
		}
		if list[i].Mandate, list[i].Covered, err = agent.Rules().Mandate(ctx, m.Mandate, maxMandateCalls); err != nil {
			return nil, err
		}
		slices.Reverse(list[i].Covered)
	}
	return list, nil
}

// over is 1 for a mandate that has ended.
func over(m view.Mandate) int {
	if m.End != "" {
		return 1
	}
	return 0
}
