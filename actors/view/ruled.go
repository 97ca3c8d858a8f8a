package view

import (
	"parley"
	"parley/capabilities"
)

// RuledCall is a call of an agent that was decided without a question. One of Rule and Mandate decided it, or else the agent's policy.
type RuledCall struct {
	Place   RuledPlace
	Agent   capabilities.ID
	Name    string            // the reader's name for the agent; "" if that is not known
	Call    parley.Permission // Tool, Input and Folder
	Allowed bool
	Rule    capabilities.ID
	Mandate capabilities.ID
	Words   string // which calls the rule or the mandate covers; "" for the policy, and for what is in an archive elsewhere
}

// RuledPlace is the place of a call among those that were decided without a question, by time and by the order in which the node came to
// know of them.
type RuledPlace struct {
	At capabilities.Time
	ID int64
}

// RuledQuery picks calls that were decided without a question. A zero member fits all.
type RuledQuery struct {
	Text    string // as in Search
	Tool    string
	Verdict string // allowed or denied
	Since   capabilities.Time
	Before  RuledPlace // only those before it
	Limit   int
}

// Decided is how many calls of an agent were decided in some time: by those whom it asked, and without a question.
type Decided struct{ Allowed, Denied int }
