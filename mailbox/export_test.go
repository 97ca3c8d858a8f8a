package mailbox

import (
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/quota"
)

// The tests of this package are outside it, since package mailboxtest imports it. This file gives them access to the
// few unexported identifiers that they need.

const (
	MaxOrigin     = maxOrigin
	MaxInput      = maxInput
	MaxIntroduced = maxIntroduced
	DayLength     = dayLength
	DecisionField = decisionField
	RuleField     = ruleField
	UntilField    = untilField
	InputField    = inputField
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
func (l *Names) Values() map[string]capabilities.Value {
	all, err := l.all()
	if err != nil {
		panic(err)
	}
	return all
}

// OriginKeys returns the number of keys in the index of origins.
func (l *Mail) OriginKeys() int { return len(l.Origins.Entries()) }

// IntroducedBy is introducedBy.
func (r *PeerDirectory) IntroducedBy(node capabilities.NodeID) int { return r.introducedBy(node) }

// ApprovalFields is approvalFields.
func ApprovalFields() []events.Field { return approvalFields(anyDecision) }

// Recount counts what an agent uses and what its mailbox holds for senders, but for the bytes of a day.
func Recount(s *State, messages []*Message) (own quota.Amounts, senders map[capabilities.ID]quota.Amounts) {
	senders = map[capabilities.ID]quota.Amounts{}
	held := func(from capabilities.ID, q quota.Quota, n int64) {
		amounts := senders[s.Account.of(from)]
		amounts[q] += n
		senders[s.Account.of(from)] = amounts
	}
	for _, m := range messages {
		switch {
		case isHeld(s, m):
			held(m.From(), quota.Inbox, m.Size())
			if m.Form != nil {
				held(m.From(), quota.Forms, 1)
			}
		case m.Form != nil && m.From() == s.ID && m.Form.IsOpen():
			own[asked(m.Form.Kind)]++
			own[quota.Bytes] += m.Size()
		}
	}
	for name, v := range s.Names.Values() {
		own[quota.Names]++
		own[quota.Bytes] += sizeOfName(name, v)
	}
	made, err := s.Names.Made()
	if err != nil {
		panic(err)
	}
	own[quota.Agents] = int64(len(made))
	for _, g := range s.Grants.Minted() {
		if g.By != s.ID {
			held(g.By, quota.Grants, 1)
		}
	}
	return own, senders
}
