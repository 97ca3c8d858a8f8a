package view

import (
	"encoding/json"

	"parley"
	"parley/capabilities"
)

// Mandate is leave that an agent was given with the answer to one of its approvals, and what is left of it.
type Mandate struct {
	Mandate capabilities.ID   `json:"mandate"`
	Agent   capabilities.ID   `json:"agent"`
	Form    capabilities.ID   `json:"form"`             // the approval
	By      capabilities.ID   `json:"by"`               // who gave it
	Session capabilities.ID   `json:"session,omitzero"` // of a coding agent: the session that it is for, and ends with
	Words   []string          `json:"words"`            // which calls it covers: those of one of these
	Given   capabilities.Time `json:"given"`
	Until   capabilities.Time `json:"until,omitzero"`
	Calls   int               `json:"calls"` // so many at most
	Used    int               `json:"used"`
	Sums    []SpentSum        `json:"sums,omitempty"`

	End   parley.MandateEnd `json:"end,omitempty"`  // how it has ended; "" if it lasts
	Ended capabilities.Time `json:"ended,omitzero"` // of one that was revoked, or ended with its session
}

// Left returns how many more calls the mandate covers at most.
func (m *Mandate) Left() int { return m.Calls - m.Used }

// SpentSum is what a member of the inputs of a tool's calls may add up to. Amounts are plain numbers.
type SpentSum struct {
	Tool   string `json:"tool"`
	Member string `json:"member"`
	Most   string `json:"most"`
	Spent  string `json:"spent"`
	Left   string `json:"left"`
}

// MandateCall is a call that a mandate has covered.
type MandateCall struct {
	At      capabilities.Time `json:"at"` // when it was charged, before it was allowed
	Tool    string            `json:"tool"`
	Input   json.RawMessage   `json:"input"`
	Folder  string            `json:"folder,omitempty"`
	Amounts []string          `json:"amounts,omitempty"` // of the mandate's sums, in their order
}
