package mcp

import (
	"bytes"
	"context"
	"encoding/json"

	"parley"
)

// which says which form a tool is about: a number or a handle.
type which string

// UnmarshalJSON reads a number or a text.
func (w *which) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(w))
	}
	*w = which(bytes.TrimSpace(b))
	return nil
}

// ended performs an operation that ends a form, and tells how it ended.
func (c *call) ended(ctx context.Context, operation string, form which, more map[string]any) (any, error) {
	if form == "" {
		return nil, parley.Refuse(parley.InvalidArgument, "which form? give its number or handle")
	}
	request := about(string(form))
	for name, v := range more {
		request[name] = v
	}
	var o outcome
	if err := c.agent.Call(ctx, operation, request, &o); err != nil {
		return nil, err
	}
	return o.ending(o.Form), nil
}

// asked reads which form a tool is about that settles what others asked. One that the agent asked the person at the
// client is not its own to settle.
func (c *call) asked(ctx context.Context, form which) (which, error) {
	if form == "" {
		return "", parley.Refuse(parley.InvalidArgument, "which form? give its number or handle")
	}
	m, err := c.message(ctx, string(form))
	if err != nil {
		return "", err
	}
	if m.isForClient() {
		return "", parley.Refuse(parley.NotPermitted, "form %d is for the person at the client", m.Number).WithHint("await_answer waits for them")
	}
	return which(m.ID), nil
}

// answerForm answers a form that the agent was asked.
func answerForm(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Form   which                      `json:"form"`
		Values map[string]json.RawMessage `json:"values"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	form, err := c.asked(ctx, arguments.Form)
	if err != nil {
		return nil, err
	}
	return c.ended(ctx, "respond_form", form, map[string]any{"values": arguments.Values})
}

// ends are the arguments of what ends a form without an answer.
type ends struct {
	Form   which  `json:"form"`
	Reason string `json:"reason"`
}

// declineForm says no to a form that the agent was asked.
func declineForm(ctx context.Context, c *call) (any, error) {
	var arguments ends
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	form, err := c.asked(ctx, arguments.Form)
	if err != nil {
		return nil, err
	}
	return c.ended(ctx, "decline_form", form, map[string]any{"reason": arguments.Reason})
}

// cancelForm takes back a form that the agent asked.
func cancelForm(ctx context.Context, c *call) (any, error) {
	var arguments ends
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	return c.ended(ctx, "cancel_form", arguments.Form, map[string]any{"reason": arguments.Reason})
}

// sent is an accepted message.
type sent struct {
	Message     string `json:"message"`
	Number      uint64 `json:"number"`
	Unreachable bool   `json:"unreachable,omitempty"`
}

// sendMessage sends words, or replies with them.
func sendMessage(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Recipient string `json:"recipient"`
		ReplyTo   which  `json:"replyTo"`
		Text      string `json:"text"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	operation, request := "send", map[string]any{"recipient": arguments.Recipient}
	switch {
	case (arguments.Recipient == "") == (arguments.ReplyTo == ""):
		return nil, parley.Refuse(parley.InvalidArgument, "give either a recipient or what it replies to")
	case arguments.ReplyTo != "":
		operation, request = "reply", about(string(arguments.ReplyTo))
	}
	request["text"] = arguments.Text
	var s sent
	return &s, c.agent.Call(ctx, operation, request, &s)
}
