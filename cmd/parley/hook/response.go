package hook

import (
	"encoding/json"
	"fmt"

	"parley/cmd/parley/terminal"
)

// Decision is the result of asking about a call. An undecided call is left to the coding agent's own prompt, and Reason
// says why.
type Decision struct {
	Decided, Allowed bool
	Reason           string
	Input            string // that is allowed instead of the one asked about; "" for that
}

// left is the decision about a call that is left to the agent without a word.
var left = Decision{}

func undecided(format string, args ...any) Decision {
	return Decision{Reason: fmt.Sprintf(format, args...)}
}

// Response is the JSON object that a hook prints. Both agents read the same members, and each takes fewer of them than
// the format has.
type Response struct {
	SystemMessage string    `json:"systemMessage,omitempty"` // shown to the person who works with the agent
	Specific      *specific `json:"hookSpecificOutput,omitempty"`
}

type specific struct {
	Event      string    `json:"hookEventName"`
	Decision   *behavior `json:"decision,omitempty"`                 // on PermissionRequest
	Permission string    `json:"permissionDecision,omitempty"`       // on PreToolUse
	Reason     string    `json:"permissionDecisionReason,omitempty"` // of that

	Input json.RawMessage `json:"updatedInput,omitempty"` // of the call, on PreToolUse
}

type behavior struct {
	Behavior string          `json:"behavior"`
	Message  string          `json:"message,omitempty"`
	Input    json.RawMessage `json:"updatedInput,omitempty"` // of the call
}

// The decisions of a response.
const (
	allow = "allow"
	deny  = "deny"
	ask   = "ask"
)

func claudeResponse(event string, d Decision) *Response {
	switch event {
	case PermissionRequest:
		return permissionResponse(d)
	case PreToolUse:
		s := &specific{Event: PreToolUse, Permission: ask, Reason: "Parley: " + d.Reason}
		switch {
		case d.Decided && d.Allowed:
			s.Permission, s.Reason, s.Input = allow, d.Reason, json.RawMessage(d.Input)
		case d.Decided:
			s.Permission, s.Reason = deny, d.Reason
		}
		return &Response{Specific: s}
	}
	return nil // the event is not known: standard error has the reason
}

func codexResponse(event string, d Decision) *Response {
	switch {
	case event == PermissionRequest:
		return permissionResponse(d)
	case event == PreToolUse && !d.Decided:
		return remark(d)
	case event == PreToolUse && !d.Allowed:
		return &Response{Specific: &specific{Event: PreToolUse, Permission: deny, Reason: d.Reason}}
	}
	return nil
}

// permissionResponse returns the response to a PermissionRequest, which is the same for both agents: it allows, or
// denies with a message for the model. Without a decision the agent's own prompt goes on.
func permissionResponse(d Decision) *Response {
	if !d.Decided {
		return remark(d)
	}
	b := behavior{Behavior: allow, Input: json.RawMessage(d.Input)}
	if !d.Allowed {
		b = behavior{Behavior: deny, Message: d.Reason}
	}
	return &Response{Specific: &specific{Event: PermissionRequest, Decision: &b}}
}

// remark returns a response that decides nothing and says why.
func remark(d Decision) *Response {
	return &Response{SystemMessage: "Parley: " + terminal.Visible(d.Reason)}
}
