package view

import (
	"parley/capabilities"
)

// Search describes messages of a mailbox. A zero member fits all.
type Search struct {
	// Text has words that the message with its subject has, all of them, or its answer. Words in quotation marks are a phrase,
	// and one that ends with * is the beginning of a word. Accents and case make no difference. At most 1,000 bytes.
	Text     string            `json:"text,omitempty"`
	Subject  string            `json:"subject,omitempty"`  // words of the subject alone, in the same form
	Types    []string          `json:"types,omitempty"`    // message, form, request, approval
	Outcomes []string          `json:"outcomes,omitempty"` // answered, declined, cancelled, expired, superseded
	Verdict  string            `json:"verdict,omitempty"`  // allowed or denied: approvals that were answered so
	Tool     string            `json:"tool,omitempty"`     // approvals of calls of that tool
	Since    capabilities.Time `json:"since,omitzero"`
	Until    capabilities.Time `json:"until,omitzero"`  // before that time
	Order    string            `json:"order,omitempty"` // newest, the default, oldest, relevance, urgency, subject or ended: the end that was last first, of forms that have ended
}

// MaxCounted is how far the matches of a search are counted.
const MaxCounted = 1000

// Found are the messages that a search has found.
type Found struct {
	Messages []Message `json:"messages"`
	Next     int       `json:"next,omitempty"`   // the skip of the next page; 0 if there are no more
	Behind   uint64    `json:"behind,omitempty"` // events of the mailbox that were not looked at, since it takes longer to read them
}
