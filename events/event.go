package events

import (
	"fmt"

	"parley/capabilities"
)

// Event is a fact about one mailbox. Its concrete types are pointers to the structs of this package. A struct is
// encoded as an array of its fields. So each change, even an added field, is a new version.
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
	kindAttentionSet      Kind = 66
	kindTopicMade         Kind = 67
	kindTopicSubscribed   Kind = 68
	kindDigestPosted      Kind = 69
	kindMessageScheduled  Kind = 80
	kindScheduleFired     Kind = 81
	kindScheduleEnded     Kind = 82
	kindFileStored        Kind = 84
	kindFilesDropped      Kind = 85
	kindRulePaused        Kind = 86
	kindMessagesOffered   Kind = 59
	kindMessagesShown     Kind = 60
	kindMessagesHandled   Kind = 61
	kindOffersReturned    Kind = 62
	kindReceiptReported   Kind = 63
	kindMessagesOverdue   Kind = 64
	kindMessageUnreached  Kind = 65
	kindSessionStarted    Kind = 70
	kindSessionMoved      Kind = 71
	kindSessionEnded      Kind = 72
	kindRunsHeld          Kind = 110
	kindNoticeRepeated    Kind = 100
	kindMemberReported    Kind = 101
	kindMessagesFetched   Kind = 102
	kindLeaseAsked        Kind = 90
	kindLeaseGranted      Kind = 91
	kindLeaseRenewed      Kind = 92
	kindLeaseEnded        Kind = 93
	kindTeamMade          Kind = 94
	kindTeamMemberSet     Kind = 95
	kindTeamEnded         Kind = 96
	kindResourceMade      Kind = 120
	kindResourceRenewed   Kind = 121
	kindUseBegun          Kind = 122
	kindUseAllowed        Kind = 123
	kindUseEnded          Kind = 124
	kindMandateGiven      Kind = 130
	kindMandateCharged    Kind = 131
	kindMandateEnded      Kind = 132
	kindCallerNamed       Kind = 133
	kindMessageRepeated   Kind = 160
	kindMembersCounted    Kind = 161
	kindPasskeyAdded      Kind = 172
	kindPasskeyRemoved    Kind = 173
	kindPasskeyRequired   Kind = 174
	kindPasskeyUsed       Kind = 175
	kindDecisionSigned    Kind = 176
	kindReviewerSet       Kind = 140
	kindReviewAsked       Kind = 141
	kindReviewEnded       Kind = 142
	kindMailQueued        Kind = 150
	kindQueuedSent        Kind = 151
	kindQueuedEnded       Kind = 152
	kindUseQueued         Kind = 153
	kindQueuedUseEnded    Kind = 154
	kindFormClaimed       Kind = 155
	kindClaimQueued       Kind = 156
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

func (*RulePaused) kind() Kind { return kindRulePaused }

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

func (*RunsHeld) kind() Kind { return kindRunsHeld }

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

func (*TopicMade) kind() Kind { return kindTopicMade }

func (*TopicSubscribed) kind() Kind { return kindTopicSubscribed }

func (*DigestPosted) kind() Kind { return kindDigestPosted }

func (*AttentionSet) kind() Kind { return kindAttentionSet }

func (*MemberSet) kind() Kind { return kindMemberSet }

func (*AnswerGranted) kind() Kind { return kindAnswerGranted }

func (*MessageScheduled) kind() Kind { return kindMessageScheduled }

func (*ScheduleFired) kind() Kind { return kindScheduleFired }

func (*ScheduleEnded) kind() Kind { return kindScheduleEnded }

func (*FileStored) kind() Kind { return kindFileStored }

func (*FilesDropped) kind() Kind { return kindFilesDropped }

func (*MessagesOffered) kind() Kind { return kindMessagesOffered }

func (*MessagesShown) kind() Kind { return kindMessagesShown }

func (*MessagesHandled) kind() Kind { return kindMessagesHandled }

func (*OffersReturned) kind() Kind { return kindOffersReturned }

func (*MessagesOverdue) kind() Kind { return kindMessagesOverdue }

func (*MessageUnreached) kind() Kind { return kindMessageUnreached }

func (*MemberReported) kind() Kind { return kindMemberReported }

func (*ReceiptReported) kind() Kind { return kindReceiptReported }
func (*SessionStarted) kind() Kind  { return kindSessionStarted }

func (*SessionMoved) kind() Kind { return kindSessionMoved }

func (*SessionEnded) kind() Kind { return kindSessionEnded }

func (*NoticeRepeated) kind() Kind  { return kindNoticeRepeated }
func (*MessagesFetched) kind() Kind { return kindMessagesFetched }
func (*LeaseAsked) kind() Kind      { return kindLeaseAsked }

func (*LeaseGranted) kind() Kind { return kindLeaseGranted }

func (*LeaseRenewed) kind() Kind { return kindLeaseRenewed }

func (*LeaseEnded) kind() Kind { return kindLeaseEnded }

func (*TeamMade) kind() Kind { return kindTeamMade }

func (*TeamMemberSet) kind() Kind { return kindTeamMemberSet }

func (*TeamEnded) kind() Kind { return kindTeamEnded }

func (*ResourceMade) kind() Kind { return kindResourceMade }

func (*ResourceRenewed) kind() Kind { return kindResourceRenewed }

func (*UseBegun) kind() Kind { return kindUseBegun }

func (*UseAllowed) kind() Kind { return kindUseAllowed }

func (*UseEnded) kind() Kind { return kindUseEnded }

func (*MandateGiven) kind() Kind { return kindMandateGiven }

func (*MandateCharged) kind() Kind { return kindMandateCharged }

func (*MandateEnded) kind() Kind { return kindMandateEnded }

func (*CallerNamed) kind() Kind { return kindCallerNamed }

func (*MessageRepeated) kind() Kind { return kindMessageRepeated }

func (*MembersCounted) kind() Kind { return kindMembersCounted }

func (*PasskeyAdded) kind() Kind { return kindPasskeyAdded }

func (*PasskeyRemoved) kind() Kind { return kindPasskeyRemoved }

func (*PasskeyRequired) kind() Kind { return kindPasskeyRequired }

func (*PasskeyUsed) kind() Kind { return kindPasskeyUsed }

func (*DecisionSigned) kind() Kind { return kindDecisionSigned }

func (*ReviewerSet) kind() Kind { return kindReviewerSet }

func (*ReviewAsked) kind() Kind { return kindReviewAsked }

func (*ReviewEnded) kind() Kind { return kindReviewEnded }

func (*MailQueued) kind() Kind { return kindMailQueued }

func (*QueuedSent) kind() Kind { return kindQueuedSent }

func (*QueuedEnded) kind() Kind { return kindQueuedEnded }

func (*UseQueued) kind() Kind { return kindUseQueued }

func (*QueuedUseEnded) kind() Kind { return kindQueuedUseEnded }

func (*FormClaimed) kind() Kind { return kindFormClaimed }

func (*ClaimQueued) kind() Kind { return kindClaimQueued }

// Recorded is an event with the time of its record in the log.
type Recorded struct {
	At    capabilities.Time
	Event Event
}

// schema describes the encoding of one kind of event.
type schema struct {
	name    string
	version uint8
	make    func() Event
}

// schemas lists all kinds of events. A program knows one version of each. To change an event that a release has written,
// raise its version, which raises the log's format, and decode the version before as well.
var schemas = map[Kind]schema{
	kindFormRequested:     {name: "FormRequested", version: 1, make: func() Event { return new(FormRequested) }},
	kindFormAnswered:      {name: "FormAnswered", version: 1, make: func() Event { return new(FormAnswered) }},
	kindFormCancelled:     {name: "FormCancelled", version: 1, make: func() Event { return new(FormCancelled) }},
	kindFormForwarded:     {name: "FormForwarded", version: 1, make: func() Event { return new(FormForwarded) }},
	kindMessagePosted:     {name: "MessagePosted", version: 1, make: func() Event { return new(MessagePosted) }},
	kindMessageDismissed:  {name: "MessageDismissed", version: 1, make: func() Event { return new(MessageDismissed) }},
	kindMessageDelivered:  {name: "MessageDelivered", version: 1, make: func() Event { return new(MessageDelivered) }},
	kindNameBound:         {name: "NameBound", version: 1, make: func() Event { return new(NameBound) }},
	kindNameUnbound:       {name: "NameUnbound", version: 1, make: func() Event { return new(NameUnbound) }},
	kindCapabilityGranted: {name: "CapabilityGranted", version: 1, make: func() Event { return new(CapabilityGranted) }},
	kindCapabilityRevoked: {name: "CapabilityRevoked", version: 1, make: func() Event { return new(CapabilityRevoked) }},
	kindAgentCreated:      {name: "AgentCreated", version: 1, make: func() Event { return new(AgentCreated) }},
	kindAgentUpdated:      {name: "AgentUpdated", version: 1, make: func() Event { return new(AgentUpdated) }},
	kindAgentArchived:     {name: "AgentArchived", version: 1, make: func() Event { return new(AgentArchived) }},
	kindRunStarted:        {name: "RunStarted", version: 1, make: func() Event { return new(RunStarted) }},
	kindRunEnded:          {name: "RunEnded", version: 1, make: func() Event { return new(RunEnded) }},
	kindRuleAdded:         {name: "RuleAdded", version: 1, make: func() Event { return new(RuleAdded) }},
	kindRuleRemoved:       {name: "RuleRemoved", version: 1, make: func() Event { return new(RuleRemoved) }},
	kindRulePaused:        {name: "RulePaused", version: 1, make: func() Event { return new(RulePaused) }},
	kindCapabilityMinted:  {name: "CapabilityMinted", version: 1, make: func() Event { return new(CapabilityMinted) }},
	kindAnswerQueued:      {name: "FormAnswering", version: 1, make: func() Event { return new(AnswerQueued) }},
	kindForwardQueued:     {name: "FormForwarding", version: 1, make: func() Event { return new(ForwardQueued) }},
	kindInvitationMade:    {name: "InvitationMade", version: 1, make: func() Event { return new(InvitationMade) }},
	kindInvitationEnded:   {name: "InvitationEnded", version: 1, make: func() Event { return new(InvitationEnded) }},
	kindNodeMet:           {name: "NodeMet", version: 1, make: func() Event { return new(NodeMet) }},
	kindTokenMade:         {name: "TokenMade", version: 1, make: func() Event { return new(TokenMade) }},
	kindRuleUsed:          {name: "RuleUsed", version: 1, make: func() Event { return new(RuleUsed) }},
	kindProgramSet:        {name: "ProgramSet", version: 1, make: func() Event { return new(ProgramSet) }},
	kindPolicySet:         {name: "PolicySet", version: 1, make: func() Event { return new(PolicySet) }},
	kindRunsHeld:          {name: "RunsHeld", version: 1, make: func() Event { return new(RunsHeld) }},
	kindTokenRenewed:      {name: "TokenRenewed", version: 1, make: func() Event { return new(TokenRenewed) }},
	kindQuotaSet:          {name: "QuotaSet", version: 1, make: func() Event { return new(QuotaSet) }},
	kindNodeDropped:       {name: "NodeDropped", version: 1, make: func() Event { return new(NodeDropped) }},
	kindJournalArchived:   {name: "JournalArchived", version: 1, make: func() Event { return new(JournalArchived) }},
	kindMessageScheduled:  {name: "MessageScheduled", version: 1, make: func() Event { return new(MessageScheduled) }},
	kindScheduleFired:     {name: "ScheduleFired", version: 1, make: func() Event { return new(ScheduleFired) }},
	kindScheduleEnded:     {name: "ScheduleEnded", version: 1, make: func() Event { return new(ScheduleEnded) }},
	kindFileStored:        {name: "FileStored", version: 1, make: func() Event { return new(FileStored) }},
	kindFilesDropped:      {name: "FilesDropped", version: 1, make: func() Event { return new(FilesDropped) }},
	kindMessageSnoozed:    {name: "MessageSnoozed", version: 1, make: func() Event { return new(MessageSnoozed) }},
	kindMessageRestored:   {name: "MessageRestored", version: 1, make: func() Event { return new(MessageRestored) }},
	kindMessagesRead:      {name: "MessagesRead", version: 1, make: func() Event { return new(MessagesRead) }},
	kindDraftSaved:        {name: "DraftSaved", version: 1, make: func() Event { return new(DraftSaved) }},
	kindMessageDrafted:    {name: "MessageDrafted", version: 1, make: func() Event { return new(MessageDrafted) }},
	kindFormReminded:      {name: "FormReminded", version: 1, make: func() Event { return new(FormReminded) }},
	kindFormRouted:        {name: "FormRouted", version: 1, make: func() Event { return new(FormRouted) }},
	kindVoteCast:          {name: "VoteCast", version: 1, make: func() Event { return new(VoteCast) }},
	kindVoteWithdrawn:     {name: "VoteWithdrawn", version: 1, make: func() Event { return new(VoteWithdrawn) }},
	kindAwaySet:           {name: "AwaySet", version: 1, make: func() Event { return new(AwaySet) }},
	kindTopicMade:         {name: "TopicMade", version: 1, make: func() Event { return new(TopicMade) }},
	kindTopicSubscribed:   {name: "TopicSubscribed", version: 1, make: func() Event { return new(TopicSubscribed) }},
	kindDigestPosted:      {name: "DigestPosted", version: 1, make: func() Event { return new(DigestPosted) }},
	kindAttentionSet:      {name: "AttentionSet", version: 1, make: func() Event { return new(AttentionSet) }},
	kindMemberSet:         {name: "MemberSet", version: 1, make: func() Event { return new(MemberSet) }},
	kindAnswerGranted:     {name: "AnswerGranted", version: 1, make: func() Event { return new(AnswerGranted) }},
	kindMessagesOffered:   {name: "MessagesOffered", version: 1, make: func() Event { return new(MessagesOffered) }},
	kindMessagesShown:     {name: "MessagesShown", version: 1, make: func() Event { return new(MessagesShown) }},
	kindMessagesHandled:   {name: "MessagesHandled", version: 1, make: func() Event { return new(MessagesHandled) }},
	kindOffersReturned:    {name: "OffersReturned", version: 1, make: func() Event { return new(OffersReturned) }},
	kindReceiptReported:   {name: "ReceiptReported", version: 1, make: func() Event { return new(ReceiptReported) }},
	kindMessagesOverdue:   {name: "MessagesOverdue", version: 1, make: func() Event { return new(MessagesOverdue) }},
	kindMessageUnreached:  {name: "MessageUnreached", version: 1, make: func() Event { return new(MessageUnreached) }},
	kindMemberReported:    {name: "MemberReported", version: 1, make: func() Event { return new(MemberReported) }},
	kindSessionStarted:    {name: "SessionStarted", version: 1, make: func() Event { return new(SessionStarted) }},
	kindSessionMoved:      {name: "SessionMoved", version: 1, make: func() Event { return new(SessionMoved) }},
	kindSessionEnded:      {name: "SessionEnded", version: 1, make: func() Event { return new(SessionEnded) }},
	kindNoticeRepeated:    {name: "NoticeRepeated", version: 1, make: func() Event { return new(NoticeRepeated) }},
	kindMessagesFetched:   {name: "MessagesFetched", version: 1, make: func() Event { return new(MessagesFetched) }},
	kindLeaseAsked:        {name: "LeaseAsked", version: 1, make: func() Event { return new(LeaseAsked) }},
	kindLeaseGranted:      {name: "LeaseGranted", version: 1, make: func() Event { return new(LeaseGranted) }},
	kindLeaseRenewed:      {name: "LeaseRenewed", version: 1, make: func() Event { return new(LeaseRenewed) }},
	kindLeaseEnded:        {name: "LeaseEnded", version: 1, make: func() Event { return new(LeaseEnded) }},
	kindTeamMade:          {name: "TeamMade", version: 1, make: func() Event { return new(TeamMade) }},
	kindTeamMemberSet:     {name: "TeamMemberSet", version: 1, make: func() Event { return new(TeamMemberSet) }},
	kindTeamEnded:         {name: "TeamEnded", version: 1, make: func() Event { return new(TeamEnded) }},
	kindResourceMade:      {name: "ResourceMade", version: 1, make: func() Event { return new(ResourceMade) }},
	kindResourceRenewed:   {name: "ResourceRenewed", version: 1, make: func() Event { return new(ResourceRenewed) }},
	kindUseBegun:          {name: "UseBegun", version: 1, make: func() Event { return new(UseBegun) }},
	kindUseAllowed:        {name: "UseAllowed", version: 1, make: func() Event { return new(UseAllowed) }},
	kindUseEnded:          {name: "UseEnded", version: 1, make: func() Event { return new(UseEnded) }},
	kindMandateGiven:      {name: "MandateGiven", version: 1, make: func() Event { return new(MandateGiven) }},
	kindMandateCharged:    {name: "MandateCharged", version: 1, make: func() Event { return new(MandateCharged) }},
	kindMandateEnded:      {name: "MandateEnded", version: 1, make: func() Event { return new(MandateEnded) }},
	kindCallerNamed:       {name: "CallerNamed", version: 1, make: func() Event { return new(CallerNamed) }},
	kindMessageRepeated:   {name: "MessageRepeated", version: 1, make: func() Event { return new(MessageRepeated) }},
	kindMembersCounted:    {name: "MembersCounted", version: 1, make: func() Event { return new(MembersCounted) }},
	kindPasskeyAdded:      {name: "PasskeyAdded", version: 1, make: func() Event { return new(PasskeyAdded) }},
	kindPasskeyRemoved:    {name: "PasskeyRemoved", version: 1, make: func() Event { return new(PasskeyRemoved) }},
	kindPasskeyRequired:   {name: "PasskeyRequired", version: 1, make: func() Event { return new(PasskeyRequired) }},
	kindPasskeyUsed:       {name: "PasskeyUsed", version: 1, make: func() Event { return new(PasskeyUsed) }},
	kindDecisionSigned:    {name: "DecisionSigned", version: 1, make: func() Event { return new(DecisionSigned) }},
	kindReviewerSet:       {name: "ReviewerSet", version: 1, make: func() Event { return new(ReviewerSet) }},
	kindReviewAsked:       {name: "ReviewAsked", version: 1, make: func() Event { return new(ReviewAsked) }},
	kindReviewEnded:       {name: "ReviewEnded", version: 1, make: func() Event { return new(ReviewEnded) }},
	kindMailQueued:        {name: "MailQueued", version: 1, make: func() Event { return new(MailQueued) }},
	kindQueuedSent:        {name: "QueuedSent", version: 1, make: func() Event { return new(QueuedSent) }},
	kindQueuedEnded:       {name: "QueuedEnded", version: 1, make: func() Event { return new(QueuedEnded) }},
	kindUseQueued:         {name: "UseQueued", version: 1, make: func() Event { return new(UseQueued) }},
	kindQueuedUseEnded:    {name: "QueuedUseEnded", version: 1, make: func() Event { return new(QueuedUseEnded) }},
	kindFormClaimed:       {name: "FormClaimed", version: 1, make: func() Event { return new(FormClaimed) }},
	kindClaimQueued:       {name: "ClaimQueued", version: 1, make: func() Event { return new(ClaimQueued) }},
	kindFormAmended:       {name: "FormAmended", version: 1, make: func() Event { return new(FormAmended) }},
	kindTokenRevoked:      {name: "TokenRevoked", version: 1, make: func() Event { return new(TokenRevoked) }},
}

// Name returns the name of an event's type, as in "FormRequested".
func Name(e Event) string { return schemas[e.kind()].name }

// Version returns the version in which an event is encoded.
func Version(e Event) int { return int(schemas[e.kind()].version) }

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
		return fmt.Sprintf("%s of version %d: this program knows version %d", s.name, e.Version, s.version)
	}
	return fmt.Sprintf("event of unknown kind %d", e.Kind)
}
