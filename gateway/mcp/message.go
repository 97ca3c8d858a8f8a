package mcp

import (
	"cmp"
	"context"
	"strings"

	"parley"
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
	m, err := api.GetMessage.Do(ctx, steady{c.agent}, api.MessageRequest{FormRef: api.RefTo(which)})
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// absentWords says for which recipients among some receipts nobody reads the mailbox now; "" if there are none.
func absentWords(receipts []view.Receipt) string {
	return strings.Join(view.AbsentWords(receipts, func(id capabilities.ID, name string) string { return cmp.Or(sanitize.Line(name), view.ShortID(id)) }), "; ")
}

// recipientWords returns recipients in words; "" for none. What another calls one is in quotation marks.
func recipientWords(all []view.Recipient) string {
	if len(all) == 0 {
		return ""
	}
	return view.RecipientWords(all, len(all), func(r view.Recipient) string {
		switch {
		case r.Name == "SELF":
			return "you"
		case r.Name == "" && r.Said != "":
			return parley.Quoted(sanitize.Line(r.Said), 80)
		}
		return sanitize.Line(r.Name)
	})
}

// party is another agent, as a model sees it.
type party struct {
	ID   capabilities.ID `json:"id"`
	Name string          `json:"name,omitempty"` // the agent's name for it
	Said string          `json:"said,omitempty"` // without one: what it calls itself, which may be any words
}

func partyOf(id capabilities.ID, name string) *party {
	if id.IsZero() {
		return nil
	}
	return &party{ID: id, Name: sanitize.Line(name)}
}
