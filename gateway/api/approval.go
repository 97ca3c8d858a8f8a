package api

import (
	"parley"
	"parley/actors/view"
	"parley/capabilities"
)

// ApproveRequest asks whether a tool may be called with an input.
type ApproveRequest struct {
	Acting
	parley.Approval
}

// MaxDecisions bounds the decisions of one decide_many.
const MaxDecisions = 256

// DecideManyRequest decides on several approvals, each as respond_form does. Repeating it with its Key returns the same
// results.
type DecideManyRequest struct {
	Acting
	Decisions []parley.Decision `json:"decisions"` // at most 256
	Key       string            `json:"key,omitempty"`

	SecondVote bool `json:"secondVote,omitempty"` // as in respond_form
}

// DecideManyResponse has the result of each decision, in their order.
type DecideManyResponse struct {
	Results []Decided `json:"results"`
}

// Decided is the result of one decision: the outcome of the form, or why the decision was refused.
type Decided struct {
	Form    capabilities.ID `json:"form"`
	Outcome *view.Outcome   `json:"outcome,omitempty"`
	Error   *parley.Error   `json:"error,omitempty"`
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
