package view

import (
	"parley/capabilities"
	"parley/events"
)

// Rule is a standing rule: calls of a tool that it covers are always allowed, or never.
type Rule struct {
	Rule  capabilities.ID   `json:"rule"`
	Agent capabilities.ID   `json:"agent"`
	Tool  string            `json:"tool"`
	Words string            `json:"words"` // which calls it covers
	Allow bool              `json:"allow"`
	Made  capabilities.Time `json:"made"`
	Until capabilities.Time `json:"until,omitzero"`
	Form  capabilities.ID   `json:"form,omitzero"` // the approval whose answer made it
	Uses  uint64            `json:"uses"`
	Used  capabilities.Time `json:"lastUsed,omitzero"`

	Covers events.Coverage `json:"covers"` // the calls that Words describes
}
