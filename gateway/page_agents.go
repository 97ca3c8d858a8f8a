package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/web"
)

// shownAgents is how many agents the list shows at once.
const shownAgents = 100

// standingOf says how an agent is. It is the one place from which pages take that.
func standingOf(ctx context.Context, a api.Agent) (web.Standing, error) {
	s := web.Standing{}
	var err error
	if s.AgentStatus, err = a.Status(ctx); err != nil {
		return s, err
	}
	for _, key := range sortedKeys(s.Labels) {
		s.Marks = append(s.Marks, key+"="+s.Labels[key])
	}
	return s, nil
}

// agents lists who is signed in and the agents that it holds, by name.
func (v *viewing) agents() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	ctx := v.r.Context()
	reader, err := v.s.agent(ctx, "")
	if err != nil {
		return err
	}
	all, err := heldAgents(ctx, reader)
	if err != nil {
		return err
	}
	all = append([]web.Listed{{ID: reader.ID()}}, all...)
	after, later := v.r.URL.Query().Get("after"), v.r.URL.Query().Has("after")
	if later {
		all = slices.DeleteFunc(all, func(l web.Listed) bool { return l.Name <= after })
	}
	r := web.AgentList{Agents: all[:min(len(all), shownAgents)], Later: later}
	if len(all) > shownAgents {
		r.After = r.Agents[shownAgents-1].Name
	}
	for i := range r.Agents {
		if err := v.look(&r.Agents[i], reader); err != nil {
			return err
		}
	}
	return v.show(200, "agents.html", web.Layout{Title: "Agents", Main: r})
}

// heldAgents gives the agents that one holds, each under the first of its names, by name.
func heldAgents(ctx context.Context, reader api.Agent) ([]web.Listed, error) {
	names, err := reader.Names().List(ctx, "")
	if err != nil {
		return nil, err
	}
	var all []web.Listed
	seen := map[capabilities.ID]bool{reader.ID(): true}
	for _, name := range names {
		if strings.HasPrefix(name, "@") {
			continue
		}
		value, err := reader.Names().Show(ctx, name, false)
		if err != nil {
			continue // it has gone meanwhile
		}
		r, isRef := value.AsRef()
		if !isRef || r.Kind != capabilities.KindAgent || seen[r.Target] {
			continue
		}
		seen[r.Target] = true
		all = append(all, web.Listed{Name: name, ID: r.Target})
	}
	slices.SortFunc(all, func(a, b web.Listed) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// look fills in what the reader may see of an agent. One that cannot be read does not keep the others from view.
func (v *viewing) look(l *web.Listed, reader api.Agent) error {
	ctx := v.r.Context()
	l.Away = l.ID.Node != reader.ID().Node
	if l.Away {
		return nil
	}
	agent, err := v.s.agent(ctx, l.Name)
	if err != nil || agent.ID() != l.ID {
		return nil // it is not for the reader to act as
	}
	waiting, err := waitingFor(ctx, local{l.Name, agent}, local{agent: reader})
	if err == nil {
		l.Standing, err = standingOf(ctx, agent)
	}
	if err != nil {
		l.Standing = web.Standing{AgentStatus: view.AgentStatus{Status: "error", Error: api.Shown(err).Message}}
		return ctx.Err()
	}
	l.Here, l.Waiting = true, len(waiting)
	return nil
}
