package mcp

import (
	"context"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// isForClient reports whether a message is a form for the person at the client: one from the agent to itself. Approvals
// are not.
func isForClient(m *view.Message) bool { return m.Type == "form" && m.From == m.To }

// message returns one of the agent's messages by its number or ID.
func (c *call) message(ctx context.Context, which string) (*view.Message, error) {
	var m view.Message
	if err := steadily(ctx, c.agent, "get_message", api.MessageRequest{FormRef: api.RefTo(which)}, &m); err != nil {
		return nil, err
	}
	return &m, nil
}

// party is another agent, as a model sees it.
type party struct {
	ID   capabilities.ID `json:"id"`
	Name string          `json:"name,omitempty"` // the agent's name for it
}

func partyOf(id capabilities.ID, name string) *party {
	if id.IsZero() {
		return nil
	}
	return &party{ID: id, Name: sanitize.Line(name)}
}
