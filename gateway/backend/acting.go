package backend

import (
	"context"

	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox/form"
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
func (a agent) Compile(r api.FormRequest) ([]events.Field, error) {
	fields, err := r.Fields.List(form.ParseFields)
	if err != nil {
		return nil, err
	}
	schema, err := a.Agent.Compile(fields)
	if err != nil {
		return nil, err
	}
	return schema.Fields(), nil
}

// Ask implements api.Dialects.
func (a agent) Ask(ctx context.Context, o events.Origin, r api.FormRequest) (view.Asked, error) {
	return ask(ctx, a.Agent, r, &o)
}

// Approve implements api.Dialects.
func (a agent) Approve(ctx context.Context, o events.Origin, r api.ApproveRequest) (view.Permitted, error) {
	ask := approvalOf(r)
	ask.Origin = &o
	return a.Agent.Approve(ctx, ask)
}

// Answer implements api.Dialects.
func (a agent) Answer(ctx context.Context, ref capabilities.FormRef, values map[string]capabilities.Value) (view.Outcome, error) {
	return a.Agent.Answer(ctx, actors.Answer{Form: ref, Values: values})
}

// KeyOf implements api.Dialects.
func (a agent) KeyOf(ctx context.Context, asker, form capabilities.ID) (string, error) {
	return a.node.KeyOf(ctx, asker, form)
}
