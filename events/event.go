package events

import (
	"parley/capabilities"
)

// Event is a fact about one mailbox. Its concrete types are the pointers to the structs of this package.
// The structs are encoded as arrays of just their fields: every change to one, be it a field more, is a new
// version with an upcast.
type Event interface{ kind() Kind }

// Kind is the number by which an event's type is written down. Numbers are never used again.
type Kind uint8

// The kinds of events.
const (
	kindFormRequested     Kind = 1
	kindFormAnswered      Kind = 2
	kindFormCancelled     Kind = 3
	kindFormForwarded     Kind = 4
	kindMessagePosted     Kind = 5
	kindMessageDismissed  Kind = 6
	kindMessageDelivered  Kind = 7
	kindNameBound         Kind = 8
	kindNameUnbound       Kind = 9
	kindCapabilityGranted Kind = 10
	kindCapabilityRevoked Kind = 11
	kindAgentCreated      Kind = 12
	kindAgentUpdated      Kind = 13
	kindAgentArchived     Kind = 14
	kindRunStarted        Kind = 15
	kindRunEnded          Kind = 16
	kindRuleAdded         Kind = 17
	kindRuleRemoved       Kind = 18
	kindCapabilityMinted  Kind = 19
	kindAnswerQueued      Kind = 20
	kindForwardQueued     Kind = 21
	kindInvitationMade    Kind = 22
	kindInvitationEnded   Kind = 23
	kindNodeMet           Kind = 24
	kindTokenMade         Kind = 25
	kindTokenRevoked      Kind = 26
	kindRuleUsed          Kind = 27
	kindProgramSet        Kind = 28
	kindPolicySet         Kind = 29
	kindRulesOffered      Kind = 30
	kindTokenRenewed      Kind = 31
	kindQuotaSet          Kind = 40
	kindNodeDropped       Kind = 41
)

func (*FormRequested) kind() Kind     { return kindFormRequested }
func (*FormAnswered) kind() Kind      { return kindFormAnswered }
func (*FormCancelled) kind() Kind     { return kindFormCancelled }
func (*FormForwarded) kind() Kind     { return kindFormForwarded }
func (*MessagePosted) kind() Kind     { return kindMessagePosted }
func (*MessageDismissed) kind() Kind  { return kindMessageDismissed }
func (*MessageDelivered) kind() Kind  { return kindMessageDelivered }
func (*NameBound) kind() Kind         { return kindNameBound }
func (*NameUnbound) kind() Kind       { return kindNameUnbound }
func (*CapabilityGranted) kind() Kind { return kindCapabilityGranted }
func (*CapabilityRevoked) kind() Kind { return kindCapabilityRevoked }
func (*AgentCreated) kind() Kind      { return kindAgentCreated }
func (*AgentUpdated) kind() Kind      { return kindAgentUpdated }
func (*AgentArchived) kind() Kind     { return kindAgentArchived }
func (*RunStarted) kind() Kind        { return kindRunStarted }
func (*RunEnded) kind() Kind          { return kindRunEnded }
func (*RuleAdded) kind() Kind         { return kindRuleAdded }
func (*RuleRemoved) kind() Kind       { return kindRuleRemoved }
func (*CapabilityMinted) kind() Kind  { return kindCapabilityMinted }
func (*AnswerQueued) kind() Kind      { return kindAnswerQueued }
func (*ForwardQueued) kind() Kind     { return kindForwardQueued }
func (*InvitationMade) kind() Kind    { return kindInvitationMade }
func (*InvitationEnded) kind() Kind   { return kindInvitationEnded }
func (*NodeMet) kind() Kind           { return kindNodeMet }
func (*TokenMade) kind() Kind         { return kindTokenMade }
func (*TokenRevoked) kind() Kind      { return kindTokenRevoked }
func (*TokenRenewed) kind() Kind      { return kindTokenRenewed }
func (*RuleUsed) kind() Kind          { return kindRuleUsed }
func (*ProgramSet) kind() Kind        { return kindProgramSet }
func (*PolicySet) kind() Kind         { return kindPolicySet }
func (*RulesOffered) kind() Kind      { return kindRulesOffered }
func (*QuotaSet) kind() Kind          { return kindQuotaSet }
func (*NodeDropped) kind() Kind       { return kindNodeDropped }

// Recorded is an event as it stands in the log.
type Recorded struct {
	At    capabilities.Time
	Event Event
}
