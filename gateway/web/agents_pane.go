package web

import (
	"cmp"
	"slices"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

// leftPane is the pane of all pages that leads to the lists and the agents.
type leftPane struct {
	Agents []leftAgent
	More   bool   // there are agents that it does not name
	Text   string // that the list is searched for
	Counts view.MessageCounts
	Away   capabilities.Time // the end of the reader's absence; 0 if it is not away
	Owner  bool              // the reader may see the devices that are told
}

// leftAgent is an agent as the left pane shows it.
type leftAgent struct {
	party
	Path    string            // the address of its page
	State   string            // running, waiting for you, waiting, idle, error, ...
	Count   int               // open forms that it asked
	Current bool              // the page is about it
	Away    capabilities.Time // the end of its absence; 0 if it is not away
}

// Bounds of the left pane.
const (
	maxLeft       = 30  // agents that it shows
	maxLeftLooked = 200 // agents of which it shows the most relevant
)

// left returns the left pane. First are the agents that wait for the reader, then those that run, then the latest.
func (p *page) left() (*leftPane, error) {
	pane := &leftPane{Text: p.r.URL.Query().Get("q"), Owner: p.ownsDevices()}
	counts, err := p.site.Backend.Call(p.ctx(), p.principal, "count_messages", api.Typed{Value: api.CountMessagesRequest{}})
	if err != nil {
		return nil, err
	}
	pane.Counts, _ = counts.(view.MessageCounts)
	switch away, err := absenceNow(p, api.Acting{}); {
	case err != nil:
		return nil, err
	case away != nil && time.Now().After(away.From.Std()):
		pane.Away = away.Until
	}
	if !p.principal.IsHost() {
		return pane, nil // another agent may not see the pages of those it holds
	}
	resp, err := p.site.Backend.Call(p.ctx(), p.principal, "fetch_agents", api.Typed{Value: api.FetchAgentsRequest{Paging: api.Paging{Limit: maxLeftLooked}}})
	if err != nil {
		return nil, err
	}
	got, _ := resp.(api.FetchAgentsResponse)
	rank := func(s view.AgentStatus) int {
		switch {
		case len(s.Pending) > 0:
			return 0
		case s.Status == "error":
			return 1
		case s.Status == "running":
			return 2
		case s.Asks > 0:
			return 3
		}
		return 4
	}
	slices.SortStableFunc(got.Agents, func(a, b view.AgentStatus) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), -cmp.Compare(a.Updated, b.Updated))
	})
	for _, s := range got.Agents {
		if s.Name == "" || s.ID == p.principal.ID() {
			continue
		}
		if len(pane.Agents) == maxLeft {
			pane.More = true
			break
		}
		a := leftAgent{party: partyOf(s.ID, s.Name), Path: AgentPath(s.Name), State: s.Status, Count: s.Asks, Away: s.AwayUntil}
		if len(s.Pending) > 0 {
			a.State = "waiting for you"
		}
		a.Current = p.r.URL.Path == AgentsPath+s.Name
		pane.Agents = append(pane.Agents, a)
	}
	return pane, nil
}
