package events

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// schema says how one kind of event is written down today, and how what was written before becomes that.
type schema struct {
	name    string
	version uint8
	make    func() Event
	upcast  map[uint8]upcast // by the version that it lifts to the next
}

// upcast turns the payload of one version into that of the next. It gets and gives the msgpack array.
type upcast func(payload []byte) ([]byte, error)

// schemas is the one list of what can stand in a log. To change an event: raise its version, add the upcast
// from the one before, and add a sample of the new one to testdata.
var schemas = map[Kind]schema{
	kindFormRequested:     {name: "FormRequested", version: 2, make: func() Event { return new(FormRequested) }, upcast: map[uint8]upcast{1: formWithoutOrigin}},
	kindFormAnswered:      {name: "FormAnswered", version: 2, make: func() Event { return new(FormAnswered) }, upcast: map[uint8]upcast{1: lengthened(6)}},
	kindFormCancelled:     {name: "FormCancelled", version: 2, make: func() Event { return new(FormCancelled) }, upcast: map[uint8]upcast{1: lengthened(5)}},
	kindFormForwarded:     {name: "FormForwarded", version: 2, make: func() Event { return new(FormForwarded) }, upcast: map[uint8]upcast{1: forwardedVia}},
	kindMessagePosted:     {name: "MessagePosted", version: 2, make: func() Event { return new(MessagePosted) }, upcast: map[uint8]upcast{1: postedUnkeyed}},
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
	kindRunEnded:          {name: "RunEnded", version: 2, make: func() Event { return new(RunEnded) }, upcast: map[uint8]upcast{1: lengthened(3)}},
	kindRuleAdded:         {name: "RuleAdded", version: 2, make: func() Event { return new(RuleAdded) }, upcast: map[uint8]upcast{1: ruleShaped}},
	kindRuleRemoved:       {name: "RuleRemoved", version: 1, make: func() Event { return new(RuleRemoved) }},
	kindCapabilityMinted:  {name: "CapabilityMinted", version: 1, make: func() Event { return new(CapabilityMinted) }},
	kindAnswerQueued:      {name: "FormAnswering", version: 2, make: func() Event { return new(AnswerQueued) }, upcast: map[uint8]upcast{1: lengthened(6)}},
	kindForwardQueued:     {name: "FormForwarding", version: 1, make: func() Event { return new(ForwardQueued) }},
	kindInvitationMade:    {name: "InvitationMade", version: 2, make: func() Event { return new(InvitationMade) }, upcast: map[uint8]upcast{1: lengthened(5)}},
	kindInvitationEnded:   {name: "InvitationEnded", version: 1, make: func() Event { return new(InvitationEnded) }},
	kindNodeMet:           {name: "NodeMet", version: 2, make: func() Event { return new(NodeMet) }, upcast: map[uint8]upcast{1: metAnywhere}},
	kindTokenMade:         {name: "TokenMade", version: 2, make: func() Event { return new(TokenMade) }, upcast: map[uint8]upcast{1: tokenAlone}},
	kindRuleUsed:          {name: "RuleUsed", version: 1, make: func() Event { return new(RuleUsed) }},
	kindProgramSet:        {name: "ProgramSet", version: 2, make: func() Event { return new(ProgramSet) }, upcast: map[uint8]upcast{1: programUnconfined}},
	kindPolicySet:         {name: "PolicySet", version: 1, make: func() Event { return new(PolicySet) }},
	kindRulesOffered:      {name: "RulesOffered", version: 1, make: func() Event { return new(RulesOffered) }},
	kindTokenRenewed:      {name: "TokenRenewed", version: 1, make: func() Event { return new(TokenRenewed) }},
	kindQuotaSet:          {name: "QuotaSet", version: 1, make: func() Event { return new(QuotaSet) }},
	kindNodeDropped:       {name: "NodeDropped", version: 1, make: func() Event { return new(NodeDropped) }},
	kindTokenRevoked:      {name: "TokenRevoked", version: 1, make: func() Event { return new(TokenRevoked) }},
}

// lengthened lifts an event of so many fields, at most 14, to one that has another after them: it gets nil, which is read
// as the zero value.
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

// Name gives the name of an event's type, as in "FormRequested".
func Name(e Event) string { return schemas[e.kind()].name }

// Version returns the version in which an event is written down today.
func Version(e Event) int {
	if f, ok := e.(*FormRequested); ok && f.Origin == nil {
		return 1
	}
	return int(schemas[e.kind()].version)
}

// UnknownError says that an event was written by a newer program: its kind or version is unknown here.
type UnknownError struct {
	Kind    Kind
	Version uint8
}

// Error implements error.
func (e *UnknownError) Error() string {
	if s, ok := schemas[e.Kind]; ok {
		return fmt.Sprintf("%s of version %d: this program knows versions up to %d", s.name, e.Version, s.version)
	}
	return fmt.Sprintf("event of unknown kind %d", e.Kind)
}

// lift brings a payload of an older version up to today's.
func (s schema) lift(k Kind, version uint8, payload []byte) ([]byte, error) {
	if version == 0 || version > s.version {
		return nil, &UnknownError{Kind: k, Version: version}
	}
	for v := version; v < s.version; v++ {
		up, ok := s.upcast[v]
		if !ok {
			return nil, &UnknownError{Kind: k, Version: version}
		}
		lifted, err := up(payload)
		if err != nil {
			return nil, fmt.Errorf("upcast %s from version %d: %w", s.name, v, err)
		}
		payload = lifted
	}
	return payload, nil
}

// encodeLifted encodes an event of an older version as one of today's.
func encodeLifted(e Event) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	enc.UseArrayEncodedStructs(true)
	err := enc.Encode(e)
	return buf.Bytes(), err
}
