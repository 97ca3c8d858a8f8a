package mcp

import (
	"context"
	"encoding/json"

	"parley/events"
	"parley/gateway/sanitize"
)

// message is an envelope, as far as the tools look at it.
type message struct {
	Number       uint64          `json:"number"`
	Type         string          `json:"type"` // form, request, approval, message
	ID           string          `json:"messageId"`
	From         string          `json:"from"`
	FromName     string          `json:"fromName"`
	To           string          `json:"to"`
	ToName       string          `json:"toName"`
	Sent         bool            `json:"sent"`
	Date         string          `json:"date"`
	Text         string          `json:"text"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	Fields       []field         `json:"fields"`
	Deadline     string          `json:"deadline"`
	ReplyNumber  *uint64         `json:"replyNumber"`
	Outcome      *outcome        `json:"outcome"`
	AnswerNeeded bool            `json:"answerNeeded"`
	Edges        json.RawMessage `json:"edges"`
}

// field is a field of a form, its values as they were written.
type field struct {
	Name        string           `json:"name"`
	Label       string           `json:"label,omitempty"`
	Type        events.FieldType `json:"type,omitempty"`
	Required    bool             `json:"required,omitempty"`
	Default     json.RawMessage  `json:"default,omitempty"`
	Placeholder string           `json:"placeholder,omitempty"`
	Help        string           `json:"help,omitempty"`
	Options     []events.Option  `json:"options,omitempty"`
	Example     json.RawMessage  `json:"example,omitempty"`
	Pattern     json.RawMessage  `json:"pattern,omitempty"`
}

// outcome is how a form ended.
type outcome struct {
	Status string          `json:"status"`
	Form   string          `json:"form"`
	By     string          `json:"by"`
	ByName string          `json:"byName"`
	At     string          `json:"at"`
	Note   string          `json:"note"`
	Values json.RawMessage `json:"values"`
}

// isForClient reports whether it is a form for the person at the client: one from the agent to itself. An approval
// is none.
func (m *message) isForClient() bool { return m.Type == "form" && m.From == m.To }

// message reads one of the agent's messages. which is a number or an ID.
func (c *call) message(ctx context.Context, which string) (*message, error) {
	var m message
	if err := steadily(ctx, c.agent, "get_message", about(which), &m); err != nil {
		return nil, err
	}
	return &m, nil
}

// about starts a request about one message.
func about(which string) map[string]any {
	for _, r := range which {
		if r < '0' || r > '9' {
			return map[string]any{"id": which}
		}
	}
	return map[string]any{"number": which}
}

// party is who wrote or did something.
type party struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"` // the agent's own name for it
}

func partyOf(id, name string) *party {
	if id == "" {
		return nil
	}
	return &party{ID: id, Name: sanitize.Line(name)}
}
