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
	Folder    string            `json:"folder,omitempty"` // the working folder of the call, an absolute path; wider rules need it
	Key       string            `json:"key,omitempty"`
	Deadline  capabilities.Time `json:"deadline,omitzero"`
	Attended  bool              `json:"attended,omitempty"` // ask only if a client follows the mail of the recipient
}

// ListRulesRequest lists the standing rules of the agent, or of an agent whose host it is.
type ListRulesRequest struct {
	Acting
	Paging
	Agent string `json:"agent,omitempty"`
}

// ListRulesResponse has the rules, oldest first.
type ListRulesResponse struct {
	Rules []view.Rule `json:"rules"`
	Paged
}

// RemoveRuleRequest ends a standing rule of an agent whose host the caller is.
type RemoveRuleRequest struct {
	Acting
	Agent string          `json:"agent"`
	Rule  capabilities.ID `json:"rule"`
}

// LimitRuleRequest makes a standing rule end at a time: Rule, or the one that the answer to the approval Form made.
type LimitRuleRequest struct {
	Acting
	Agent string            `json:"agent"`
	Rule  capabilities.ID   `json:"rule,omitzero"`
	Form  capabilities.ID   `json:"form,omitzero"`
	Until capabilities.Time `json:"until"`
}
