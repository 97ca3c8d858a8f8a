package events

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
)

// Event is a fact about one mailbox. Its concrete types are pointers to the structs of this package. A struct is
// encoded as an array of its fields. So each change, even an added field, is a new version with an upcast.
type Event interface{ kind() Kind }

// Kind is the number of an event's type in the log. A number is never used for another type.
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
	kindTokenRenewed      Kind = 31
	kindQuotaSet          Kind = 40
	kindNodeDropped       Kind = 41
	kindJournalArchived   Kind = 42
	kindMessageSnoozed    Kind = 43
	kindMessageRestored   Kind = 44
	kindMessagesRead      Kind = 45
	kindDraftSaved        Kind = 46
	kindFormAmended       Kind = 50
	kindFormReminded      Kind = 51
	kindFormRouted        Kind = 52
	kindVoteCast          Kind = 53
	kindVoteWithdrawn     Kind = 54
	kindAwaySet           Kind = 55
	kindMemberSet         Kind = 56
	kindMessageDrafted    Kind = 57
	kindAnswerGranted     Kind = 58
)

func (*FormRequested) kind() Kind { return kindFormRequested }

func (*FormAnswered) kind() Kind { return kindFormAnswered }

func (*FormCancelled) kind() Kind { return kindFormCancelled }

func (*FormForwarded) kind() Kind { return kindFormForwarded }

func (*MessagePosted) kind() Kind { return kindMessagePosted }

func (*MessageDismissed) kind() Kind { return kindMessageDismissed }

func (*MessageDelivered) kind() Kind { return kindMessageDelivered }

func (*NameBound) kind() Kind { return kindNameBound }

func (*NameUnbound) kind() Kind { return kindNameUnbound }

func (*CapabilityGranted) kind() Kind { return kindCapabilityGranted }

func (*CapabilityRevoked) kind() Kind { return kindCapabilityRevoked }

func (*AgentCreated) kind() Kind { return kindAgentCreated }

func (*AgentUpdated) kind() Kind { return kindAgentUpdated }

func (*AgentArchived) kind() Kind { return kindAgentArchived }

func (*RunStarted) kind() Kind { return kindRunStarted }

func (*RunEnded) kind() Kind { return kindRunEnded }

func (*RuleAdded) kind() Kind { return kindRuleAdded }

func (*RuleRemoved) kind() Kind { return kindRuleRemoved }

func (*CapabilityMinted) kind() Kind { return kindCapabilityMinted }

func (*AnswerQueued) kind() Kind { return kindAnswerQueued }

func (*ForwardQueued) kind() Kind { return kindForwardQueued }

func (*InvitationMade) kind() Kind { return kindInvitationMade }

func (*InvitationEnded) kind() Kind { return kindInvitationEnded }

func (*NodeMet) kind() Kind { return kindNodeMet }

func (*TokenMade) kind() Kind { return kindTokenMade }

func (*TokenRevoked) kind() Kind { return kindTokenRevoked }

func (*TokenRenewed) kind() Kind { return kindTokenRenewed }

func (*RuleUsed) kind() Kind { return kindRuleUsed }

func (*ProgramSet) kind() Kind { return kindProgramSet }

func (*PolicySet) kind() Kind { return kindPolicySet }

func (*QuotaSet) kind() Kind { return kindQuotaSet }

func (*NodeDropped) kind() Kind { return kindNodeDropped }

func (*JournalArchived) kind() Kind { return kindJournalArchived }

func (*MessageSnoozed) kind() Kind { return kindMessageSnoozed }

func (*MessageRestored) kind() Kind { return kindMessageRestored }

func (*MessagesRead) kind() Kind { return kindMessagesRead }

func (*DraftSaved) kind() Kind { return kindDraftSaved }

func (*MessageDrafted) kind() Kind { return kindMessageDrafted }

func (*FormAmended) kind() Kind { return kindFormAmended }

func (*FormReminded) kind() Kind { return kindFormReminded }

func (*FormRouted) kind() Kind { return kindFormRouted }

func (*VoteCast) kind() Kind { return kindVoteCast }

func (*VoteWithdrawn) kind() Kind { return kindVoteWithdrawn }

func (*AwaySet) kind() Kind { return kindAwaySet }

func (*MemberSet) kind() Kind { return kindMemberSet }

func (*AnswerGranted) kind() Kind { return kindAnswerGranted }

// Recorded is an event with the time of its record in the log.
type Recorded struct {
	At    capabilities.Time
	Event Event
}

// schema describes the encoding of one kind of event, and the upcasts of its earlier versions.
type schema struct {
	name    string
	version uint8
	make    func() Event
	upcast  map[uint8]upcast // by the version that it converts to the next
}

// upcast converts the payload of one version to that of the next. Both are msgpack arrays.
type upcast func(payload []byte) ([]byte, error)

// schemas lists all kinds of events. To change an event, raise its version, add the upcast from the version before, and
// add a sample to testdata.
var schemas = map[Kind]schema{
	kindFormRequested:     {name: "FormRequested", version: 5, make: func() Event { return new(FormRequested) }, upcast: map[uint8]upcast{1: shorterForm(formFields - 4), 2: shorterForm(formFields - 3), 3: shorterForm(formFields - 2), 4: shorterForm(formFields - 1)}},
	kindFormAnswered:      {name: "FormAnswered", version: 2, make: func() Event { return new(FormAnswered) }, upcast: map[uint8]upcast{1: lengthened(6)}},
	kindFormCancelled:     {name: "FormCancelled", version: 2, make: func() Event { return new(FormCancelled) }, upcast: map[uint8]upcast{1: lengthened(5)}},
	kindFormForwarded:     {name: "FormForwarded", version: 3, make: func() Event { return new(FormForwarded) }, upcast: map[uint8]upcast{1: forwardedVia, 2: lengthened(forwardedFields - 1)}},
	kindMessagePosted:     {name: "MessagePosted", version: 1, make: func() Event { return new(MessagePosted) }},
	kindMessageDismissed:  {name: "MessageDismissed", version: 1, make: func() Event { return new(MessageDismissed) }},
	kindMessageDelivered:  {name: "MessageDelivered", version: 2, make: func() Event { return new(MessageDelivered) }, upcast: map[uint8]upcast{1: deliveredOne}},
	kindNameBound:         {name: "NameBound", version: 1, make: func() Event { return new(NameBound) }},
	kindNameUnbound:       {name: "NameUnbound", version: 1, make: func() Event { return new(NameUnbound) }},
	kindCapabilityGranted: {name: "CapabilityGranted", version: 1, make: func() Event { return new(CapabilityGranted) }},
	kindCapabilityRevoked: {name: "CapabilityRevoked", version: 1, make: func() Event { return new(CapabilityRevoked) }},
	kindAgentCreated:      {name: "AgentCreated", version: 1, make: func() Event { return new(AgentCreated) }},
	kindAgentUpdated:      {name: "AgentUpdated", version: 1, make: func() Event { return new(AgentUpdated) }},
	kindAgentArchived:     {name: "AgentArchived", version: 1, make: func() Event { return new(AgentArchived) }},
	kindRunStarted:        {name: "RunStarted", version: 1, make: func() Event { return new(RunStarted) }},
	kindRunEnded:          {name: "RunEnded", version: 3, make: func() Event { return new(RunEnded) }, upcast: map[uint8]upcast{1: lengthened(3), 2: lengthened(4)}},
	kindRuleAdded:         {name: "RuleAdded", version: 2, make: func() Event { return new(RuleAdded) }, upcast: map[uint8]upcast{1: ruleShaped}},
	kindRuleRemoved:       {name: "RuleRemoved", version: 1, make: func() Event { return new(RuleRemoved) }},
	kindCapabilityMinted:  {name: "CapabilityMinted", version: 1, make: func() Event { return new(CapabilityMinted) }},
	kindAnswerQueued:      {name: "FormAnswering", version: 3, make: func() Event { return new(AnswerQueued) }, upcast: map[uint8]upcast{1: lengthened(answerQueuedFields - 2), 2: lengthened(answerQueuedFields - 1)}},
	kindForwardQueued:     {name: "FormForwarding", version: 2, make: func() Event { return new(ForwardQueued) }, upcast: map[uint8]upcast{1: lengthened(forwardQueuedFields - 1)}},
	kindInvitationMade:    {name: "InvitationMade", version: 2, make: func() Event { return new(InvitationMade) }, upcast: map[uint8]upcast{1: lengthened(5)}},
	kindInvitationEnded:   {name: "InvitationEnded", version: 1, make: func() Event { return new(InvitationEnded) }},
	kindNodeMet:           {name: "NodeMet", version: 2, make: func() Event { return new(NodeMet) }, upcast: map[uint8]upcast{1: metAnywhere}},
	kindTokenMade:         {name: "TokenMade", version: 2, make: func() Event { return new(TokenMade) }, upcast: map[uint8]upcast{1: tokenAlone}},
	kindRuleUsed:          {name: "RuleUsed", version: 1, make: func() Event { return new(RuleUsed) }},
	kindProgramSet:        {name: "ProgramSet", version: 2, make: func() Event { return new(ProgramSet) }, upcast: map[uint8]upcast{1: programUnconfined}},
	kindPolicySet:         {name: "PolicySet", version: 1, make: func() Event { return new(PolicySet) }},
	kindTokenRenewed:      {name: "TokenRenewed", version: 1, make: func() Event { return new(TokenRenewed) }},
	kindQuotaSet:          {name: "QuotaSet", version: 1, make: func() Event { return new(QuotaSet) }},
	kindNodeDropped:       {name: "NodeDropped", version: 1, make: func() Event { return new(NodeDropped) }},
	kindJournalArchived:   {name: "JournalArchived", version: 1, make: func() Event { return new(JournalArchived) }},
	kindMessageSnoozed:    {name: "MessageSnoozed", version: 1, make: func() Event { return new(MessageSnoozed) }},
	kindMessageRestored:   {name: "MessageRestored", version: 1, make: func() Event { return new(MessageRestored) }},
	kindMessagesRead:      {name: "MessagesRead", version: 1, make: func() Event { return new(MessagesRead) }},
	kindDraftSaved:        {name: "DraftSaved", version: 1, make: func() Event { return new(DraftSaved) }},
	kindMessageDrafted:    {name: "MessageDrafted", version: 1, make: func() Event { return new(MessageDrafted) }},
	kindFormReminded:      {name: "FormReminded", version: 1, make: func() Event { return new(FormReminded) }},
	kindFormRouted:        {name: "FormRouted", version: 1, make: func() Event { return new(FormRouted) }},
	kindVoteCast:          {name: "VoteCast", version: 2, make: func() Event { return new(VoteCast) }, upcast: map[uint8]upcast{1: lengthened(voteFields - 1)}},
	kindVoteWithdrawn:     {name: "VoteWithdrawn", version: 1, make: func() Event { return new(VoteWithdrawn) }},
	kindAwaySet:           {name: "AwaySet", version: 1, make: func() Event { return new(AwaySet) }},
	kindMemberSet:         {name: "MemberSet", version: 1, make: func() Event { return new(MemberSet) }},
	kindAnswerGranted:     {name: "AnswerGranted", version: 1, make: func() Event { return new(AnswerGranted) }},
	kindFormAmended:       {name: "FormAmended", version: 1, make: func() Event { return new(FormAmended) }},
	kindTokenRevoked:      {name: "TokenRevoked", version: 1, make: func() Event { return new(TokenRevoked) }},
}

// lengthened returns the upcast that adds a field to an event with a number of fields, at most 14. The field is nil,
// which decodes to the zero value.
func lengthened(fields byte) upcast {
	return func(payload []byte) ([]byte, error) {
		if len(payload) == 0 || payload[0] != msgpcode.FixedArrayLow|fields {
			return nil, errMalformed
		}
		lifted := append(bytes.Clone(payload), msgpcode.Nil)
		lifted[0]++
		return lifted, nil
	}
}

// Name returns the name of an event's type, as in "FormRequested".
func Name(e Event) string { return schemas[e.kind()].name }

// Version returns the version in which an event is encoded.
func Version(e Event) int {
	switch e := e.(type) {
	case *FormForwarded:
		if e.Because.IsZero() {
			return 2
		}
	case *ForwardQueued:
		if e.Because.IsZero() {
			return 1
		}
	case *RunEnded:
		if e.By.IsZero() {
			return 2
		}
	case *AnswerQueued:
		if e.Revision == 0 {
			return 2
		}
	}
	return int(schemas[e.kind()].version)
}

// UnknownError reports an event of an unknown kind or version, or without a kind a frame of an unknown format. A newer
// version of the program has written it.
type UnknownError struct {
	Kind    Kind
	Version uint64
}

// Error implements error.
func (e *UnknownError) Error() string {
	if e.Kind == 0 {
		return fmt.Sprintf("the log has format %d: this program knows formats %d to %d", e.Version, layoutFormat, frameFormat)
	}
	if s, ok := schemas[e.Kind]; ok {
		return fmt.Sprintf("%s of version %d: this program knows versions up to %d", s.name, e.Version, s.version)
	}
	return fmt.Sprintf("event of unknown kind %d", e.Kind)
}

// lift upcasts a payload of an earlier version to the current one.
func (s schema) lift(k Kind, version uint8, payload []byte) ([]byte, error) {
	if version == 0 || version > s.version {
		return nil, &UnknownError{Kind: k, Version: uint64(version)}
	}
	for v := version; v < s.version; v++ {
		up, ok := s.upcast[v]
		if !ok {
			return nil, &UnknownError{Kind: k, Version: uint64(version)}
		}
		lifted, err := up(payload)
		if err != nil {
			return nil, fmt.Errorf("upcast %s from version %d: %w", s.name, v, err)
		}
		payload = lifted
	}
	return payload, nil
}

// encodeLifted upcasts an event of an earlier version and encodes it again.
func encodeLifted(e Event) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	enc.UseArrayEncodedStructs(true)
	err := enc.Encode(e)
	return buf.Bytes(), err
}
