"""The operations of a node: their requests and responses, and which of them change nothing.

Written from the node's table of operations by a test, TestPythonDeclarationsMatchOperations: not by hand.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple, TypedDict, Union

Ref = Union[str, int]
"""A message's number, or the ID of a message, form or promise."""


class AcceptRequest(TypedDict):
    locator: str
    name: str


class _AddPasskeyRequest(TypedDict):
    credential: Any  # Any JSON.


class AddPasskeyRequest(_AddPasskeyRequest, total=False):
    passkey: PasskeySignature


class _AdoptRequest(TypedDict):
    edge: str


class AdoptRequest(_AdoptRequest, total=False):
    id: Ref
    name: str
    number: Ref


class AgentRequest(TypedDict):
    agentId: str


class AgentResponse(TypedDict):
    agentId: str  # An ID: {ULID}@{node}.


class AmendFormRequest(TypedDict, total=False):
    description: str
    fields: List[Field]
    id: Ref
    note: str
    number: Ref
    title: str


class _AnswerWithRequest(TypedDict):
    outcome: str
    secret: str


class AnswerWithRequest(_AnswerWithRequest, total=False):
    reason: str
    texts: List[Text]
    values: Dict[str, Any]


class _ApproveRequest(TypedDict):
    input: Any  # Any JSON.
    tool: str


class ApproveRequest(_ApproveRequest, total=False):
    attended: bool
    deadline: str  # A time in UTC, with milliseconds.
    editable: bool
    escalate: List[Escalation]
    folder: str
    key: str
    need: int
    part: str
    passkey: bool
    reason: str
    recipient: str
    remind: List[str]
    veto: bool


class _ArchiveJournalRequest(TypedDict):
    before: str  # A time in UTC, with milliseconds.


class ArchiveJournalRequest(_ArchiveJournalRequest, total=False):
    to: str


class _AskPasskeyRequest(TypedDict):
    origin: str


class AskPasskeyRequest(_AskPasskeyRequest, total=False):
    act: str
    digest: str
    id: Ref
    mandate: MandateTerms
    narrow: Dict[str, Facet]
    number: Ref
    passkey: PasskeySignature
    revision: int
    texts: List[Text]
    values: Dict[str, Any]


class _AskPasskeyResponse(TypedDict):
    challenge: str
    credentials: List[str]
    host: str
    statement: str
    wanted: bool


class AskPasskeyResponse(_AskPasskeyResponse, total=False):
    form: str  # An ID: {ULID}@{node}.


class _AwaitLeaseRequest(TypedDict):
    lease: int


class AwaitLeaseRequest(_AwaitLeaseRequest, total=False):
    waitMs: int


class AwaitRequest(TypedDict, total=False):
    after: int
    all: bool
    id: Ref
    number: Ref
    until: str
    waitMs: int


class BeginPasskeyRequest(TypedDict):
    name: str
    origin: str


class BeginPasskeyResponse(TypedDict):
    options: Any  # Any JSON.


class _Candidate(TypedDict):
    word: str


class Candidate(_Candidate, total=False):
    description: str


class _CapabilityRequest(TypedDict):
    recipient: str
    text: str


class CapabilityRequest(_CapabilityRequest, total=False):
    deadline: str  # A time in UTC, with milliseconds.
    key: str
    name: str
    noForward: bool
    passkey: bool


class ClaimFormRequest(TypedDict, total=False):
    forMs: int
    id: Ref
    number: Ref
    release: bool
    takeOver: bool


class _CompleteRequest(TypedDict):
    of: str


class CompleteRequest(_CompleteRequest, total=False):
    id: Ref
    number: Ref
    prefix: str


class CompleteResponse(TypedDict):
    candidates: List[Candidate]


class _CopyNameRequest(TypedDict):
    new: str
    old: str


class CopyNameRequest(_CopyNameRequest, total=False):
    facet: str
    narrow: Facet
    until: str  # A time in UTC, with milliseconds.
    uses: int


class CountMessagesRequest(TypedDict):
    pass


class CreateTokenRequest(TypedDict, total=False):
    note: str
    scopes: List[str]
    until: str  # A time in UTC, with milliseconds.


class _DecideManyRequest(TypedDict):
    decisions: List[Decision]


class DecideManyRequest(_DecideManyRequest, total=False):
    key: str
    secondVote: bool


class DecideManyResponse(TypedDict):
    results: List[Decided]


class _Decided(TypedDict):
    form: str  # An ID: {ULID}@{node}.


class Decided(_Decided, total=False):
    error: Refusal
    outcome: Outcome


class _Decision(TypedDict):
    decision: str
    digest: str
    form: str  # An ID: {ULID}@{node}.


class Decision(_Decision, total=False):
    mandate: MandateTerms
    reason: str
    rule: str
    until: str


class DeclineRequest(TypedDict, total=False):
    id: Ref
    number: Ref
    reason: str
    revision: int
    secondVote: bool


class DescribeAgentRequest(TypedDict, total=False):
    labels: Dict[str, str]
    title: str


class Done(TypedDict):
    pass


class DropPeerRequest(TypedDict):
    node: str


class EndRequest(TypedDict, total=False):
    id: Ref
    number: Ref
    reason: str


class EndScheduleRequest(TypedDict):
    schedule: int


class EndTeamRequest(TypedDict):
    team: str


class EndTopicRequest(TypedDict):
    topic: str


class Escalation(TypedDict):
    after: str
    to: str


class Failure(TypedDict, total=False):
    error: Refusal


class FetchAgentResponse(TypedDict, total=False):
    agent: Snapshot
    error: Refusal


class FetchAgentsRequest(TypedDict, total=False):
    after: str
    filter: Filter
    limit: int
    page: Page


class _FetchAgentsResponse(TypedDict):
    agents: List[Snapshot]


class FetchAgentsResponse(_FetchAgentsResponse, total=False):
    next: str
    pageInfo: PageInfo


class FetchDraftRequest(TypedDict, total=False):
    id: Ref
    number: Ref
    reply: bool
    to: str


class _FetchFileRequest(TypedDict):
    file: str


class FetchFileRequest(_FetchFileRequest, total=False):
    id: Ref
    number: Ref
    offset: int


class _FollowMessagesRequest(TypedDict):
    cursor: int


class FollowMessagesRequest(_FollowMessagesRequest, total=False):
    all: bool
    done: bool
    notes: bool
    open: bool
    overdue: bool
    pending: bool
    sent: bool
    snoozed: bool
    unread: bool
    waitMs: int


class FormRef(TypedDict, total=False):
    id: Ref
    number: Ref


class _FormRequest(TypedDict):
    description: str
    fields: List[Field]
    recipient: str


class FormRequest(_FormRequest, total=False):
    deadline: str  # A time in UTC, with milliseconds.
    escalate: List[Escalation]
    key: str
    name: str
    need: int
    noForward: bool
    noSelf: bool
    passkey: bool
    remind: List[str]
    title: str
    veto: bool


class _ForwardFormRequest(TypedDict):
    recipient: str


class ForwardFormRequest(_ForwardFormRequest, total=False):
    id: Ref
    number: Ref


class GetAttentionRequest(TypedDict):
    pass


class GetMandateResponse(TypedDict):
    covered: List[MandateCall]
    mandate: Mandate


class GetQuotaRequest(TypedDict):
    agentId: str


_GrantAnswerRequestOptional = TypedDict(
    "_GrantAnswerRequestOptional",
    {
        "from": "str",
        "id": "Ref",
        "name": "str",
        "number": "Ref",
        "outcomes": "List[str]",
        "secret": "str",
        "until": "str",
        "uses": "int",
    }, total=False,
)


class GrantAnswerRequest(_GrantAnswerRequestOptional):
    pass


class HoldAgentRequest(TypedDict):
    agentId: str
    hold: bool


class _InviteRequest(TypedDict):
    name: str


class InviteRequest(_InviteRequest, total=False):
    expires: str  # A time in UTC, with milliseconds.


class InvokeRequest(TypedDict, total=False):
    input: Dict[str, Any]
    key: str
    name: str
    use: str
    verb: str
    waitMs: int


class _LeaseRequest(TypedDict):
    patterns: List[str]


_LeaseRequestOptional = TypedDict(
    "_LeaseRequestOptional",
    {
        "folder": "str",
        "for": "str",
        "shared": "bool",
        "team": "str",
        "ttlMs": "int",
        "waitMs": "int",
    }, total=False,
)


class LeaseRequest(_LeaseRequest, _LeaseRequestOptional):
    pass


class _LimitPeerRequest(TypedDict):
    node: str


class LimitPeerRequest(_LimitPeerRequest, total=False):
    quotas: Dict[str, int]
    reset: bool


class _LimitRuleRequest(TypedDict):
    agent: str
    until: str  # A time in UTC, with milliseconds.


class LimitRuleRequest(_LimitRuleRequest, total=False):
    form: str  # An ID: {ULID}@{node}.
    passkey: PasskeySignature
    rule: str  # An ID: {ULID}@{node}.


_LimitState = TypedDict(
    "_LimitState",
    {
        "for": "str",
        "limit": "int",
        "name": "str",
        "now": "int",
        "refused": "int",
    },
)


class LimitState(_LimitState, total=False):
    each: int


class ListGrantsRequest(TypedDict, total=False):
    after: str
    limit: int


class _ListGrantsResponse(TypedDict):
    grants: List[Granted]


class ListGrantsResponse(_ListGrantsResponse, total=False):
    next: str


class ListInvitationsRequest(TypedDict, total=False):
    after: str
    limit: int


class _ListInvitationsResponse(TypedDict):
    invitations: List[Invitation]


class ListInvitationsResponse(_ListInvitationsResponse, total=False):
    next: str


class ListLeasesRequest(TypedDict):
    pass


class ListMandatesRequest(TypedDict, total=False):
    after: str
    agent: str
    all: bool
    everyone: bool
    limit: int


class _ListMandatesResponse(TypedDict):
    mandates: List[Mandate]


class ListMandatesResponse(_ListMandatesResponse, total=False):
    next: str


class ListMessagesRequest(TypedDict, total=False):
    all: bool
    before: int
    done: bool
    first: int
    last: int
    limit: int
    notes: bool
    open: bool
    overdue: bool
    pending: bool
    sent: bool
    snoozed: bool
    unread: bool


class ListNamesRequest(TypedDict, total=False):
    after: str
    limit: int
    path: str


class _ListNamesResponse(TypedDict):
    names: List[str]


class ListNamesResponse(_ListNamesResponse, total=False):
    next: str
    revoked: List[str]


class ListNodesRequest(TypedDict, total=False):
    after: str
    limit: int


class _ListNodesResponse(TypedDict):
    nodes: List[Peer]


class ListNodesResponse(_ListNodesResponse, total=False):
    next: str


class ListPasskeysRequest(TypedDict):
    pass


class ListPasskeysResponse(TypedDict):
    needs: List[PasskeyNeed]
    passkeys: List[Passkey]


class _ListPostsRequest(TypedDict):
    topic: str


class ListPostsRequest(_ListPostsRequest, total=False):
    before: int
    limit: int
    post: int


class ListRulesRequest(TypedDict, total=False):
    after: str
    agent: str
    limit: int


class _ListRulesResponse(TypedDict):
    rules: List[Rule]


class ListRulesResponse(_ListRulesResponse, total=False):
    next: str


class ListSchedulesRequest(TypedDict):
    pass


class ListTeamsRequest(TypedDict, total=False):
    team: str


class ListTokensRequest(TypedDict, total=False):
    after: str
    limit: int


class _ListTokensResponse(TypedDict):
    tokens: List[Token]


class ListTokensResponse(_ListTokensResponse, total=False):
    next: str


class ListTopicsRequest(TypedDict):
    pass


class _LocateResponse(TypedDict):
    id: str  # An ID: {ULID}@{node}.
    locator: str


class LocateResponse(_LocateResponse, total=False):
    kind: str


class _LookupRequest(TypedDict):
    name: str


class LookupRequest(_LookupRequest, total=False):
    reveal: bool


class LookupResponse(TypedDict):
    value: Any  # Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}.


class _MakeAgentRequest(TypedDict):
    name: str


class MakeAgentRequest(_MakeAgentRequest, total=False):
    kind: str
    labels: Dict[str, str]
    title: str


class MakeAgentResponse(TypedDict):
    agent: str  # An ID: {ULID}@{node}.
    kind: str
    name: str


class _MakeResourceRequest(TypedDict):
    kind: str
    name: str


class MakeResourceRequest(_MakeResourceRequest, total=False):
    address: str
    again: bool
    authority: str
    command: List[str]
    facet: Facet
    file: File
    folder: str
    header: str
    secret: str


class _MakeRuleRequest(TypedDict):
    agent: str


class MakeRuleRequest(_MakeRuleRequest, total=False):
    form: str  # An ID: {ULID}@{node}.
    never: bool
    offer: str
    passkey: PasskeySignature
    proposal: str
    until: str  # A time in UTC, with milliseconds.


class _MakeTopicRequest(TypedDict):
    topic: str


class MakeTopicRequest(_MakeTopicRequest, total=False):
    team: str


class _MandateRequest(TypedDict):
    mandate: str  # An ID: {ULID}@{node}.


class MandateRequest(_MandateRequest, total=False):
    agent: str


class MarkReadRequest(TypedDict, total=False):
    numbers: List[int]
    unread: bool


class MarkReadResponse(TypedDict):
    unread: int


class MessageRequest(TypedDict, total=False):
    id: Ref
    number: Ref


class _MoveMessagesRequest(TypedDict):
    do: str
    messages: List[FormRef]


class MoveMessagesRequest(_MoveMessagesRequest, total=False):
    until: str  # A time in UTC, with milliseconds.


class _MoveMessagesResponse(TypedDict):
    moved: int


class MoveMessagesResponse(_MoveMessagesResponse, total=False):
    refused: List[Unmoved]


class _MoveSegmentsRequest(TypedDict):
    place: str


class MoveSegmentsRequest(_MoveSegmentsRequest, total=False):
    segments: List[int]


class NameRequest(TypedDict):
    name: str


class NodeRequest(TypedDict):
    pass


class OpenLinkRequest(TypedDict):
    pass


class OpenLinkResponse(TypedDict):
    until: str  # A time in UTC, with milliseconds.
    url: str


class Page(TypedDict, total=False):
    cursor: str
    limit: int


class _PageInfo(TypedDict):
    hasMore: bool


class PageInfo(_PageInfo, total=False):
    nextCursor: str
    prevCursor: str


class _PauseRuleRequest(TypedDict):
    agent: str
    rule: str  # An ID: {ULID}@{node}.


class PauseRuleRequest(_PauseRuleRequest, total=False):
    passkey: PasskeySignature
    resume: bool


class Peers(TypedDict):
    known: int
    reachable: int
    traffic: Traffic
    waiting: int


class _PostRequest(TypedDict):
    text: str
    topic: str


class PostRequest(_PostRequest, total=False):
    ackBy: str  # A time in UTC, with milliseconds.
    escalate: str
    files: List[File]
    key: str
    plain: bool
    priority: str
    subject: str


class ProgramsStatus(TypedDict, total=False):
    environment: List[str]
    held: bool
    user: str
    wrap: List[str]


class ProofRequest(TypedDict, total=False):
    digestOnly: bool
    id: Ref
    number: Ref


class ProposeRulesRequest(TypedDict):
    agent: str


class ReadLogRequest(TypedDict, total=False):
    after: int
    journal: bool
    limit: int
    waitMs: int


class _ReadLogResponse(TypedDict):
    entries: List[Entry]
    more: bool


class ReadLogResponse(_ReadLogResponse, total=False):
    archived: int
    missing: List[MissingEvents]


_ReadMail = TypedDict(
    "_ReadMail",
    {
        "date": "str",
        "from": "str",
        "known": "str",
        "mark": "str",
        "number": "str",
        "text": "str",
        "type": "str",
    },
)


class ReadMail(_ReadMail, total=False):
    alsoTo: str
    author: str
    files: List[str]
    priority: str
    readOn: int
    replyTo: str
    replyWanted: bool
    subject: str
    to: str


_ReadMailRequestOptional = TypedDict(
    "_ReadMailRequestOptional",
    {
        "count": "bool",
        "from": "int",
        "message": "Ref",
        "waitMs": "int",
    }, total=False,
)


class ReadMailRequest(_ReadMailRequestOptional):
    pass


class _ReadMailResponse(TypedDict):
    mail: List[ReadMail]


class ReadMailResponse(_ReadMailResponse, total=False):
    hooked: bool
    more: int
    quiet: bool
    unread: int


class _ReadOutputRequest(TypedDict):
    agentId: str


class ReadOutputRequest(_ReadOutputRequest, total=False):
    after: int
    limit: int
    tail: int
    waitMs: int


class ReadOutputResponse(TypedDict):
    cursor: int
    pieces: List[OutputPiece]


class ReleaseLeaseRequest(TypedDict):
    lease: int


class _RemovePasskeyRequest(TypedDict):
    name: str


class RemovePasskeyRequest(_RemovePasskeyRequest, total=False):
    passkey: PasskeySignature


class RemoveRuleRequest(TypedDict):
    agent: str
    rule: str  # An ID: {ULID}@{node}.


class _RenameNameRequest(TypedDict):
    new: str
    old: str


class RenameNameRequest(_RenameNameRequest, total=False):
    force: bool


class _RenewLeaseRequest(TypedDict):
    lease: int


class RenewLeaseRequest(_RenewLeaseRequest, total=False):
    ttlMs: int


class _ReplyRequest(TypedDict):
    text: str


class ReplyRequest(_ReplyRequest, total=False):
    ackBy: str  # A time in UTC, with milliseconds.
    all: bool
    escalate: str
    files: List[File]
    id: Ref
    key: str
    number: Ref
    plain: bool
    priority: str
    subject: str


class RequirePasskeyRequest(TypedDict, total=False):
    agent: str
    need: str
    passkey: PasskeySignature


class _ResolveRequest(TypedDict):
    name: str


class ResolveRequest(_ResolveRequest, total=False):
    id: Ref
    narrow: Facet
    number: Ref


class RespondFormRequest(TypedDict, total=False):
    digest: str
    id: Ref
    mandate: MandateTerms
    narrow: Dict[str, Facet]
    number: Ref
    passkey: PasskeySignature
    revision: int
    secondVote: bool
    texts: List[Text]
    values: Dict[str, Any]


class RevokeRequest(TypedDict):
    grant: str


class RevokeTokenRequest(TypedDict):
    token: str  # An ID: {ULID}@{node}.


class _RunAgentRequest(TypedDict):
    runtime: str


class RunAgentRequest(_RunAgentRequest, total=False):
    access: List[str]
    command: List[str]
    environment: List[str]
    folder: str
    inherit: List[str]
    keep: bool
    labels: Dict[str, str]
    name: str
    policy: str
    seconds: int
    title: str
    user: str
    wait: bool
    wrap: List[str]


class SaveDraftRequest(TypedDict, total=False):
    id: Ref
    number: Ref
    text: str
    texts: List[Text]
    to: str


class _ScheduleRequest(TypedDict):
    text: str


class ScheduleRequest(_ScheduleRequest, total=False):
    ackBy: str  # A time in UTC, with milliseconds.
    at: str  # A time in UTC, with milliseconds.
    escalate: str
    every: str
    files: List[File]
    key: str
    plain: bool
    priority: str
    recipient: str
    recipients: List[str]
    subject: str
    zone: str


_SearchRequestOptional = TypedDict(
    "_SearchRequestOptional",
    {
        "all": "bool",
        "before": "int",
        "decidedBy": "str",
        "done": "bool",
        "from": "str",
        "limit": "int",
        "notes": "bool",
        "open": "bool",
        "order": "str",
        "outcomes": "List[str]",
        "overdue": "bool",
        "pending": "bool",
        "sent": "bool",
        "since": "str",
        "skip": "int",
        "snoozed": "bool",
        "subject": "str",
        "text": "str",
        "thread": "FormRef",
        "to": "str",
        "tool": "str",
        "types": "List[str]",
        "unread": "bool",
        "until": "str",
        "verdict": "str",
    }, total=False,
)


class SearchRequest(_SearchRequestOptional):
    pass


class _SendAgentMessageRequest(TypedDict):
    agentId: str
    text: str


class SendAgentMessageRequest(_SendAgentMessageRequest, total=False):
    messageId: str


class _SendAgentMessageResponse(TypedDict):
    accepted: bool


class SendAgentMessageResponse(_SendAgentMessageResponse, total=False):
    agentId: str  # An ID: {ULID}@{node}.
    error: Refusal
    message: str  # An ID: {ULID}@{node}.
    queued: bool


class _SendRequest(TypedDict):
    text: str


class SendRequest(_SendRequest, total=False):
    ackBy: str  # A time in UTC, with milliseconds.
    escalate: str
    files: List[File]
    key: str
    plain: bool
    priority: str
    recipient: str
    recipients: List[str]
    subject: str


class SetAttentionRequest(TypedDict, total=False):
    allSessions: bool
    interruptions: str
    quiet: str
    zone: str


_SetAwayRequestOptional = TypedDict(
    "_SetAwayRequestOptional",
    {
        "from": "str",
        "to": "str",
        "until": "str",
    }, total=False,
)


class SetAwayRequest(_SetAwayRequestOptional):
    pass


class _SetMemberRequest(TypedDict):
    agent: str


class SetMemberRequest(_SetMemberRequest, total=False):
    remove: bool


class _SetPolicyRequest(TypedDict):
    agentId: str
    policy: str


class SetPolicyRequest(_SetPolicyRequest, total=False):
    passkey: PasskeySignature
    review: ReviewTerms


class _SetQuotaRequest(TypedDict):
    agentId: str


class SetQuotaRequest(_SetQuotaRequest, total=False):
    quotas: Dict[str, int]
    reset: bool


class _SetStatusRequest(TypedDict):
    status: str


class SetStatusRequest(_SetStatusRequest, total=False):
    error: str


class _SetTeamRequest(TypedDict):
    team: str


class SetTeamRequest(_SetTeamRequest, total=False):
    add: List[str]
    coder: TeamCoder
    remove: List[str]


class SnoozeRequest(TypedDict, total=False):
    id: Ref
    number: Ref
    until: str  # A time in UTC, with milliseconds.


class StandInsRequest(TypedDict):
    pass


class _StatusResponse(TypedDict):
    agents: int
    journal: JournalState
    limits: List[LimitState]
    listen: str
    logLevel: str
    name: str
    node: str  # A node's public key.
    openForms: int
    peerListen: str
    peers: Peers
    pid: int
    quotas: NodeQuotas
    version: str


class StatusResponse(_StatusResponse, total=False):
    a2aNetwork: str
    external: bool
    limitsSet: str
    peerAddress: str
    plainHTTP: bool
    problem: Refusal
    programs: ProgramsStatus
    service: str
    tlsCert: str
    tlsKey: str


class StopResponse(TypedDict):
    pid: int


class StoreFileRequest(TypedDict, total=False):
    data: str
    offset: int
    size: int
    upload: str


class StoreNameRequest(TypedDict):
    name: str
    value: Any  # Any JSON.


class _SubscribeRequest(TypedDict):
    topic: str


class SubscribeRequest(_SubscribeRequest, total=False):
    end: bool
    everyMs: int
    stream: bool


class TeamCoder(TypedDict):
    folder: str
    program: str
    title: str


class Text(TypedDict):
    name: str
    text: str


class TryRulesRequest(TypedDict, total=False):
    agent: str
    deny: bool
    id: Ref
    number: Ref
    offers: List[str]
    rules: List[str]


class Unmoved(TypedDict, total=False):
    error: Refusal
    id: Ref
    number: Ref


class _VerifyResponse(TypedDict):
    commits: int
    events: int
    mailboxes: int


class VerifyResponse(_VerifyResponse, total=False):
    archived: int
    damaged: List[str]
    elsewhere: List[int]
    files: int
    unmarked: bool


class _WaitForFinishRequest(TypedDict):
    agentId: str


class WaitForFinishRequest(_WaitForFinishRequest, total=False):
    timeoutMs: int


class Withdrawn(TypedDict, total=False):
    queued: bool


class Absent(TypedDict, total=False):
    address: str  # An ID: {ULID}@{node}.
    addressName: str
    archived: bool


class Accepted(TypedDict):
    host: str  # An ID: {ULID}@{node}.
    name: str
    node: str  # A node's public key.


class _AgentUse(TypedDict):
    agent: str  # An ID: {ULID}@{node}.
    quotas: Dict[str, int]  # An amount for each quota by name. -1 is no limit.
    share: float
    used: Dict[str, int]  # An amount for each quota by name. -1 is no limit.


class AgentUse(_AgentUse, total=False):
    name: str
    quota: str


class _Amendment(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    changes: List[str]


class Amendment(_Amendment, total=False):
    note: str


class _AnswerRight(TypedDict):
    form: str  # An ID: {ULID}@{node}.
    grant: str  # An ID: {ULID}@{node}.
    outcomes: List[str]
    revision: int
    secret: str


class AnswerRight(_AnswerRight, total=False):
    until: str  # A time in UTC, with milliseconds.
    uses: int


class Archive(TypedDict):
    bytes: int
    checkpoint: int
    last: int
    new: int
    segments: List[ArchiveSegment]


_ArchiveSegment = TypedDict(
    "_ArchiveSegment",
    {
        "bytes": "int",
        "digest": "str",
        "first": "int",
        "from": "str",
        "here": "bool",
        "last": "int",
        "to": "str",
    },
)


class ArchiveSegment(_ArchiveSegment, total=False):
    place: str


_Archived = TypedDict(
    "_Archived",
    {
        "form": "bool",
        "from": "str",
        "hint": "str",
        "segment": "int",
        "to": "str",
    },
)


class Archived(_Archived, total=False):
    place: str


class _Asked(TypedDict):
    number: int


class Asked(_Asked, total=False):
    form: str  # An ID: {ULID}@{node}.
    outcome: Outcome
    promise: str  # An ID: {ULID}@{node}.
    promised: Promised
    unreachable: bool


class _Attention(TypedDict):
    agent: str  # An ID: {ULID}@{node}.


class Attention(_Attention, total=False):
    allSessions: bool
    interruptions: str
    isQuiet: bool
    quiet: str
    quietUntil: str  # A time in UTC, with milliseconds.
    zone: str


_Away = TypedDict(
    "_Away",
    {
        "from": "str",
        "until": "str",
    },
)


class Away(_Away, total=False):
    to: Party


class _Claim(TypedDict):
    by: str  # An ID: {ULID}@{node}.
    until: str  # A time in UTC, with milliseconds.


class Claim(_Claim, total=False):
    byName: str
    since: str  # A time in UTC, with milliseconds.
    was: Party


class _Claimed(TypedDict):
    form: str  # An ID: {ULID}@{node}.
    number: int


class Claimed(_Claimed, total=False):
    claim: Claim
    queued: bool


class _Counted(TypedDict):
    acknowledged: int
    by: str  # An ID: {ULID}@{node}.
    handled: int
    known: str
    missed: int
    offered: int
    passed: int
    shown: int


class Counted(_Counted, total=False):
    byName: str


class CutMessage(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    message: str  # An ID: {ULID}@{node}.
    number: int
    text: str


class _Draft(TypedDict):
    texts: List[Text]


class Draft(_Draft, total=False):
    savedAt: str  # A time in UTC, with milliseconds.
    text: str


class DroppedPeer(TypedDict):
    givenUp: int
    introduced: int
    names: int
    node: str  # A node's public key.
    revoked: int


class Entry(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    commit: int
    payload: Dict[str, Any]  # An event's own members.
    schema: int
    type: str
    version: int


_Envelope = TypedDict(
    "_Envelope",
    {
        "answerNeeded": "bool",
        "changed": "int",
        "date": "str",
        "delivered": "bool",
        "dismissed": "bool",
        "from": "str",
        "messageId": "str",
        "number": "int",
        "received": "bool",
        "sent": "bool",
        "to": "str",
        "type": "str",
    },
)


class Envelope(_Envelope, total=False):
    ackBy: str  # A time in UTC, with milliseconds.
    acknowledged: bool
    amendment: Amendment
    answering: bool
    archived: Archived
    author: str  # An ID: {ULID}@{node}.
    authorName: str
    authorSaid: str
    chain: List[Party]
    claim: Claim
    counts: List[Counted]
    deadline: str  # A time in UTC, with milliseconds.
    description: str
    digest: str
    draftAt: str  # A time in UTC, with milliseconds.
    edges: Dict[str, Any]
    escalate: Recipient
    fields: List[Field]
    files: List[File]
    folder: str
    forwardedTo: List[Forwarded]
    forwarder: str  # An ID: {ULID}@{node}.
    forwarderName: str
    fromName: str
    fromSaid: str
    held: bool
    interrupted: bool
    late: List[Recipient]
    members: List[Member]
    noForward: bool
    outcome: Outcome
    overdue: bool
    passkey: bool
    permission: Permission
    priority: str
    promiseId: str  # An ID: {ULID}@{node}.
    promised: Promised
    queued: bool
    receipts: List[Receipt]
    recipients: List[Recipient]
    refused: str
    replyNumber: int
    replyTo: str  # An ID: {ULID}@{node}.
    resolverId: str  # An ID: {ULID}@{node}.
    review: Review
    revision: int
    route: Route
    snoozedUntil: str  # A time in UTC, with milliseconds.
    state: str
    steps: List[ForwardStep]
    subject: str
    text: str
    thread: str  # An ID: {ULID}@{node}.
    title: str
    toFollow: List[Following]
    toName: str
    unreached: List[Unreached]
    unread: bool
    votes: Votes


class _FilePart(TypedDict):
    file: File
    offset: int


class FilePart(_FilePart, total=False):
    data: str


class Filter(TypedDict, total=False):
    labels: Dict[str, str]
    statuses: List[str]


class _Finish(TypedDict):
    final: Snapshot
    status: str


class Finish(_Finish, total=False):
    error: str


class _Following(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    id: str  # An ID: {ULID}@{node}.
    name: str
    type: str
    words: str


class Following(_Following, total=False):
    number: int


class _ForwardStep(TypedDict):
    by: str  # An ID: {ULID}@{node}.


class ForwardStep(_ForwardStep, total=False):
    after: str
    at: str  # A time in UTC, with milliseconds.
    byName: str
    cause: str
    to: str  # An ID: {ULID}@{node}.
    toName: str
    until: str  # A time in UTC, with milliseconds.


class _Forwarded(TypedDict):
    id: str  # An ID: {ULID}@{node}.


class Forwarded(_Forwarded, total=False):
    by: str  # An ID: {ULID}@{node}.
    byName: str
    cause: str
    name: str
    until: str  # A time in UTC, with milliseconds.


class _Found(TypedDict):
    messages: List[Envelope]


class Found(_Found, total=False):
    behind: int
    next: int


class _Granted(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    by: str  # An ID: {ULID}@{node}.
    grant: str  # An ID: {ULID}@{node}.
    kind: str
    name: str
    target: str  # An ID: {ULID}@{node}.
    to: str  # An ID: {ULID}@{node}.


class Granted(_Granted, total=False):
    facet: Facet
    message: str  # An ID: {ULID}@{node}.
    outcomes: List[str]
    parent: str  # An ID: {ULID}@{node}.
    revoked: str  # A time in UTC, with milliseconds.
    toName: str
    used: int


class _Held(TypedDict):
    kind: str
    name: str


class Held(_Held, total=False):
    gone: str
    left: int
    until: str  # A time in UTC, with milliseconds.
    words: str


class _Holding(TypedDict):
    used: int
    uses: List[UseBy]
    verbs: List[Verb]
    words: str


class Holding(_Holding, total=False):
    facet: Facet
    kind: str
    resource: str  # An ID: {ULID}@{node}.


class _Inbox(TypedDict):
    cursor: int
    messages: List[Envelope]


class Inbox(_Inbox, total=False):
    next: int


class _Invitation(TypedDict):
    id: str  # An ID: {ULID}@{node}.
    name: str
    until: str  # A time in UTC, with milliseconds.


class Invitation(_Invitation, total=False):
    locator: str


class _JournalState(TypedDict):
    bytes: int
    commits: int
    events: int


class JournalState(_JournalState, total=False):
    archiveBytes: int
    archived: int
    behind: int
    flushing: int


class _Lease(TypedDict):
    lease: int
    patterns: List[str]
    state: str


_LeaseOptional = TypedDict(
    "_LeaseOptional",
    {
        "behind": "List[int]",
        "for": "str",
        "holder": "str",
        "holderName": "str",
        "own": "bool",
        "shared": "bool",
        "team": "str",
        "title": "str",
        "until": "str",
    }, total=False,
)


class Lease(_Lease, _LeaseOptional):
    pass


class Leases(TypedDict):
    leases: List[Lease]


class _MadeResource(TypedDict):
    kind: str
    name: str
    resource: str  # An ID: {ULID}@{node}.
    words: str


class MadeResource(_MadeResource, total=False):
    tools: List[str]


class _Mandate(TypedDict):
    agent: str  # An ID: {ULID}@{node}.
    by: str  # An ID: {ULID}@{node}.
    calls: int
    form: str  # An ID: {ULID}@{node}.
    given: str  # A time in UTC, with milliseconds.
    mandate: str  # An ID: {ULID}@{node}.
    used: int
    words: List[str]


class Mandate(_Mandate, total=False):
    end: str
    ended: str  # A time in UTC, with milliseconds.
    session: str  # An ID: {ULID}@{node}.
    sums: List[SpentSum]
    until: str  # A time in UTC, with milliseconds.


class _MandateCall(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    input: Any  # Any JSON.
    tool: str


class MandateCall(_MandateCall, total=False):
    amounts: List[str]
    folder: str


class _Member(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    by: str  # An ID: {ULID}@{node}.
    id: str  # An ID: {ULID}@{node}.
    known: str
    state: str


class Member(_Member, total=False):
    byName: str
    how: str
    name: str
    said: str


class MessageCounts(TypedDict):
    all: int
    done: int
    pending: int
    snoozed: int
    unread: int


_MissingEvents = TypedDict(
    "_MissingEvents",
    {
        "first": "int",
        "from": "str",
        "hint": "str",
        "last": "int",
        "segment": "int",
        "to": "str",
    },
)


class MissingEvents(_MissingEvents, total=False):
    place: str


class NodeQuotas(TypedDict):
    agents: Dict[str, int]  # An amount for each quota by name. -1 is no limit.
    heaviestAgents: List[AgentUse]
    heaviestPeers: List[PeerUse]
    peers: Dict[str, int]  # An amount for each quota by name. -1 is no limit.


class _Outcome(TypedDict):
    status: str


class Outcome(_Outcome, total=False):
    allowed: bool
    at: str  # A time in UTC, with milliseconds.
    by: str  # An ID: {ULID}@{node}.
    byName: str
    digest: str
    editedDigest: str
    editedInput: str
    form: str  # An ID: {ULID}@{node}.
    message: int
    note: str
    order: List[str]
    promise: str  # An ID: {ULID}@{node}.
    signed: bool
    values: Any  # Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}.
    votes: Votes


class _OutputPiece(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    cursor: int
    run: str  # An ID: {ULID}@{node}.
    stream: str
    text: str


class OutputPiece(_OutputPiece, total=False):
    message: str  # An ID: {ULID}@{node}.


class _Party(TypedDict):
    id: str  # An ID: {ULID}@{node}.


class Party(_Party, total=False):
    name: str


class _Passkey(TypedDict):
    added: str  # A time in UTC, with milliseconds.
    fingerprint: str
    key: List[int]
    name: str
    origin: str
    passkey: str  # An ID: {ULID}@{node}.


class Passkey(_Passkey, total=False):
    used: str  # A time in UTC, with milliseconds.


class _PasskeyNeed(TypedDict):
    need: str


class PasskeyNeed(_PasskeyNeed, total=False):
    agent: str  # An ID: {ULID}@{node}.
    name: str


class _Peer(TypedDict):
    node: str  # A node's public key.
    reachable: bool
    traffic: Traffic
    use: PeerUse
    waiting: int


class Peer(_Peer, total=False):
    hints: List[str]
    host: str  # An ID: {ULID}@{node}.
    lastHeard: str  # A time in UTC, with milliseconds.
    name: str


class _PeerUse(TypedDict):
    node: str  # A node's public key.
    quotas: Dict[str, int]  # An amount for each quota by name. -1 is no limit.
    share: float
    used: Dict[str, int]  # An amount for each quota by name. -1 is no limit.


class PeerUse(_PeerUse, total=False):
    name: str
    quota: str


class _PendingPermission(TypedDict):
    askedAt: str  # A time in UTC, with milliseconds.
    form: str  # An ID: {ULID}@{node}.
    input: str
    number: int
    tool: str


class PendingPermission(_PendingPermission, total=False):
    folder: str
    offers: List[Offer]
    part: str
    passkey: bool
    reason: str
    session: str
    use: AskedUse


class _Permitted(TypedDict):
    allowed: bool
    decided: bool
    number: int


class Permitted(_Permitted, total=False):
    form: str  # An ID: {ULID}@{node}.
    leased: Lease
    mandate: str  # An ID: {ULID}@{node}.
    outcome: Outcome
    promise: str  # An ID: {ULID}@{node}.
    promised: Promised
    rule: str  # An ID: {ULID}@{node}.
    unattended: bool
    unreachable: bool


class Promised(TypedDict):
    form: str  # An ID: {ULID}@{node}.
    name: str
    number: int


class _Proof(TypedDict):
    form: str  # An ID: {ULID}@{node}.
    proof: str


class Proof(_Proof, total=False):
    signed: bool


class _Receipt(TypedDict):
    known: str
    reader: str  # An ID: {ULID}@{node}.
    state: str


class Receipt(_Receipt, total=False):
    absent: Absent
    at: str  # A time in UTC, with milliseconds.
    by: str  # An ID: {ULID}@{node}.
    byName: str
    how: str
    readerName: str


class _Recipient(TypedDict):
    id: str  # An ID: {ULID}@{node}.


class Recipient(_Recipient, total=False):
    name: str
    said: str


class _Review(TypedDict):
    by: str  # An ID: {ULID}@{node}.


class Review(_Review, total=False):
    at: str  # A time in UTC, with milliseconds.
    byName: str
    how: str
    mayAllow: bool
    note: str
    until: str  # A time in UTC, with milliseconds.


class Route(TypedDict, total=False):
    escalations: List[RouteStep]
    reminded: int
    remindedAt: str  # A time in UTC, with milliseconds.
    remindsAt: str  # A time in UTC, with milliseconds.


class _RouteStep(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    to: str  # An ID: {ULID}@{node}.


class RouteStep(_RouteStep, total=False):
    cause: str
    toName: str


class _Rule(TypedDict):
    agent: str  # An ID: {ULID}@{node}.
    allow: bool
    covers: Coverage
    made: str  # A time in UTC, with milliseconds.
    rule: str  # An ID: {ULID}@{node}.
    tool: str
    uses: int
    words: str


class Rule(_Rule, total=False):
    form: str  # An ID: {ULID}@{node}.
    lastUsed: str  # A time in UTC, with milliseconds.
    paused: bool
    until: str  # A time in UTC, with milliseconds.


class _Schedule(TypedDict):
    number: int
    text: str
    to: str  # An ID: {ULID}@{node}.


class Schedule(_Schedule, total=False):
    ackBy: str  # A time in UTC, with milliseconds.
    also: List[Party]
    every: str
    files: List[File]
    last: str  # An ID: {ULID}@{node}.
    lastAt: str  # A time in UTC, with milliseconds.
    next: str  # A time in UTC, with milliseconds.
    priority: str
    refused: str
    subject: str
    toName: str
    zone: str


class Schedules(TypedDict):
    schedules: List[Schedule]


class _Sent(TypedDict):
    message: str  # An ID: {ULID}@{node}.
    number: int


class Sent(_Sent, total=False):
    absent: List[Receipt]
    given: List[str]
    notTo: List[Recipient]
    plain: List[str]
    promised: Promised
    queued: bool
    recipients: List[Recipient]
    unreachable: bool


class _Snapshot(TypedDict):
    createdAt: str  # A time in UTC, with milliseconds.
    id: str  # An ID: {ULID}@{node}.
    kind: str
    labels: Dict[str, str]
    node: str  # A node's public key.
    openForms: int
    pendingPermissions: List[PendingPermission]
    queued: int
    state: str
    status: str
    title: str
    updatedAt: str  # A time in UTC, with milliseconds.


class Snapshot(_Snapshot, total=False):
    awayUntil: str  # A time in UTC, with milliseconds.
    ended: bool
    error: str
    held: bool
    interrupted: List[CutMessage]
    morePermissions: int
    name: str
    of: str  # An ID: {ULID}@{node}.
    policy: str
    runtime: str
    session: str
    stopped: bool
    topic: bool
    user: str
    wrap: List[str]


class SpentSum(TypedDict):
    left: str
    member: str
    most: str
    spent: str
    tool: str


class _StandIns(TypedDict):
    members: List[Party]


class StandIns(_StandIns, total=False):
    away: Away


class _StoredFile(TypedDict):
    offset: int
    size: int
    upload: str


class StoredFile(_StoredFile, total=False):
    digest: str


class Take(TypedDict):
    name: str
    type: str


class Team(TypedDict):
    agent: str  # An ID: {ULID}@{node}.
    members: List[TeamMember]
    team: str


class _TeamMember(TypedDict):
    agent: str  # An ID: {ULID}@{node}.
    status: str


class TeamMember(_TeamMember, total=False):
    joined: str  # A time in UTC, with milliseconds.
    leases: List[int]
    name: str
    of: str  # An ID: {ULID}@{node}.
    own: bool
    title: str


class Teams(TypedDict):
    teams: List[Team]


class _Token(TypedDict):
    id: str  # An ID: {ULID}@{node}.
    made: str  # A time in UTC, with milliseconds.
    scopes: List[str]


class Token(_Token, total=False):
    by: str  # An ID: {ULID}@{node}.
    note: str
    session: bool
    token: str
    until: str  # A time in UTC, with milliseconds.
    used: str  # A time in UTC, with milliseconds.


class _Topic(TypedDict):
    agent: str  # An ID: {ULID}@{node}.
    posts: int
    subscribers: int
    topic: str


class Topic(_Topic, total=False):
    everyMs: int
    last: str  # A time in UTC, with milliseconds.
    next: str  # A time in UTC, with milliseconds.
    stream: bool
    subscribed: bool
    team: str


_TopicPost = TypedDict(
    "_TopicPost",
    {
        "date": "str",
        "from": "str",
        "message": "str",
        "number": "int",
        "text": "str",
    },
)


class TopicPost(_TopicPost, total=False):
    files: List[File]
    fromName: str
    fromSaid: str
    replyTo: int
    subject: str


class _TopicPosts(TypedDict):
    posts: List[TopicPost]


class TopicPosts(_TopicPosts, total=False):
    more: bool


class Topics(TypedDict):
    topics: List[Topic]


class Traffic(TypedDict):
    bytesIn: int
    bytesOut: int
    lettersIn: int
    lettersOut: int
    mailIn: int
    mailOut: int
    refused: int


class _Trial(TypedDict):
    calls: int
    rules: List[TriedRule]


class Trial(_Trial, total=False):
    behind: int
    long: int
    more: bool


class TriedCall(TypedDict):
    input: str
    number: int


class _TriedRule(TypedDict):
    against: int
    allow: bool
    allowed: int
    covered: int
    denied: int
    tool: str
    words: str


class TriedRule(_TriedRule, total=False):
    examples: List[TriedCall]
    offer: str
    proposal: str
    rule: str  # An ID: {ULID}@{node}.


class _Unreached(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    by: str  # An ID: {ULID}@{node}.
    id: str  # An ID: {ULID}@{node}.
    known: str
    why: str


class Unreached(_Unreached, total=False):
    byName: str
    name: str
    said: str


class _Use(TypedDict):
    result: Any  # Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}.


class Use(_Use, total=False):
    error: Refusal
    form: str  # An ID: {ULID}@{node}.
    held: List[Held]
    holds: Holding
    moreHeld: bool
    state: str
    use: str  # An ID: {ULID}@{node}.
    words: str


class _UseBy(TypedDict):
    begun: str  # A time in UTC, with milliseconds.
    by: str  # An ID: {ULID}@{node}.
    state: str
    words: str


class UseBy(_UseBy, total=False):
    byName: str
    ended: str  # A time in UTC, with milliseconds.
    error: Refusal


class Verb(TypedDict):
    name: str
    needs: int
    takes: List[Take]
    words: str


class _Vote(TypedDict):
    at: str  # A time in UTC, with milliseconds.
    by: str  # An ID: {ULID}@{node}.
    outcome: str


class Vote(_Vote, total=False):
    byName: str
    note: str
    void: bool


class _Votes(TypedDict):
    have: int
    need: int
    veto: bool


class Votes(_Votes, total=False):
    cast: List[Vote]
    noSelf: bool
    own: str
    replaced: Party
    votedAs: Party
    waiting: List[Party]


class Facet(TypedDict, total=False):
    ask: bool
    below: str
    methods: str
    mode: str
    only: str
    rate: Rate
    until: str  # A time in UTC, with milliseconds.
    uses: int


class Rate(TypedDict):
    seconds: int
    uses: int


class _AskedUse(TypedDict):
    by: str  # An ID: {ULID}@{node}.
    kind: str
    name: str


class AskedUse(_AskedUse, total=False):
    called: str
    holder: str
    through: str


class _CommandPattern(TypedDict):
    words: List[str]


class CommandPattern(_CommandPattern, total=False):
    operands: str
    options: List[str]


class _Coverage(TypedDict):
    kind: str


class Coverage(_Coverage, total=False):
    commands: List[CommandPattern]
    file: str
    folder: str
    glob: str
    input: str


class _Field(TypedDict):
    name: str


class Field(_Field, total=False):
    default: Any  # Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}.
    example: Any  # Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}.
    help: str
    label: str
    options: List[Option]
    pattern: Any  # Any JSON.
    placeholder: str
    required: bool
    type: str


class _File(TypedDict):
    digest: str
    name: str
    size: int


class File(_File, total=False):
    type: str


class Offer(TypedDict):
    id: str
    rule: Coverage
    words: str


class _Option(TypedDict):
    value: str


class Option(_Option, total=False):
    description: str
    label: str


class _Refusal(TypedDict):
    code: str
    message: str


class Refusal(_Refusal, total=False):
    fields: Dict[str, str]
    hint: str


class MandateRule(TypedDict, total=False):
    command: str
    files: str
    folder: str
    input: Any  # Any JSON.
    like: bool
    offer: str
    read: bool
    tool: str


class _MandateSum(TypedDict):
    member: str
    most: str


class MandateSum(_MandateSum, total=False):
    tool: str


class _MandateTerms(TypedDict):
    rules: List[MandateRule]


class MandateTerms(_MandateTerms, total=False):
    calls: int
    sums: List[MandateSum]
    until: str


class PasskeySignature(TypedDict):
    authenticator: str
    clientData: str
    credential: str
    signature: str
    statement: str


class _Permission(TypedDict):
    input: str
    tool: str


class Permission(_Permission, total=False):
    folder: str
    offers: List[Offer]
    part: str
    passkey: bool
    reason: str
    session: str
    use: AskedUse


class _ReviewTerms(TypedDict):
    reviewer: str


class ReviewTerms(_ReviewTerms, total=False):
    cautious: bool
    rules: List[MandateRule]
    sample: int
    wait: str


# What is sent to each operation, and what it answers.
OPERATIONS: Dict[str, Tuple[Any, Any]] = {
    "accept": (AcceptRequest, Accepted),
    "acknowledge": (MessageRequest, Done),
    "add_passkey": (AddPasskeyRequest, Passkey),
    "adopt": (AdoptRequest, Done),
    "amend_form": (AmendFormRequest, Envelope),
    "answer_with": (AnswerWithRequest, Outcome),
    "approve": (ApproveRequest, Permitted),
    "archive_agent": (AgentRequest, AgentResponse),
    "archive_journal": (ArchiveJournalRequest, Archive),
    "ask_passkey": (AskPasskeyRequest, AskPasskeyResponse),
    "await": (AwaitRequest, Outcome),
    "await_lease": (AwaitLeaseRequest, Lease),
    "begin_passkey": (BeginPasskeyRequest, BeginPasskeyResponse),
    "cancel_form": (EndRequest, Outcome),
    "claim_form": (ClaimFormRequest, Claimed),
    "complete": (CompleteRequest, CompleteResponse),
    "copy_name": (CopyNameRequest, Done),
    "count_messages": (CountMessagesRequest, MessageCounts),
    "create_token": (CreateTokenRequest, Token),
    "decide_many": (DecideManyRequest, DecideManyResponse),
    "decline_form": (DeclineRequest, Outcome),
    "describe_agent": (DescribeAgentRequest, Done),
    "dismiss": (MessageRequest, Done),
    "drop_peer": (DropPeerRequest, DroppedPeer),
    "end_mandate": (MandateRequest, Done),
    "end_resource": (NameRequest, Done),
    "end_schedule": (EndScheduleRequest, Done),
    "end_team": (EndTeamRequest, Done),
    "end_topic": (EndTopicRequest, Done),
    "fetch_agent": (AgentRequest, FetchAgentResponse),
    "fetch_agents": (FetchAgentsRequest, FetchAgentsResponse),
    "fetch_draft": (FetchDraftRequest, Draft),
    "fetch_file": (FetchFileRequest, FilePart),
    "fetch_segments": (MoveSegmentsRequest, Archive),
    "follow_messages": (FollowMessagesRequest, Inbox),
    "form": (FormRequest, Asked),
    "forward_form": (ForwardFormRequest, Done),
    "get_attention": (GetAttentionRequest, Attention),
    "get_mandate": (MandateRequest, GetMandateResponse),
    "get_message": (MessageRequest, Envelope),
    "get_quota": (GetQuotaRequest, AgentUse),
    "grant_answer": (GrantAnswerRequest, AnswerRight),
    "hold_agent": (HoldAgentRequest, AgentResponse),
    "invite": (InviteRequest, Invitation),
    "invoke": (InvokeRequest, Use),
    "lease": (LeaseRequest, Lease),
    "limit_peer": (LimitPeerRequest, Peer),
    "limit_rule": (LimitRuleRequest, Done),
    "list_archive": (NodeRequest, Archive),
    "list_grants": (ListGrantsRequest, ListGrantsResponse),
    "list_invitations": (ListInvitationsRequest, ListInvitationsResponse),
    "list_leases": (ListLeasesRequest, Leases),
    "list_mandates": (ListMandatesRequest, ListMandatesResponse),
    "list_messages": (ListMessagesRequest, Inbox),
    "list_names": (ListNamesRequest, ListNamesResponse),
    "list_nodes": (ListNodesRequest, ListNodesResponse),
    "list_passkeys": (ListPasskeysRequest, ListPasskeysResponse),
    "list_posts": (ListPostsRequest, TopicPosts),
    "list_rules": (ListRulesRequest, ListRulesResponse),
    "list_schedules": (ListSchedulesRequest, Schedules),
    "list_stand_ins": (StandInsRequest, StandIns),
    "list_teams": (ListTeamsRequest, Teams),
    "list_tokens": (ListTokensRequest, ListTokensResponse),
    "list_topics": (ListTopicsRequest, Topics),
    "locate": (NameRequest, LocateResponse),
    "lookup": (LookupRequest, LookupResponse),
    "make_agent": (MakeAgentRequest, MakeAgentResponse),
    "make_resource": (MakeResourceRequest, MadeResource),
    "make_rule": (MakeRuleRequest, TriedRule),
    "make_topic": (MakeTopicRequest, Topic),
    "mark_read": (MarkReadRequest, MarkReadResponse),
    "move_messages": (MoveMessagesRequest, MoveMessagesResponse),
    "move_segments": (MoveSegmentsRequest, Archive),
    "open_link": (OpenLinkRequest, OpenLinkResponse),
    "pause_rule": (PauseRuleRequest, Done),
    "post": (PostRequest, Sent),
    "proof": (ProofRequest, Proof),
    "propose_rules": (ProposeRulesRequest, Trial),
    "read_log": (ReadLogRequest, ReadLogResponse),
    "read_mail": (ReadMailRequest, ReadMailResponse),
    "read_output": (ReadOutputRequest, ReadOutputResponse),
    "reject": (DeclineRequest, Outcome),
    "release_lease": (ReleaseLeaseRequest, Done),
    "remove_name": (NameRequest, Done),
    "remove_passkey": (RemovePasskeyRequest, Done),
    "remove_rule": (RemoveRuleRequest, Done),
    "rename_name": (RenameNameRequest, Done),
    "renew_lease": (RenewLeaseRequest, Lease),
    "reply": (ReplyRequest, Sent),
    "request": (CapabilityRequest, Asked),
    "require_passkey": (RequirePasskeyRequest, Done),
    "resolve": (ResolveRequest, Outcome),
    "respond_form": (RespondFormRequest, Outcome),
    "restore_message": (MessageRequest, Done),
    "revoke": (RevokeRequest, Done),
    "revoke_token": (RevokeTokenRequest, Done),
    "run_agent": (RunAgentRequest, MakeAgentResponse),
    "save_draft": (SaveDraftRequest, Done),
    "schedule": (ScheduleRequest, Schedule),
    "search": (SearchRequest, Found),
    "send": (SendRequest, Sent),
    "send_agent_message": (SendAgentMessageRequest, SendAgentMessageResponse),
    "set_attention": (SetAttentionRequest, Attention),
    "set_away": (SetAwayRequest, StandIns),
    "set_member": (SetMemberRequest, StandIns),
    "set_policy": (SetPolicyRequest, AgentResponse),
    "set_quota": (SetQuotaRequest, AgentUse),
    "set_status": (SetStatusRequest, Done),
    "set_team": (SetTeamRequest, Teams),
    "snooze": (SnoozeRequest, Done),
    "start_programs": (NodeRequest, Done),
    "status": (NodeRequest, StatusResponse),
    "stop": (NodeRequest, StopResponse),
    "stop_agent": (AgentRequest, AgentResponse),
    "store_file": (StoreFileRequest, StoredFile),
    "store_name": (StoreNameRequest, Done),
    "subscribe": (SubscribeRequest, Topic),
    "try_rules": (TryRulesRequest, Trial),
    "uninvite": (NameRequest, Done),
    "verify": (NodeRequest, VerifyResponse),
    "wait_for_finish": (WaitForFinishRequest, Finish),
    "withdraw_vote": (MessageRequest, Withdrawn),
}

# The operations that change nothing, and so can be called again.
LOOKS = frozenset(
    [
        "await",
        "await_lease",
        "complete",
        "count_messages",
        "fetch_agent",
        "fetch_agents",
        "fetch_file",
        "follow_messages",
        "get_attention",
        "get_mandate",
        "get_message",
        "get_quota",
        "list_archive",
        "list_grants",
        "list_invitations",
        "list_leases",
        "list_mandates",
        "list_messages",
        "list_names",
        "list_nodes",
        "list_passkeys",
        "list_posts",
        "list_rules",
        "list_schedules",
        "list_stand_ins",
        "list_teams",
        "list_tokens",
        "list_topics",
        "locate",
        "lookup",
        "proof",
        "propose_rules",
        "read_log",
        "read_mail",
        "read_output",
        "search",
        "status",
        "try_rules",
        "verify",
        "wait_for_finish",
    ]
)

# The bytes of the largest request.
MAX_BODY = 1048576
