package api

import (
	"encoding/json"

	"parley/actors/view"
	"parley/capabilities"
)

// ApproveRequest asks whether a tool may be called with an input, any JSON value.
type ApproveRequest struct {
	Acting
	Recipient string            `json:"recipient,omitempty"` // default: the agent's host
	Tool      string            `json:"tool"`
	Input     json.RawMessage   `json:"input"`
	Folder    string            `json:"folder,omitempty"` // where the call is made: an absolute path; wider rules need it
	Key       string            `json:"key,omitempty"`
	Deadline  capabilities.Time `json:"deadline,omitzero"`
	Attended  bool              `json:"attended,omitempty"` // ask only where somebody follows the mail of who is asked
}

// ListRulesRequest asks for the standing rules of the agent, or of one that it is the host of.
type ListRulesRequest struct {
	Acting
	Paging
	Agent string `json:"agent,omitempty"`
}

// ListRulesResponse has them, oldest first.
type ListRulesResponse struct {
	Rules []view.Rule `json:"rules"`
	Paged
}

// RemoveRuleRequest ends a standing rule of an agent that the caller is the host of.
type RemoveRuleRequest struct {
	Acting
	Agent string          `json:"agent"`
	Rule  capabilities.ID `json:"rule"`
}

// LimitRuleRequest has a standing rule end at a time: Rule, or that which the answer to an approval has made.
type LimitRuleRequest struct {
	Acting
	Agent string            `json:"agent"`
	Rule  capabilities.ID   `json:"rule,omitzero"`
	Form  capabilities.ID   `json:"form,omitzero"`
	Until capabilities.Time `json:"until"`
}
