package mailbox

import (
	"maps"

	"parley/capabilities"
	"parley/events"
)

// The tests of this package are outside it, since package mailboxtest imports it. This file gives them access to the
// few unexported identifiers that they need.

const (
	MaxOrigin     = maxOrigin
	MaxIntroduced = maxIntroduced
	DayLength     = dayLength
	DecisionField = decisionField
	RuleField     = ruleField
)

// AgentRef is agentRef.
func AgentRef(id capabilities.ID) capabilities.Ref { return agentRef(id) }

// EndedForOthers is endedForOthers.
func (f *Form) EndedForOthers() error { return f.endedForOthers() }

// Given returns a grant that the agent gave.
func (l *Grants) Given(id capabilities.ID) (capabilities.Grant, bool) { return l.given.Get(id) }

// SetRoots sets the roots of references.
func (l *Grants) SetRoots(roots map[capabilities.ID]capabilities.ID) { l.roots = roots }

// Values returns the values of all names.
func (l *Names) Values() map[string]capabilities.Value { return maps.Clone(l.values) }

// OriginKeys returns the number of keys in the index of origins.
func (l *Mail) OriginKeys() int { return len(l.origins) }

// IntroducedBy is introducedBy.
func (r *PeerDirectory) IntroducedBy(node capabilities.NodeID) int { return r.introducedBy(node) }

// ApprovalFields is approvalFields.
func ApprovalFields() []events.Field { return approvalFields() }
