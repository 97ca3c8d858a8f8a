package api

import (
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

func of[Req, Resp any](name string, needs Scope, m flags) Operation {
	return Operation{
		Name: name, Scope: needs, OfNode: m&ofNode != 0, Waits: m&waits != 0, Lists: m&lists != 0, Long: m&long != 0, Below: m&below != 0,
		Request: reflect.TypeFor[Req](), Response: reflect.TypeFor[Resp](),
	}
}

// Operations returns the table of all operations.
func Operations() []Operation {
	return []Operation{
		of[MakeAgentRequest, MakeAgentResponse]("make_agent", ScopeAdmin, 0),
		of[ListNamesRequest, ListNamesResponse]("list_names", ScopeRead, lists),
		of[LookupRequest, LookupResponse]("lookup", ScopeRead, 0),
		of[NameRequest, LocateResponse]("locate", ScopeRead, 0),
		of[StoreNameRequest, Done]("store_name", ScopeAdmin, below),
		of[RenameNameRequest, Done]("rename_name", ScopeAdmin, below),
		of[NameRequest, Done]("remove_name", ScopeAdmin, below),
		of[CopyNameRequest, Done]("copy_name", ScopeAdmin, below),
		of[MakeResourceRequest, view.MadeResource]("make_resource", ScopeAdmin, long),
		of[NameRequest, Done]("end_resource", ScopeAdmin, 0),
		of[InvokeRequest, view.Use]("invoke", ScopeAsk, waits),
		of[ListGrantsRequest, ListGrantsResponse]("list_grants", ScopeRead, lists),
		of[RevokeRequest, Done]("revoke", ScopeAdmin, below),

		of[FormRequest, view.Asked]("form", ScopeAsk, 0),
		of[CapabilityRequest, view.Asked]("request", ScopeAsk, 0),
		of[ApproveRequest, view.Permitted]("approve", ScopeAsk, 0),
		of[ListRulesRequest, ListRulesResponse]("list_rules", ScopeRead, lists),
		of[TryRulesRequest, view.Trial]("try_rules", ScopeRead, 0),
		of[ProposeRulesRequest, view.Trial]("propose_rules", ScopeRead, 0),
		of[MakeRuleRequest, view.TriedRule]("make_rule", ScopeAdmin, 0),
		of[RemoveRuleRequest, Done]("remove_rule", ScopeAdmin, 0),
		of[LimitRuleRequest, Done]("limit_rule", ScopeAdmin, 0),
		of[PauseRuleRequest, Done]("pause_rule", ScopeAdmin, 0),
		of[ListMandatesRequest, ListMandatesResponse]("list_mandates", ScopeRead, lists),
		of[MandateRequest, GetMandateResponse]("get_mandate", ScopeRead, lists),
		of[MandateRequest, Done]("end_mandate", ScopeAdmin, 0),
		of[AwaitRequest, view.Outcome]("await", ScopeRead, waits),
		of[EndRequest, view.Outcome]("cancel_form", ScopeAsk, 0),
		of[AmendFormRequest, view.Message]("amend_form", ScopeAsk, 0),
		of[RespondFormRequest, view.Outcome]("respond_form", ScopeAnswer, 0),
		of[DecideManyRequest, DecideManyResponse]("decide_many", ScopeAnswer, 0),
		of[DeclineRequest, view.Outcome]("decline_form", ScopeAnswer, 0),
		of[MessageRequest, Withdrawn]("withdraw_vote", ScopeAnswer, 0),
		of[GrantAnswerRequest, view.AnswerRight]("grant_answer", ScopeAnswer, 0),
		of[AnswerWithRequest, view.Outcome]("answer_with", ScopeAnswer, 0),
		of[ForwardFormRequest, Done]("forward_form", ScopeAnswer, 0),
		of[ProofRequest, view.Proof]("proof", ScopeRead, lists),
		of[SetAwayRequest, view.StandIns]("set_away", ScopeAnswer, 0),
		of[SetMemberRequest, view.StandIns]("set_member", ScopeAnswer, 0),
		of[StandInsRequest, view.StandIns]("list_stand_ins", ScopeRead, 0),
		of[SetAttentionRequest, view.Attention]("set_attention", ScopeAnswer, 0),
		of[GetAttentionRequest, view.Attention]("get_attention", ScopeRead, 0),
		of[ResolveRequest, view.Outcome]("resolve", ScopeAnswer, 0),
		of[DeclineRequest, view.Outcome]("reject", ScopeAnswer, 0),
		of[SendRequest, view.Sent]("send", ScopeAsk, 0),
		of[ReplyRequest, view.Sent]("reply", ScopeAsk, 0),
		of[ScheduleRequest, view.Schedule]("schedule", ScopeAsk, 0),
		of[ListSchedulesRequest, view.Schedules]("list_schedules", ScopeRead, lists),
		of[EndScheduleRequest, Done]("end_schedule", ScopeAsk, 0),
		of[StoreFileRequest, view.StoredFile]("store_file", ScopeAsk, 0),
		of[FetchFileRequest, view.FilePart]("fetch_file", ScopeRead, 0),
		of[LeaseRequest, view.Lease]("lease", ScopeAsk, 0),
		of[AwaitLeaseRequest, view.Lease]("await_lease", ScopeRead, waits),
		of[RenewLeaseRequest, view.Lease]("renew_lease", ScopeAsk, 0),
		of[ReleaseLeaseRequest, Done]("release_lease", ScopeAsk, 0),
		of[ListLeasesRequest, view.Leases]("list_leases", ScopeRead, lists),
		of[SetTeamRequest, view.Teams]("set_team", ScopeAdmin, 0),
		of[EndTeamRequest, Done]("end_team", ScopeAdmin, 0),
		of[ListTeamsRequest, view.Teams]("list_teams", ScopeRead, lists),
		of[MakeTopicRequest, view.Topic]("make_topic", ScopeAdmin, 0),
		of[EndTopicRequest, Done]("end_topic", ScopeAdmin, 0),
		of[ListTopicsRequest, view.Topics]("list_topics", ScopeRead, lists),
		of[SubscribeRequest, view.Topic]("subscribe", ScopeAsk, 0),
		of[PostRequest, view.Sent]("post", ScopeAsk, 0),
		of[ListPostsRequest, view.TopicPosts]("list_posts", ScopeRead, lists),
		of[MessageRequest, Done]("acknowledge", ScopeAnswer, 0),
		of[AdoptRequest, Done]("adopt", ScopeAdmin, below),
		of[MessageRequest, Done]("dismiss", ScopeAnswer, 0),
		of[MessageRequest, Done]("restore_message", ScopeAnswer, 0),
		of[SnoozeRequest, Done]("snooze", ScopeAnswer, 0),
		of[MoveMessagesRequest, MoveMessagesResponse]("move_messages", ScopeAnswer, 0),
		of[MarkReadRequest, MarkReadResponse]("mark_read", ScopeAnswer, 0),
		of[CountMessagesRequest, view.MessageCounts]("count_messages", ScopeRead, 0),
		of[SaveDraftRequest, Done]("save_draft", ScopeAnswer, 0),
		of[FetchDraftRequest, view.Draft]("fetch_draft", ScopeAnswer, 0),
		of[MessageRequest, view.Message]("get_message", ScopeRead, 0),
		of[ReadMailRequest, ReadMailResponse]("read_mail", ScopeRead, waits),
		of[ListMessagesRequest, view.Inbox]("list_messages", ScopeRead, lists),
		of[SearchRequest, view.Found]("search", ScopeRead, lists),
		of[FollowMessagesRequest, view.Inbox]("follow_messages", ScopeRead, waits|lists),
		of[ReadLogRequest, ReadLogResponse]("read_log", ScopeRead, waits|lists),
		of[CompleteRequest, CompleteResponse]("complete", ScopeRead, 0),

		of[FetchAgentsRequest, FetchAgentsResponse]("fetch_agents", ScopeRead, lists),
		of[AgentRequest, FetchAgentResponse]("fetch_agent", ScopeRead, 0),
		of[SendAgentMessageRequest, SendAgentMessageResponse]("send_agent_message", ScopeAsk, 0),
		of[WaitForFinishRequest, view.Finish]("wait_for_finish", ScopeRead, waits),
		of[AgentRequest, AgentResponse]("stop_agent", ScopeAsk, 0),
		of[HoldAgentRequest, AgentResponse]("hold_agent", ScopeAsk, 0),
		of[AgentRequest, AgentResponse]("archive_agent", ScopeAdmin, 0),
		of[SetStatusRequest, Done]("set_status", ScopeAsk, 0),
		of[DescribeAgentRequest, Done]("describe_agent", ScopeAdmin, 0),
		of[SetPolicyRequest, AgentResponse]("set_policy", ScopeAdmin, 0),
		of[RunAgentRequest, MakeAgentResponse]("run_agent", ScopeAdmin, 0),
		of[ReadOutputRequest, ReadOutputResponse]("read_output", ScopeRead, waits|lists),

		of[InviteRequest, view.Invitation]("invite", ScopeAdmin, 0),
		of[NameRequest, Done]("uninvite", ScopeAdmin, 0),
		of[ListInvitationsRequest, ListInvitationsResponse]("list_invitations", ScopeRead, lists),
		of[AcceptRequest, view.Accepted]("accept", ScopeAdmin, 0),
		of[CreateTokenRequest, view.Token]("create_token", ScopeAdmin, 0),
		of[ListTokensRequest, ListTokensResponse]("list_tokens", ScopeRead, lists),
		of[RevokeTokenRequest, Done]("revoke_token", ScopeAdmin, 0),
		of[OpenLinkRequest, OpenLinkResponse]("open_link", ScopeAdmin, 0),

		of[ListNodesRequest, ListNodesResponse]("list_nodes", ScopeRead, ofNode|lists),
		of[LimitPeerRequest, view.Peer]("limit_peer", ScopeAdmin, ofNode),
		of[DropPeerRequest, view.DroppedPeer]("drop_peer", ScopeAdmin, ofNode),
		of[GetQuotaRequest, view.AgentUse]("get_quota", ScopeRead, 0),
		of[SetQuotaRequest, view.AgentUse]("set_quota", ScopeAdmin, 0),

		of[NodeRequest, StatusResponse]("status", ScopeRead, ofNode|below),
		of[NodeRequest, Done]("start_programs", ScopeAdmin, ofNode),
		of[NodeRequest, VerifyResponse]("verify", ScopeRead, ofNode|waits|long),
		of[ArchiveJournalRequest, view.Archive]("archive_journal", ScopeAdmin, ofNode|long),
		of[NodeRequest, view.Archive]("list_archive", ScopeRead, ofNode),
		of[MoveSegmentsRequest, view.Archive]("move_segments", ScopeAdmin, ofNode|long),
		of[MoveSegmentsRequest, view.Archive]("fetch_segments", ScopeAdmin, ofNode|long),
		of[NodeRequest, StopResponse]("stop", ScopeAdmin, ofNode),
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

// Paging is part of requests that list. Without it the first page is listed.
type Paging struct {
	After string `json:"after,omitempty"` // the "next" of the page before
	Limit int    `json:"limit,omitempty"` // default 1,000, which is the most
}

// Paged is part of their responses.
type Paged struct {
	Next string `json:"next,omitempty"` // the "after" of the next page; "" if there is none
}
