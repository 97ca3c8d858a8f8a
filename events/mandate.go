package events

import (
	"parley/capabilities"
)

// MandateGiven gives an agent leave that ends: calls that one of Rules covers are allowed without a question, until it has ended, or one
// of its limits is reached.
type MandateGiven struct {
	Mandate capabilities.ID   `json:"mandate"`
	Form    capabilities.ID   `json:"form"`             // the approval that it was given with
	By      capabilities.ID   `json:"by"`               // the agent's host
	Session capabilities.ID   `json:"session,omitzero"` // of a coding agent: the session that may make the calls, with which it ends
	Until   capabilities.Time `json:"until,omitzero"`   // zero for none
	Calls   uint32            `json:"calls"`            // so many at most
	Rules   []MandateRule     `json:"rules"`
	Sums    []MandateSum      `json:"sums,omitempty"`
}

// MandateRule is a standing rule's part of a mandate: it covers calls of a tool. Without Tool it covers the command lines of each tool that
// runs some, or the files of each that reads or writes some.
type MandateRule struct {
	Tool   string   `json:"tool,omitempty"`
	Covers Coverage `json:"covers"`
}

// MandateSum bounds what a member of the inputs of a tool's calls adds up to, in millionths.
type MandateSum struct {
	Tool   string `json:"tool"`
	Member string `json:"member"` // of the input itself, and not of an object in it
	Most   int64  `json:"most"`
}

// MandateCharged records a call that a mandate allows. It is in the log before the call is allowed. A call that several mandates or rules
// allow together is charged to each.
type MandateCharged struct {
	Mandate capabilities.ID `json:"mandate"`
	Key     string          `json:"key,omitempty"` // asking again with it is no other call
	Tool    string          `json:"tool"`
	Input   string          `json:"input"` // a JSON document
	Folder  string          `json:"folder,omitempty"`
	Amounts []int64         `json:"amounts,omitempty"` // of each of the mandate's sums, in their order and in millionths
}

// CallerNamed records which session of a coding agent makes the call of an approval that the agent asked for. It is in the same commit as
// the approval.
type CallerNamed struct {
	Form    capabilities.ID `json:"form"`
	Session capabilities.ID `json:"session"` // its agent
}

// MandateEnded ends a mandate before its limits do.
type MandateEnded struct {
	Mandate capabilities.ID `json:"mandate"`
	By      capabilities.ID `json:"by"`
}
