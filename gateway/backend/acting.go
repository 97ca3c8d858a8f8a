package backend

import (
	"context"

	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// agent is an agent of the node, as edges see it.
type agent struct {
	*actors.Agent
	node *actors.Node
}

// Agent implements api.Backend.
func (b *Backend) Agent(ctx context.Context, p api.Principal, as string) (api.Agent, error) {
	a, err := b.agent(ctx, p.(*principal), as)
	if err != nil {
		return nil, err
	}
	return agent{a, b.node}, nil
}

// Mail implements api.Agent.
func (a agent) Mail() api.Mail { return a.Agent.Mail() }

// Names implements api.Agent.
func (a agent) Names() api.Names { return a.Agent.Names() }

// Rules implements api.Agent.
func (a agent) Rules() api.Rules { return a.Agent.Rules() }

// Output implements api.Agent.
func (a agent) Output() api.Output { return a.Agent.Output() }

// WatchAgents implements api.Agent.
func (a agent) WatchAgents(ctx context.Context, f view.AgentFilter, which string, changed func()) (api.AgentWatch, error) {
	var only capabilities.ID
	if which != "" {
		one, err := a.Agents().Find(ctx, which)
		if err != nil {
			return nil, err
		}
		only = one.ID()
	}
	return a.Agents().Watch(f, only, changed), nil
}

// Compile implements api.Agent.
func (a agent) Compile(fields []events.Field) ([]events.Field, error) {
	schema, err := a.Agent.Compile(fields)
	if err != nil {
		return nil, err
	}
	return schema.Fields(), nil
}
