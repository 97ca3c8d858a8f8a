package view

import (
	"parley/capabilities"
	"parley/events"
)

// Rule is a standing rule: calls of a tool that it covers are always allowed, or never.
type Rule struct {
	Rule   capabilities.ID   `json:"rule"`
	Agent  capabilities.ID   `json:"agent"`
	Tool   string            `json:"tool"`
	Words  string            `json:"words"` // which calls it covers
	Allow  bool              `json:"allow"`
	Made   capabilities.Time `json:"made"`
	Until  capabilities.Time `json:"until,omitzero"`
	Paused bool              `json:"paused,omitempty"` // it decides nothing: calls that it covers are asked about, unless another rule decides them
	Form   capabilities.ID   `json:"form,omitzero"`    // the approval whose answer made it
	Uses   uint64            `json:"uses"`
	Used   capabilities.Time `json:"lastUsed,omitzero"`

	Covers events.Coverage `json:"covers"` // the calls that Words describes
}

// Trial is what rules would have decided of the calls that an agent has asked about so far. Calls that a standing rule or a policy
// decided are not among them.
type Trial struct {
	Rules  []TriedRule `json:"rules"`            // in the order of the request
	Calls  int         `json:"calls"`            // of the rules' tools, on which they were tried
	Long   int         `json:"long,omitempty"`   // of these: calls with an input of more than 16 KiB, of which nothing is said
	More   bool        `json:"more,omitempty"`   // there are older ones, on which nothing was tried
	Behind uint64      `json:"behind,omitempty"` // events that the index of the past does not have yet
}

// TriedRule is a rule with the calls that it alone would have decided.
type TriedRule struct {
	Rule     capabilities.ID `json:"rule,omitzero"`      // of a standing rule
	Offer    string          `json:"offer,omitempty"`    // of a rule that an approval offers: its ID there
	Proposal string          `json:"proposal,omitempty"` // of a rule that is proposed: the ID by which make_rule makes it
	Tool     string          `json:"tool"`
	Words    string          `json:"words"` // which calls it covers
	Allow    bool            `json:"allow"`
	Covered  int             `json:"covered"`            // calls that it would have decided
	Allowed  int             `json:"allowed"`            // of these: allowed by those who were asked
	Denied   int             `json:"denied"`             // and denied; the others are open, or ended without a decision
	Against  int             `json:"against"`            // of these: decided otherwise than the rule would have
	Examples []TriedCall     `json:"examples,omitempty"` // of those, five at most, the newest first
}

// TriedCall is a call that a rule would have decided otherwise than who was asked.
type TriedCall struct {
	Number uint64 `json:"number"` // of its last approval that was decided so, in the agent's mailbox
	Input  string `json:"input"`  // the first 500 bytes
}
