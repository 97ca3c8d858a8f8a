package api

import (
	"context"
	"reflect"

	"parley/actors/view"
)

// The addresses of a node's HTTP server that clients know.
const (
	CallPath      = "/rpc/" // with the name of an operation behind it
	WebSocketPath = "/ws"
	OpenAPIPath   = "/openapi.json"
	HealthPath    = "/healthz" // needs no token
)

// MaxBody bounds a request, in bytes of JSON.
const MaxBody = 1 << 20

// Scope is the part of an agent's authority that an operation needs. A caller on the node's own socket has all scopes.
type Scope string

// The scopes.
const (
	ScopeRead   Scope = "read"   // changes nothing
	ScopeAsk    Scope = "ask"    // sends mail, and ends the agent's own forms
	ScopeAnswer Scope = "answer" // settles the forms of others
	ScopeAdmin  Scope = "admin"  // changes the agent's names and grants, and the node
)

// Operation describes one operation of a node.
type Operation struct {
	Name     string
	Scope    Scope
	OfNode   bool // of the whole node, for its host alone
	Below    bool // also for a process below a coding agent, though it is of the node or needs ScopeAdmin
	Waits    bool // a call may block for long; waits are counted apart
	Lists    bool // the response may be large
	Long     bool // the response may take longer than that of any wait
	Request  reflect.Type
	Response reflect.Type
}

// Kind returns the kind of resource that a call of the operation takes a place of.
func (o Operation) Kind() Kind {
	if o.Waits {
		return KindWaits
	}
	return KindCalls
}

type flags uint8

const (
	ofNode flags = 1 << iota
	waits
	lists
	long
	below
)

// Op is the name of an operation that takes a Req and returns a Resp.
type Op[Req, Resp any] string

// Client performs operations for one agent: over a connection to its node, or in the node for the caller of an edge.
type Client interface {
	// Call performs an operation with a request of its type, and stores the response in what response points to, unless that is
	// nil. The error is the operation's.
	Call(ctx context.Context, operation string, request, response any) error
}

// Do performs the operation for an agent.
func (o Op[Req, Resp]) Do(ctx context.Context, c Client, r Req) (resp Resp, err error) {
	err = c.Call(ctx, string(o), r, &resp)
	return resp, err
}

// Run is Do for one that does not want the response.
func (o Op[Req, Resp]) Run(ctx context.Context, c Client, r Req) error {
	return c.Call(ctx, string(o), r, nil)
}

// With returns the operation with its request, for a caller that chooses among several. Its response is not wanted.
func (o Op[Req, Resp]) With(r Req) Act {
	return func(ctx context.Context, c Client) error { return o.Run(ctx, c, r) }
}

// Act is an operation with its request.
type Act func(ctx context.Context, c Client) error

// row returns the operation's row of the table.
func (o Op[Req, Resp]) row(needs Scope, m flags) Operation {
	return Operation{
		Name: string(o), Scope: needs, OfNode: m&ofNode != 0, Waits: m&waits != 0, Lists: m&lists != 0, Long: m&long != 0, Below: m&below != 0,
		Request: reflect.TypeFor[Req](), Response: reflect.TypeFor[Resp](),
	}
}

// The operations.
const (
	MakeAgent    Op[MakeAgentRequest, MakeAgentResponse]    = "make_agent"
	ListNames    Op[ListNamesRequest, ListNamesResponse]    = "list_names"
	Lookup       Op[LookupRequest, LookupResponse]          = "lookup"
	Locate       Op[NameRequest, LocateResponse]            = "locate"
	StoreName    Op[StoreNameRequest, Done]                 = "store_name"
	RenameName   Op[RenameNameRequest, Done]                = "rename_name"
	RemoveName   Op[NameRequest, Done]                      = "remove_name"
	CopyName     Op[CopyNameRequest, Done]                  = "copy_name"
	MakeResource Op[MakeResourceRequest, view.MadeResource] = "make_resource"
	EndResource  Op[NameRequest, Done]                      = "end_resource"
	Invoke       Op[InvokeRequest, view.Use]                = "invoke"
	ListGrants   Op[ListGrantsRequest, ListGrantsResponse]  = "list_grants"
	Revoke       Op[RevokeRequest, Done]                    = "revoke"

	Form              Op[FormRequest, view.Asked]                   = "form"
	RequestCapability Op[CapabilityRequest, view.Asked]             = "request"
	Approve           Op[ApproveRequest, view.Permitted]            = "approve"
	ListRules         Op[ListRulesRequest, ListRulesResponse]       = "list_rules"
	TryRules          Op[TryRulesRequest, view.Trial]               = "try_rules"
	ProposeRules      Op[ProposeRulesRequest, view.Trial]           = "propose_rules"
	MakeRule          Op[MakeRuleRequest, view.TriedRule]           = "make_rule"
	RemoveRule        Op[RemoveRuleRequest, Done]                   = "remove_rule"
	LimitRule         Op[LimitRuleRequest, Done]                    = "limit_rule"
	PauseRule         Op[PauseRuleRequest, Done]                    = "pause_rule"
	ListMandates      Op[ListMandatesRequest, ListMandatesResponse] = "list_mandates"
	GetMandate        Op[MandateRequest, GetMandateResponse]        = "get_mandate"
	EndMandate        Op[MandateRequest, Done]                      = "end_mandate"
	ListPasskeys      Op[ListPasskeysRequest, ListPasskeysResponse] = "list_passkeys"
	BeginPasskey      Op[BeginPasskeyRequest, BeginPasskeyResponse] = "begin_passkey"
	AddPasskey        Op[AddPasskeyRequest, view.Passkey]           = "add_passkey"
	RemovePasskey     Op[RemovePasskeyRequest, Done]                = "remove_passkey"
	RequirePasskey    Op[RequirePasskeyRequest, Done]               = "require_passkey"
	AskPasskey        Op[AskPasskeyRequest, AskPasskeyResponse]     = "ask_passkey"
	Await             Op[AwaitRequest, view.Outcome]                = "await"
	CancelForm        Op[EndRequest, view.Outcome]                  = "cancel_form"
	AmendForm         Op[AmendFormRequest, view.Message]            = "amend_form"
	RespondForm       Op[RespondFormRequest, view.Outcome]          = "respond_form"
	DecideMany        Op[DecideManyRequest, DecideManyResponse]     = "decide_many"
	DeclineForm       Op[DeclineRequest, view.Outcome]              = "decline_form"
	WithdrawVote      Op[MessageRequest, Withdrawn]                 = "withdraw_vote"
	ClaimForm         Op[ClaimFormRequest, view.Claimed]            = "claim_form"
	GrantAnswer       Op[GrantAnswerRequest, view.AnswerRight]      = "grant_answer"
	AnswerWith        Op[AnswerWithRequest, view.Outcome]           = "answer_with"
	ForwardForm       Op[ForwardFormRequest, Done]                  = "forward_form"
	ProveForm         Op[ProofRequest, view.Proof]                  = "proof"
	SetAway           Op[SetAwayRequest, view.StandIns]             = "set_away"
	SetMember         Op[SetMemberRequest, view.StandIns]           = "set_member"
	ListStandIns      Op[StandInsRequest, view.StandIns]            = "list_stand_ins"
	SetAttention      Op[SetAttentionRequest, view.Attention]       = "set_attention"
	GetAttention      Op[GetAttentionRequest, view.Attention]       = "get_attention"
	Resolve           Op[ResolveRequest, view.Outcome]              = "resolve"
	Reject            Op[DeclineRequest, view.Outcome]              = "reject"
	Send              Op[SendRequest, view.Sent]                    = "send"
	Reply             Op[ReplyRequest, view.Sent]                   = "reply"
	Schedule          Op[ScheduleRequest, view.Schedule]            = "schedule"
	ListSchedules     Op[ListSchedulesRequest, view.Schedules]      = "list_schedules"
	EndSchedule       Op[EndScheduleRequest, Done]                  = "end_schedule"
	StoreFile         Op[StoreFileRequest, view.StoredFile]         = "store_file"
	FetchFile         Op[FetchFileRequest, view.FilePart]           = "fetch_file"
	Lease             Op[LeaseRequest, view.Lease]                  = "lease"
	AwaitLease        Op[AwaitLeaseRequest, view.Lease]             = "await_lease"
	RenewLease        Op[RenewLeaseRequest, view.Lease]             = "renew_lease"
	ReleaseLease      Op[ReleaseLeaseRequest, Done]                 = "release_lease"
	ListLeases        Op[ListLeasesRequest, view.Leases]            = "list_leases"
	SetTeam           Op[SetTeamRequest, view.Teams]                = "set_team"
	EndTeam           Op[EndTeamRequest, Done]                      = "end_team"
	ListTeams         Op[ListTeamsRequest, view.Teams]              = "list_teams"
	MakeTopic         Op[MakeTopicRequest, view.Topic]              = "make_topic"
	EndTopic          Op[EndTopicRequest, Done]                     = "end_topic"
	ListTopics        Op[ListTopicsRequest, view.Topics]            = "list_topics"
	Subscribe         Op[SubscribeRequest, view.Topic]              = "subscribe"
	Post              Op[PostRequest, view.Sent]                    = "post"
	ListPosts         Op[ListPostsRequest, view.TopicPosts]         = "list_posts"
	Acknowledge       Op[MessageRequest, Done]                      = "acknowledge"
	Adopt             Op[AdoptRequest, Done]                        = "adopt"
	Dismiss           Op[MessageRequest, Done]                      = "dismiss"
	RestoreMessage    Op[MessageRequest, Done]                      = "restore_message"
	Snooze            Op[SnoozeRequest, Done]                       = "snooze"
	MoveMessages      Op[MoveMessagesRequest, MoveMessagesResponse] = "move_messages"
	MarkRead          Op[MarkReadRequest, MarkReadResponse]         = "mark_read"
	CountMessages     Op[CountMessagesRequest, view.MessageCounts]  = "count_messages"
	SaveDraft         Op[SaveDraftRequest, Done]                    = "save_draft"
	FetchDraft        Op[FetchDraftRequest, view.Draft]             = "fetch_draft"
	GetMessage        Op[MessageRequest, view.Message]              = "get_message"
	ReadUnread        Op[ReadMailRequest, ReadMailResponse]         = "read_mail"
	ListMessages      Op[ListMessagesRequest, view.Inbox]           = "list_messages"
	Search            Op[SearchRequest, view.Found]                 = "search"
	FollowMessages    Op[FollowMessagesRequest, view.Inbox]         = "follow_messages"
	ReadLog           Op[ReadLogRequest, ReadLogResponse]           = "read_log"
	Complete          Op[CompleteRequest, CompleteResponse]         = "complete"

	FetchAgents      Op[FetchAgentsRequest, FetchAgentsResponse]           = "fetch_agents"
	FetchAgent       Op[AgentRequest, FetchAgentResponse]                  = "fetch_agent"
	SendAgentMessage Op[SendAgentMessageRequest, SendAgentMessageResponse] = "send_agent_message"
	WaitForFinish    Op[WaitForFinishRequest, view.Finish]                 = "wait_for_finish"
	StopAgent        Op[AgentRequest, AgentResponse]                       = "stop_agent"
	HoldAgent        Op[HoldAgentRequest, AgentResponse]                   = "hold_agent"
	ArchiveAgent     Op[AgentRequest, AgentResponse]                       = "archive_agent"
	SetStatus        Op[SetStatusRequest, Done]                            = "set_status"
	DescribeAgent    Op[DescribeAgentRequest, Done]                        = "describe_agent"
	SetPolicy        Op[SetPolicyRequest, AgentResponse]                   = "set_policy"
	RunAgent         Op[RunAgentRequest, MakeAgentResponse]                = "run_agent"
	ReadOutput       Op[ReadOutputRequest, ReadOutputResponse]             = "read_output"

	Invite          Op[InviteRequest, view.Invitation]                  = "invite"
	Uninvite        Op[NameRequest, Done]                               = "uninvite"
	ListInvitations Op[ListInvitationsRequest, ListInvitationsResponse] = "list_invitations"
	Accept          Op[AcceptRequest, view.Accepted]                    = "accept"
	CreateToken     Op[CreateTokenRequest, view.Token]                  = "create_token"
	ListTokens      Op[ListTokensRequest, ListTokensResponse]           = "list_tokens"
	RevokeToken     Op[RevokeTokenRequest, Done]                        = "revoke_token"
	OpenLink        Op[OpenLinkRequest, OpenLinkResponse]               = "open_link"

	ListNodes Op[ListNodesRequest, ListNodesResponse] = "list_nodes"
	LimitPeer Op[LimitPeerRequest, view.Peer]         = "limit_peer"
	DropPeer  Op[DropPeerRequest, view.DroppedPeer]   = "drop_peer"
	GetQuota  Op[GetQuotaRequest, view.AgentUse]      = "get_quota"
	SetQuota  Op[SetQuotaRequest, view.AgentUse]      = "set_quota"

	Status         Op[NodeRequest, StatusResponse]         = "status"
	StartPrograms  Op[NodeRequest, Done]                   = "start_programs"
	Verify         Op[NodeRequest, VerifyResponse]         = "verify"
	ArchiveJournal Op[ArchiveJournalRequest, view.Archive] = "archive_journal"
	ListArchive    Op[NodeRequest, view.Archive]           = "list_archive"
	MoveSegments   Op[MoveSegmentsRequest, view.Archive]   = "move_segments"
	FetchSegments  Op[MoveSegmentsRequest, view.Archive]   = "fetch_segments"
	Stop           Op[NodeRequest, StopResponse]           = "stop"
)

// Operations returns the table of all operations.
func Operations() []Operation {
	return []Operation{
		MakeAgent.row(ScopeAdmin, 0),
		ListNames.row(ScopeRead, lists),
		Lookup.row(ScopeRead, 0),
		Locate.row(ScopeRead, 0),
		StoreName.row(ScopeAdmin, below),
		RenameName.row(ScopeAdmin, below),
		RemoveName.row(ScopeAdmin, below),
		CopyName.row(ScopeAdmin, below),
		MakeResource.row(ScopeAdmin, long),
		EndResource.row(ScopeAdmin, 0),
		Invoke.row(ScopeAsk, waits),
		ListGrants.row(ScopeRead, lists),
		Revoke.row(ScopeAdmin, below),

		Form.row(ScopeAsk, 0),
		RequestCapability.row(ScopeAsk, 0),
		Approve.row(ScopeAsk, 0),
		ListRules.row(ScopeRead, lists),
		TryRules.row(ScopeRead, 0),
		ProposeRules.row(ScopeRead, 0),
		MakeRule.row(ScopeAdmin, 0),
		RemoveRule.row(ScopeAdmin, 0),
		LimitRule.row(ScopeAdmin, 0),
		PauseRule.row(ScopeAdmin, 0),
		ListMandates.row(ScopeRead, lists),
		GetMandate.row(ScopeRead, lists),
		EndMandate.row(ScopeAdmin, 0),
		ListPasskeys.row(ScopeRead, 0),
		BeginPasskey.row(ScopeAdmin, 0),
		AddPasskey.row(ScopeAdmin, 0),
		RemovePasskey.row(ScopeAdmin, 0),
		RequirePasskey.row(ScopeAdmin, 0),
		AskPasskey.row(ScopeAnswer, 0),
		Await.row(ScopeRead, waits),
		CancelForm.row(ScopeAsk, 0),
		AmendForm.row(ScopeAsk, 0),
		RespondForm.row(ScopeAnswer, 0),
		DecideMany.row(ScopeAnswer, 0),
		DeclineForm.row(ScopeAnswer, 0),
		WithdrawVote.row(ScopeAnswer, 0),
		ClaimForm.row(ScopeAnswer, 0),
		GrantAnswer.row(ScopeAnswer, 0),
		AnswerWith.row(ScopeAnswer, 0),
		ForwardForm.row(ScopeAnswer, 0),
		ProveForm.row(ScopeRead, lists),
		SetAway.row(ScopeAnswer, 0),
		SetMember.row(ScopeAnswer, 0),
		ListStandIns.row(ScopeRead, 0),
		SetAttention.row(ScopeAnswer, 0),
		GetAttention.row(ScopeRead, 0),
		Resolve.row(ScopeAnswer, 0),
		Reject.row(ScopeAnswer, 0),
		Send.row(ScopeAsk, 0),
		Reply.row(ScopeAsk, 0),
		Schedule.row(ScopeAsk, 0),
		ListSchedules.row(ScopeRead, lists),
		EndSchedule.row(ScopeAsk, 0),
		StoreFile.row(ScopeAsk, 0),
		FetchFile.row(ScopeRead, 0),
		Lease.row(ScopeAsk, 0),
		AwaitLease.row(ScopeRead, waits),
		RenewLease.row(ScopeAsk, 0),
		ReleaseLease.row(ScopeAsk, 0),
		ListLeases.row(ScopeRead, lists),
		SetTeam.row(ScopeAdmin, 0),
		EndTeam.row(ScopeAdmin, 0),
		ListTeams.row(ScopeRead, lists),
		MakeTopic.row(ScopeAdmin, 0),
		EndTopic.row(ScopeAdmin, 0),
		ListTopics.row(ScopeRead, lists),
		Subscribe.row(ScopeAsk, 0),
		Post.row(ScopeAsk, 0),
		ListPosts.row(ScopeRead, lists),
		Acknowledge.row(ScopeAnswer, 0),
		Adopt.row(ScopeAdmin, below),
		Dismiss.row(ScopeAnswer, 0),
		RestoreMessage.row(ScopeAnswer, 0),
		Snooze.row(ScopeAnswer, 0),
		MoveMessages.row(ScopeAnswer, 0),
		MarkRead.row(ScopeAnswer, 0),
		CountMessages.row(ScopeRead, 0),
		SaveDraft.row(ScopeAnswer, 0),
		FetchDraft.row(ScopeAnswer, 0),
		GetMessage.row(ScopeRead, 0),
		ReadUnread.row(ScopeRead, waits),
		ListMessages.row(ScopeRead, lists),
		Search.row(ScopeRead, lists),
		FollowMessages.row(ScopeRead, waits|lists),
		ReadLog.row(ScopeRead, waits|lists),
		Complete.row(ScopeRead, 0),

		FetchAgents.row(ScopeRead, lists),
		FetchAgent.row(ScopeRead, 0),
		SendAgentMessage.row(ScopeAsk, 0),
		WaitForFinish.row(ScopeRead, waits),
		StopAgent.row(ScopeAsk, 0),
		HoldAgent.row(ScopeAsk, 0),
		ArchiveAgent.row(ScopeAdmin, 0),
		SetStatus.row(ScopeAsk, 0),
		DescribeAgent.row(ScopeAdmin, 0),
		SetPolicy.row(ScopeAdmin, 0),
		RunAgent.row(ScopeAdmin, 0),
		ReadOutput.row(ScopeRead, waits|lists),

		Invite.row(ScopeAdmin, 0),
		Uninvite.row(ScopeAdmin, 0),
		ListInvitations.row(ScopeRead, lists),
		Accept.row(ScopeAdmin, 0),
		CreateToken.row(ScopeAdmin, 0),
		ListTokens.row(ScopeRead, lists),
		RevokeToken.row(ScopeAdmin, 0),
		OpenLink.row(ScopeAdmin, 0),

		ListNodes.row(ScopeRead, ofNode|lists),
		LimitPeer.row(ScopeAdmin, ofNode),
		DropPeer.row(ScopeAdmin, ofNode),
		GetQuota.row(ScopeRead, 0),
		SetQuota.row(ScopeAdmin, 0),

		Status.row(ScopeRead, ofNode|below),
		StartPrograms.row(ScopeAdmin, ofNode),
		Verify.row(ScopeRead, ofNode|waits|long),
		ArchiveJournal.row(ScopeAdmin, ofNode|long),
		ListArchive.row(ScopeRead, ofNode),
		MoveSegments.row(ScopeAdmin, ofNode|long),
		FetchSegments.row(ScopeAdmin, ofNode|long),
		Stop.row(ScopeAdmin, ofNode),
	}
}

// Acting is part of every request. It names the agent for which the request is made.
type Acting struct {
	As string `json:"as,omitempty"` // the name under which the node's host holds it; "" is the host
}

// Actor returns the name of that agent.
func (a Acting) Actor() string { return a.As }

// Done is the empty response.
type Done struct{}

// All performs a listing page by page, and returns the items of all pages; never nil.
func All[Req any, Resp interface{ next() string }, T any, P interface {
	*Req
	beginAfter(string)
}](ctx context.Context, c Client, o Op[Req, Resp], r Req, items func(Resp) []T) ([]T, error) {
	all := []T{}
	for {
		got, err := o.Do(ctx, c, r)
		if err != nil {
			return nil, err
		}
		all = append(all, items(got)...)
		if got.next() == "" {
			return all, nil
		}
		P(&r).beginAfter(got.next())
	}
}

// Paging is part of requests that list. Without it the first page is listed.
type Paging struct {
	After string `json:"after,omitempty"` // the "next" of the page before
	Limit int    `json:"limit,omitempty"` // default 1,000, which is the most
}

func (p *Paging) beginAfter(next string) { p.After = next }

// Paged is part of their responses.
type Paged struct {
	Next string `json:"next,omitempty"` // the "after" of the next page; "" if there is none
}

func (p Paged) next() string { return p.Next }
