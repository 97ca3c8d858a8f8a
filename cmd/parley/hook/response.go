package hook

import (
	"encoding/json"
	"fmt"

	"parley/cmd/parley/terminal"
)

// Decision is the result of asking about a call. An undecided call is left to the coding agent, and Reason says why.
type Decision struct {
	Decided, Allowed bool
	Reason           string
	Input            string // that is allowed instead of the one asked about, or has the answers; "" for that
	Away             bool   // there was nobody to decide: no node, no follower of the inbox, or no decision in time
	Then             Away   // what becomes of an undecided call
}

// left is the decision about a call that is left to the agent without a word.
var left = Decision{}

func undecided(format string, args ...any) Decision {
	return Decision{Reason: fmt.Sprintf(format, args...)}
}

func away(format string, args ...any) Decision {
	return Decision{Reason: fmt.Sprintf(format, args...), Away: true}
}

// Response is the JSON object that a hook prints. Both agents read the same members, and each takes fewer of them than
// the format has.
type Response struct {
	SystemMessage string    `json:"systemMessage,omitempty"` // shown to the person who works with the agent
	Specific      *specific `json:"hookSpecificOutput,omitempty"`

	Decision string `json:"decision,omitempty"` // block: on UserPromptSubmit the prompt is dropped; on Stop the model goes on, with the reason
	Reason   string `json:"reason,omitempty"`   // of that

	Wake string `json:"-"` // a line for standard error in place of all that, with the exit status that wakes the agent
}

type specific struct {
	Event      string    `json:"hookEventName"`
	Decision   *behavior `json:"decision,omitempty"`                 // on PermissionRequest
	Permission string    `json:"permissionDecision,omitempty"`       // on PreToolUse
	Reason     string    `json:"permissionDecisionReason,omitempty"` // of that

	Input json.RawMessage `json:"updatedInput,omitempty"` // of the call, on PreToolUse

	Context string   `json:"additionalContext,omitempty"` // for the model
	Watch   []string `json:"watchPaths,omitempty"`        // on SessionStart: files whose change is an event

	Action  string          `json:"action,omitempty"`  // on Elicitation: accept or decline
	Content json.RawMessage `json:"content,omitempty"` // the values that are accepted
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
	block = "block"
)

func claudeResponse(call toolCall, d Decision) *Response {
	switch call.event {
	case PermissionRequest:
		return permissionResponse(d)
	case Elicitation:
		return elicitationResponse(d)
	case PreToolUse:
		switch {
		case !d.Decided && call.tool == askTool:
			return nil // its own questions come without a prompt before
		case !d.Decided && d.Then == Mode:
			return remark(d)
		}
		s := &specific{Event: PreToolUse, Permission: string(d.Then), Reason: "Parley: " + d.Reason}
		switch {
		case d.Decided && d.Allowed:
			s.Permission, s.Reason, s.Input = allow, d.Reason, json.RawMessage(d.Input)
			if d.Input == "" && call.tool != askTool { // what was allowed, against a hook of others that changes it: the last one to end counts
				s.Input = call.input
			}
		case d.Decided:
			s.Permission, s.Reason = deny, d.Reason
		}
		return &Response{Specific: s}
	}
	return nil // the event is not known: standard error has the reason
}

func codexResponse(call toolCall, d Decision) *Response {
	switch {
	case call.event == PermissionRequest:
		return permissionResponse(d)
	case call.event == PreToolUse && !d.Decided:
		return remark(d)
	case call.event == PreToolUse && !d.Allowed:
		return &Response{Specific: &specific{Event: PreToolUse, Permission: deny, Reason: d.Reason}}
	}
	return nil
}

// elicitationResponse returns the response to an Elicitation. Without one the agent shows its own dialog, or cancels.
func elicitationResponse(d Decision) *Response {
	switch {
	case !d.Decided:
		return nil
	case !d.Allowed:
		return &Response{Specific: &specific{Event: Elicitation, Action: "decline"}}
	}
	return &Response{Specific: &specific{Event: Elicitation, Action: "accept", Content: json.RawMessage(d.Input)}}
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
