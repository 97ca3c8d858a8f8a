package api

import (
	"encoding/json"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// ApproveRequest asks whether a tool may be called with an input, any JSON value.
type ApproveRequest struct {
	Acting
	Recipient string            `json:"recipient,omitempty"` // default: the agent's host
	Tool      string            `json:"tool"`
	Input     json.RawMessage   `json:"input"`
	Folder    string            `json:"folder,omitempty"` // the working folder of the call, an absolute path; wider rules need it
	Reason    string            `json:"reason,omitempty"` // why the call is made, in the agent's own words
	Part      string            `json:"part,omitempty"`   // the part of the agent that makes it, such as a subagent, as the agent names it
	Key       string            `json:"key,omitempty"`
	Deadline  capabilities.Time `json:"deadline,omitzero"`
	Attended  bool              `json:"attended,omitempty"` // ask only if a client follows the mail of the recipient
	Editable  bool              `json:"editable,omitempty"` // the agent makes the call with the editedInput of the outcome, if that has one
	Remind    []events.Delay    `json:"remind,omitempty"`   // as in form
	Escalate  []Escalation      `json:"escalate,omitempty"` // as in form; only with need
	Need      uint32            `json:"need,omitempty"`     // so many hosts have to allow the call once, the agent's own among them (default 1)
	Veto      *bool             `json:"veto,omitempty"`     // with need: one denial ends it (default true); that of the agent's own host always does
}

// MaxDecisions bounds the decisions of one decide_many.
const MaxDecisions = 256

// DecideManyRequest decides on several approvals, each as respond_form does. Repeating it with its Key returns the same
// results.
type DecideManyRequest struct {
	Acting
	Decisions []Decision `json:"decisions"` // at most 256
	Key       string     `json:"key,omitempty"`

	SecondVote bool `json:"secondVote,omitempty"` // as in respond_form
}

// Decision is a decision on one approval. Digest is that of the call that was shown, as list_messages has it: an approval
// of another call is refused.
type Decision struct {
	Form     capabilities.ID `json:"form"`
	Digest   string          `json:"digest"`
	Decision string          `json:"decision"` // once, always, deny or never
	Reason   string          `json:"reason,omitempty"`
	Rule     string          `json:"rule,omitempty"`  // of always and never: one that the approval offers; default: for that very call
	Until    string          `json:"until,omitempty"` // when that ends: a time from now (8h), or a moment
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
