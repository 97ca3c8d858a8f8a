package ws

import (
	"bytes"
	"encoding/json"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/compat"
	"parley/gateway/httpd"
	"parley/internal/websocket"
)

// ParseError is the code for a frame that is not JSON. No other edge uses it.
const ParseError parley.Code = "PARSE_ERROR"

// readHead reads the head of a frame. It refuses with PARSE_ERROR, TOO_LARGE or INVALID_ARGUMENT. With an error it returns
// the part of the head that it could read.
func readHead(kind websocket.Kind, text []byte) (h compat.Head, err error) {
	switch {
	case kind != websocket.Text:
		return h, parley.Refuse(parley.InvalidArgument, "frames are text")
	case capabilities.Nesting(text) > api.MaxDepth:
		return h, parley.Refuse(parley.TooLarge, "a frame may be nested %d deep at most", api.MaxDepth)
	case !json.Valid(text):
		return h, parley.Refuse(ParseError, "the frame is not JSON")
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return compat.Head{}, parley.Refuse(parley.InvalidArgument, `a frame is an object: {"type":…,"requestId":…}`)
	}
	if !compat.IsBrief(h.RequestID) {
		h.RequestID = nil
		err = parley.Refuse(parley.InvalidArgument, "a requestId is a string or a number of %d bytes at most", compat.MaxRequestID)
	}
	for _, other := range []*json.RawMessage{&h.ID, &h.SubscriptionID, &h.QuestionID} {
		if !compat.IsBrief(*other) {
			*other = nil // an error does not repeat it
		}
	}
	return h, err
}

// requestIDOf returns the requestId, if any, of a frame that is refused before its head was read.
func requestIDOf(text []byte) json.RawMessage {
	var h struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if len(text) > api.BodyFree || json.Unmarshal(text, &h) != nil || !compat.IsBrief(h.RequestID) {
		return nil
	}
	return h.RequestID
}

// responseHead has the members of a response before those of the operation.
type responseHead struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
}

// messageBody is the body of a response that is a message. A message has a member "type" itself.
type messageBody struct {
	Message view.Message `json:"message"`
}

// responseText encodes the response to a request: the operation's response with the members of the frame in front.
func responseText(operation string, about compat.Regarding, resp any) ([]byte, error) {
	if e, ok := resp.(view.Message); ok {
		resp = messageBody{e}
	}
	opening, err := frameText(responseHead{Type: operation + "_response", RequestID: about.RequestID})
	if err != nil {
		return nil, err
	}
	body, err := frameText(resp)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(body, []byte("{}")) {
		return opening, nil
	}
	text := append(opening[:len(opening)-1], ',')
	return append(text, body[1:]...), nil
}

// frameText encodes a frame.
func frameText(frame any) ([]byte, error) {
	var buf bytes.Buffer
	if err := httpd.Encode(&buf, frame); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// SubscribeFrame follows the messages that a filter picks: first those that changed after the cursor, then each that
// changes.
type SubscribeFrame struct {
	followMessagesRequest
	SubscriptionID string `json:"subscriptionId"`
}

// MessageFrame is a followed message. A subscription with its cursor goes on after it.
type MessageFrame struct {
	Type           string       `json:"type"` // message
	SubscriptionID string       `json:"subscriptionId"`
	Cursor         string       `json:"cursor"`
	Message        view.Message `json:"message"`
}

// UnsubscribeFrame ends a subscription, to messages or to a run.
type UnsubscribeFrame struct {
	SubscriptionID string `json:"subscriptionId,omitempty"`
	RunID          string `json:"runId,omitempty"`
}

// SubscribeAgentsFrame follows the agents that the caller sees and a filter picks. The first updates are of all agents, so
// that a subscription needs no cursor. With Mark another frame follows these updates. A client that comes back then knows
// which agents are gone.
type SubscribeAgentsFrame struct {
	api.Acting
	SubscriptionID string `json:"subscriptionId"`
	Mark           bool   `json:"mark,omitempty"`
	Filter         struct {
		view.AgentFilter
		AgentID string `json:"agentId,omitempty"` // only this one
	} `json:"filter,omitzero"`
}

// AgentUpdateFrame has the status of an agent. An agent that the filter no longer picks is removed.
type AgentUpdateFrame struct {
	Type           string           `json:"type"` // agent_update
	SubscriptionID string           `json:"subscriptionId"`
	Kind           string           `json:"kind"` // upsert, remove
	Agent          view.AgentStatus `json:"agent"`
}

// AgentsToldFrame marks the end of the updates of all agents.
type AgentsToldFrame struct {
	Type           string `json:"type"` // agents_told
	SubscriptionID string `json:"subscriptionId"`
}
