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

// MakeRuleRequest adds a standing rule for an agent whose host the caller is: for calls like that of an approval that was decided, or one
// that propose_rules proposes, which is looked at again. Offer is the ID of a rule that the approval offered, "" for that of the very
// call. Never denies the calls that it covers. Where decisions on the agent's calls want a passkey, a rule that allows has to be signed: see
// AskPasskeyRequest.Act.
type MakeRuleRequest struct {
	Acting
	Agent    string            `json:"agent"`
	Form     capabilities.ID   `json:"form,omitzero"`
	Offer    string            `json:"offer,omitempty"`
	Never    bool              `json:"never,omitempty"`
	Proposal string            `json:"proposal,omitempty"` // its ID there, in place of a form
	Until    capabilities.Time `json:"until,omitzero"`

	Passkey *parley.PasskeySignature `json:"passkey,omitempty"`
}

// LimitRuleRequest makes a standing rule end at a time: Rule, or the one that the answer to the approval Form made. What makes a rule that
// allows last longer has to be signed as MakeRuleRequest.
type LimitRuleRequest struct {
	Acting
	Agent string            `json:"agent"`
	Rule  capabilities.ID   `json:"rule,omitzero"`
	Form  capabilities.ID   `json:"form,omitzero"`
	Until capabilities.Time `json:"until"`

	Passkey *parley.PasskeySignature `json:"passkey,omitempty"`
}

// PauseRuleRequest pauses a standing rule of an agent whose host the caller is, or resumes it.
type PauseRuleRequest struct {
	Acting
	Agent  string          `json:"agent"`
	Rule   capabilities.ID `json:"rule"`
	Resume bool            `json:"resume,omitempty"`

	Passkey *parley.PasskeySignature `json:"passkey,omitempty"` // of a rule that allows, to resume it: as in MakeRuleRequest
}

// ProposeRulesRequest asks which rules follow from what was always decided alike, five times or more, of the calls of an agent whose host
// the caller is. None is proposed for a call of high risk.
type ProposeRulesRequest struct {
	Acting
	Agent string `json:"agent"`
}

// TryRulesRequest tries rules on the calls that an agent has asked about so far: the standing rules of an agent whose host the caller
// is, or those that an approval offers which the caller received or asked. 32 rules at most.
type TryRulesRequest struct {
	Acting
	FormRef                   // of the approval
	Agent   string            `json:"agent,omitempty"`  // whose rules, without an approval; "" for the caller itself
	Rules   []capabilities.ID `json:"rules,omitempty"`  // of the agent; without them all that there are
	Offers  []string          `json:"offers,omitempty"` // of the approval, by their IDs; without them all
	Deny    bool              `json:"deny,omitempty"`   // of an approval: as rules that deny
}
