// Written from the node's table of operations by a test, TestTypeScriptMatchesOperations: not by hand.

export interface AcceptRequest {
  as?: string;
  locator: string;
  name: string;
}

export interface AddPasskeyRequest {
  as?: string;
  /** Any JSON. */
  credential: unknown;
  passkey?: PasskeySignature;
}

export interface AdoptRequest {
  as?: string;
  edge: string;
  id?: Ref;
  name?: string;
  number?: Ref;
}

export interface AgentRequest {
  agentId: string;
  as?: string;
}

export interface AgentResponse {
  /** An ID: {ULID}@{node}. */
  agentId: string;
}

export interface AmendFormRequest {
  as?: string;
  description?: string;
  fields?: Array<Field>;
  id?: Ref;
  note?: string;
  number?: Ref;
  title?: string;
}

export interface AnswerWithRequest {
  as?: string;
  outcome: string;
  reason?: string;
  secret: string;
  texts?: Array<Text>;
  values?: Record<string, unknown>;
}

export interface ApproveRequest {
  as?: string;
  attended?: boolean;
  /** A time in UTC, with milliseconds. */
  deadline?: string;
  editable?: boolean;
  escalate?: Array<Escalation>;
  folder?: string;
  /** Any JSON. */
  input: unknown;
  key?: string;
  need?: number;
  part?: string;
  passkey?: boolean;
  reason?: string;
  recipient?: string;
  remind?: Array<string>;
  tool: string;
  veto?: boolean;
}

export interface ArchiveJournalRequest {
  as?: string;
  /** A time in UTC, with milliseconds. */
  before: string;
  to?: string;
}

export interface AskPasskeyRequest {
  act?: string;
  as?: string;
  digest?: string;
  id?: Ref;
  mandate?: MandateTerms;
  narrow?: Record<string, Facet>;
  number?: Ref;
  origin: string;
  passkey?: PasskeySignature;
  revision?: number;
  texts?: Array<Text>;
  values?: Record<string, unknown>;
}

export interface AskPasskeyResponse {
  challenge: string;
  credentials: Array<string>;
  /** An ID: {ULID}@{node}. */
  form?: string;
  host: string;
  statement: string;
  wanted: boolean;
}

export interface AwaitLeaseRequest {
  as?: string;
  lease: number;
  waitMs?: number;
}

export interface AwaitRequest {
  after?: number;
  all?: boolean;
  as?: string;
  id?: Ref;
  number?: Ref;
  until?: string;
  waitMs?: number;
}

export interface BeginPasskeyRequest {
  as?: string;
  name: string;
  origin: string;
}

export interface BeginPasskeyResponse {
  /** Any JSON. */
  options: unknown;
}

export interface Candidate {
  description?: string;
  word: string;
}

export interface CapabilityRequest {
  as?: string;
  /** A time in UTC, with milliseconds. */
  deadline?: string;
  key?: string;
  name?: string;
  noForward?: boolean;
  passkey?: boolean;
  recipient: string;
  text: string;
}

export interface ClaimFormRequest {
  as?: string;
  forMs?: number;
  id?: Ref;
  number?: Ref;
  release?: boolean;
  takeOver?: boolean;
}

export interface CompleteRequest {
  as?: string;
  id?: Ref;
  number?: Ref;
  of: string;
  prefix?: string;
}

export interface CompleteResponse {
  candidates: Array<Candidate>;
}

export interface CopyNameRequest {
  as?: string;
  facet?: string;
  narrow?: Facet;
  new: string;
  old: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
  uses?: number;
}

export interface CountMessagesRequest {
  as?: string;
}

export interface CreateTokenRequest {
  as?: string;
  note?: string;
  scopes?: Array<string>;
  /** A time in UTC, with milliseconds. */
  until?: string;
}

export interface DecideManyRequest {
  as?: string;
  decisions: Array<Decision>;
  key?: string;
  secondVote?: boolean;
}

export interface DecideManyResponse {
  results: Array<Decided>;
}

export interface Decided {
  error?: Refusal;
  /** An ID: {ULID}@{node}. */
  form: string;
  outcome?: Outcome;
}

export interface Decision {
  decision: string;
  digest: string;
  /** An ID: {ULID}@{node}. */
  form: string;
  mandate?: MandateTerms;
  reason?: string;
  rule?: string;
  until?: string;
}

export interface DeclineRequest {
  as?: string;
  id?: Ref;
  number?: Ref;
  reason?: string;
  revision?: number;
  secondVote?: boolean;
}

export interface DescribeAgentRequest {
  as?: string;
  labels?: Record<string, string>;
  title?: string;
}

export interface Done {
}

export interface DropPeerRequest {
  as?: string;
  node: string;
}

export interface EndRequest {
  as?: string;
  id?: Ref;
  number?: Ref;
  reason?: string;
}

export interface EndScheduleRequest {
  as?: string;
  schedule: number;
}

export interface EndTeamRequest {
  as?: string;
  team: string;
}

export interface EndTopicRequest {
  as?: string;
  topic: string;
}

export interface Escalation {
  after: string;
  to: string;
}

export interface Failure {
  error?: Refusal;
}

export interface FetchAgentResponse {
  agent?: Snapshot;
  error?: Refusal;
}

export interface FetchAgentsRequest {
  after?: string;
  as?: string;
  filter?: Filter;
  limit?: number;
  page?: Page;
}

export interface FetchAgentsResponse {
  agents: Array<Snapshot>;
  next?: string;
  pageInfo?: PageInfo;
}

export interface FetchDraftRequest {
  as?: string;
  id?: Ref;
  number?: Ref;
  reply?: boolean;
  to?: string;
}

export interface FetchFileRequest {
  as?: string;
  file: string;
  id?: Ref;
  number?: Ref;
  offset?: number;
}

export interface FollowMessagesRequest {
  all?: boolean;
  as?: string;
  cursor: number;
  done?: boolean;
  notes?: boolean;
  open?: boolean;
  overdue?: boolean;
  pending?: boolean;
  sent?: boolean;
  snoozed?: boolean;
  unread?: boolean;
  waitMs?: number;
}

export interface FormRef {
  id?: Ref;
  number?: Ref;
}

export interface FormRequest {
  as?: string;
  /** A time in UTC, with milliseconds. */
  deadline?: string;
  description: string;
  escalate?: Array<Escalation>;
  fields: Array<Field>;
  key?: string;
  name?: string;
  need?: number;
  noForward?: boolean;
  noSelf?: boolean;
  passkey?: boolean;
  recipient: string;
  remind?: Array<string>;
  title?: string;
  veto?: boolean;
}

export interface ForwardFormRequest {
  as?: string;
  id?: Ref;
  number?: Ref;
  recipient: string;
}

export interface GetAttentionRequest {
  as?: string;
}

export interface GetMandateResponse {
  covered: Array<MandateCall>;
  mandate: Mandate;
}

export interface GetQuotaRequest {
  agentId: string;
  as?: string;
}

export interface GrantAnswerRequest {
  as?: string;
  /** An ID: {ULID}@{node}. */
  from?: string;
  id?: Ref;
  name?: string;
  number?: Ref;
  outcomes?: Array<string>;
  secret?: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
  uses?: number;
}

export interface HoldAgentRequest {
  agentId: string;
  as?: string;
  hold: boolean;
}

export interface InviteRequest {
  as?: string;
  /** A time in UTC, with milliseconds. */
  expires?: string;
  name: string;
}

export interface InvokeRequest {
  as?: string;
  input?: Record<string, unknown>;
  key?: string;
  name?: string;
  use?: string;
  verb?: string;
  waitMs?: number;
}

export interface LeaseRequest {
  as?: string;
  folder?: string;
  for?: string;
  patterns: Array<string>;
  shared?: boolean;
  team?: string;
  ttlMs?: number;
  waitMs?: number;
}

export interface LimitPeerRequest {
  as?: string;
  node: string;
  quotas?: Record<string, number>;
  reset?: boolean;
}

export interface LimitRuleRequest {
  agent: string;
  as?: string;
  /** An ID: {ULID}@{node}. */
  form?: string;
  passkey?: PasskeySignature;
  /** An ID: {ULID}@{node}. */
  rule?: string;
  /** A time in UTC, with milliseconds. */
  until: string;
}

export interface LimitState {
  each?: number;
  for: string;
  limit: number;
  name: string;
  now: number;
  refused: number;
}

export interface ListGrantsRequest {
  after?: string;
  as?: string;
  limit?: number;
}

export interface ListGrantsResponse {
  grants: Array<Granted>;
  next?: string;
}

export interface ListInvitationsRequest {
  after?: string;
  as?: string;
  limit?: number;
}

export interface ListInvitationsResponse {
  invitations: Array<Invitation>;
  next?: string;
}

export interface ListLeasesRequest {
  as?: string;
}

export interface ListMandatesRequest {
  after?: string;
  agent?: string;
  all?: boolean;
  as?: string;
  everyone?: boolean;
  limit?: number;
}

export interface ListMandatesResponse {
  mandates: Array<Mandate>;
  next?: string;
}

export interface ListMessagesRequest {
  all?: boolean;
  as?: string;
  before?: number;
  done?: boolean;
  first?: number;
  last?: number;
  limit?: number;
  notes?: boolean;
  open?: boolean;
  overdue?: boolean;
  pending?: boolean;
  sent?: boolean;
  snoozed?: boolean;
  unread?: boolean;
}

export interface ListNamesRequest {
  after?: string;
  as?: string;
  limit?: number;
  path?: string;
}

export interface ListNamesResponse {
  names: Array<string>;
  next?: string;
  revoked?: Array<string>;
}

export interface ListNodesRequest {
  after?: string;
  as?: string;
  limit?: number;
}

export interface ListNodesResponse {
  next?: string;
  nodes: Array<Peer>;
}

export interface ListPasskeysRequest {
  as?: string;
}

export interface ListPasskeysResponse {
  needs: Array<PasskeyNeed>;
  passkeys: Array<Passkey>;
}

export interface ListPostsRequest {
  as?: string;
  before?: number;
  limit?: number;
  post?: number;
  topic: string;
}

export interface ListRulesRequest {
  after?: string;
  agent?: string;
  as?: string;
  limit?: number;
}

export interface ListRulesResponse {
  next?: string;
  rules: Array<Rule>;
}

export interface ListSchedulesRequest {
  as?: string;
}

export interface ListTeamsRequest {
  as?: string;
  team?: string;
}

export interface ListTokensRequest {
  after?: string;
  as?: string;
  limit?: number;
}

export interface ListTokensResponse {
  next?: string;
  tokens: Array<Token>;
}

export interface ListTopicsRequest {
  as?: string;
}

export interface LocateResponse {
  /** An ID: {ULID}@{node}. */
  id: string;
  kind?: string;
  locator: string;
}

export interface LookupRequest {
  as?: string;
  name: string;
  reveal?: boolean;
}

export interface LookupResponse {
  /** Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}. */
  value: unknown;
}

export interface MakeAgentRequest {
  as?: string;
  kind?: string;
  labels?: Record<string, string>;
  name: string;
  title?: string;
}

export interface MakeAgentResponse {
  /** An ID: {ULID}@{node}. */
  agent: string;
  kind: string;
  name: string;
}

export interface MakeResourceRequest {
  address?: string;
  again?: boolean;
  as?: string;
  authority?: string;
  command?: Array<string>;
  facet?: Facet;
  file?: File;
  folder?: string;
  header?: string;
  kind: string;
  name: string;
  secret?: string;
}

export interface MakeRuleRequest {
  agent: string;
  as?: string;
  /** An ID: {ULID}@{node}. */
  form?: string;
  never?: boolean;
  offer?: string;
  passkey?: PasskeySignature;
  proposal?: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
}

export interface MakeTopicRequest {
  as?: string;
  team?: string;
  topic: string;
}

export interface MandateRequest {
  agent?: string;
  as?: string;
  /** An ID: {ULID}@{node}. */
  mandate: string;
}

export interface MarkReadRequest {
  as?: string;
  numbers?: Array<number>;
  unread?: boolean;
}

export interface MarkReadResponse {
  unread: number;
}

export interface MessageRequest {
  as?: string;
  id?: Ref;
  number?: Ref;
}

export interface MoveMessagesRequest {
  as?: string;
  do: string;
  messages: Array<FormRef>;
  /** A time in UTC, with milliseconds. */
  until?: string;
}

export interface MoveMessagesResponse {
  moved: number;
  refused?: Array<Unmoved>;
}

export interface MoveSegmentsRequest {
  as?: string;
  place: string;
  segments?: Array<number>;
}

export interface NameRequest {
  as?: string;
  name: string;
}

export interface NodeRequest {
  as?: string;
}

export interface OpenLinkRequest {
  as?: string;
}

export interface OpenLinkResponse {
  /** A time in UTC, with milliseconds. */
  until: string;
  url: string;
}

export interface Page {
  cursor?: string;
  limit?: number;
}

export interface PageInfo {
  hasMore: boolean;
  nextCursor?: string;
  prevCursor?: string;
}

export interface PauseRuleRequest {
  agent: string;
  as?: string;
  passkey?: PasskeySignature;
  resume?: boolean;
  /** An ID: {ULID}@{node}. */
  rule: string;
}

export interface Peers {
  known: number;
  reachable: number;
  traffic: Traffic;
  waiting: number;
}

export interface PostRequest {
  /** A time in UTC, with milliseconds. */
  ackBy?: string;
  as?: string;
  escalate?: string;
  files?: Array<File>;
  key?: string;
  plain?: boolean;
  priority?: string;
  subject?: string;
  text: string;
  topic: string;
}

export interface ProgramsStatus {
  environment?: Array<string>;
  held?: boolean;
  user?: string;
  wrap?: Array<string>;
}

export interface ProofRequest {
  as?: string;
  digestOnly?: boolean;
  id?: Ref;
  number?: Ref;
}

export interface ProposeRulesRequest {
  agent: string;
  as?: string;
}

export interface ReadLogRequest {
  after?: number;
  as?: string;
  journal?: boolean;
  limit?: number;
  waitMs?: number;
}

export interface ReadLogResponse {
  archived?: number;
  entries: Array<Entry>;
  missing?: Array<MissingEvents>;
  more: boolean;
}

export interface ReadMail {
  alsoTo?: string;
  author?: string;
  /** A time in UTC, with milliseconds. */
  date: string;
  files?: Array<string>;
  from: string;
  known: string;
  mark: string;
  number: string;
  priority?: string;
  readOn?: number;
  replyTo?: string;
  replyWanted?: boolean;
  subject?: string;
  text: string;
  to?: string;
  type: string;
}

export interface ReadMailRequest {
  as?: string;
  count?: boolean;
  from?: number;
  message?: Ref;
  waitMs?: number;
}

export interface ReadMailResponse {
  hooked?: boolean;
  mail: Array<ReadMail>;
  more?: number;
  quiet?: boolean;
  unread?: number;
}

export interface ReadOutputRequest {
  after?: number;
  agentId: string;
  as?: string;
  limit?: number;
  tail?: number;
  waitMs?: number;
}

export interface ReadOutputResponse {
  cursor: number;
  pieces: Array<OutputPiece>;
}

/** A message's number, or the ID of a message, form or promise. */
export type Ref = string | number;

export interface ReleaseLeaseRequest {
  as?: string;
  lease: number;
}

export interface RemovePasskeyRequest {
  as?: string;
  name: string;
  passkey?: PasskeySignature;
}

export interface RemoveRuleRequest {
  agent: string;
  as?: string;
  /** An ID: {ULID}@{node}. */
  rule: string;
}

export interface RenameNameRequest {
  as?: string;
  force?: boolean;
  new: string;
  old: string;
}

export interface RenewLeaseRequest {
  as?: string;
  lease: number;
  ttlMs?: number;
}

export interface ReplyRequest {
  /** A time in UTC, with milliseconds. */
  ackBy?: string;
  all?: boolean;
  as?: string;
  escalate?: string;
  files?: Array<File>;
  id?: Ref;
  key?: string;
  number?: Ref;
  plain?: boolean;
  priority?: string;
  subject?: string;
  text: string;
}

export interface RequirePasskeyRequest {
  agent?: string;
  as?: string;
  need?: string;
  passkey?: PasskeySignature;
}

export interface ResolveRequest {
  as?: string;
  id?: Ref;
  name: string;
  narrow?: Facet;
  number?: Ref;
}

export interface RespondFormRequest {
  as?: string;
  digest?: string;
  id?: Ref;
  mandate?: MandateTerms;
  narrow?: Record<string, Facet>;
  number?: Ref;
  passkey?: PasskeySignature;
  revision?: number;
  secondVote?: boolean;
  texts?: Array<Text>;
  values?: Record<string, unknown>;
}

export interface RevokeRequest {
  as?: string;
  grant: string;
}

export interface RevokeTokenRequest {
  as?: string;
  /** An ID: {ULID}@{node}. */
  token: string;
}

export interface RunAgentRequest {
  access?: Array<string>;
  as?: string;
  command?: Array<string>;
  environment?: Array<string>;
  folder?: string;
  inherit?: Array<string>;
  keep?: boolean;
  labels?: Record<string, string>;
  name?: string;
  policy?: string;
  runtime: string;
  seconds?: number;
  title?: string;
  user?: string;
  wait?: boolean;
  wrap?: Array<string>;
}

export interface SaveDraftRequest {
  as?: string;
  id?: Ref;
  number?: Ref;
  text?: string;
  texts?: Array<Text>;
  to?: string;
}

export interface ScheduleRequest {
  /** A time in UTC, with milliseconds. */
  ackBy?: string;
  as?: string;
  /** A time in UTC, with milliseconds. */
  at?: string;
  escalate?: string;
  every?: string;
  files?: Array<File>;
  key?: string;
  plain?: boolean;
  priority?: string;
  recipient?: string;
  recipients?: Array<string>;
  subject?: string;
  text: string;
  zone?: string;
}

export interface SearchRequest {
  all?: boolean;
  as?: string;
  before?: number;
  decidedBy?: string;
  done?: boolean;
  from?: string;
  limit?: number;
  notes?: boolean;
  open?: boolean;
  order?: string;
  outcomes?: Array<string>;
  overdue?: boolean;
  pending?: boolean;
  sent?: boolean;
  /** A time in UTC, with milliseconds. */
  since?: string;
  skip?: number;
  snoozed?: boolean;
  subject?: string;
  text?: string;
  thread?: FormRef;
  to?: string;
  tool?: string;
  types?: Array<string>;
  unread?: boolean;
  /** A time in UTC, with milliseconds. */
  until?: string;
  verdict?: string;
}

export interface SendAgentMessageRequest {
  agentId: string;
  as?: string;
  messageId?: string;
  text: string;
}

export interface SendAgentMessageResponse {
  accepted: boolean;
  /** An ID: {ULID}@{node}. */
  agentId?: string;
  error?: Refusal;
  /** An ID: {ULID}@{node}. */
  message?: string;
  queued?: boolean;
}

export interface SendRequest {
  /** A time in UTC, with milliseconds. */
  ackBy?: string;
  as?: string;
  escalate?: string;
  files?: Array<File>;
  key?: string;
  plain?: boolean;
  priority?: string;
  recipient?: string;
  recipients?: Array<string>;
  subject?: string;
  text: string;
}

export interface SetAttentionRequest {
  allSessions?: boolean;
  as?: string;
  interruptions?: string;
  quiet?: string;
  zone?: string;
}

export interface SetAwayRequest {
  as?: string;
  /** A time in UTC, with milliseconds. */
  from?: string;
  to?: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
}

export interface SetMemberRequest {
  agent: string;
  as?: string;
  remove?: boolean;
}

export interface SetPolicyRequest {
  agentId: string;
  as?: string;
  passkey?: PasskeySignature;
  policy: string;
  review?: ReviewTerms;
}

export interface SetQuotaRequest {
  agentId: string;
  as?: string;
  quotas?: Record<string, number>;
  reset?: boolean;
}

export interface SetStatusRequest {
  as?: string;
  error?: string;
  status: string;
}

export interface SetTeamRequest {
  add?: Array<string>;
  as?: string;
  coder?: TeamCoder;
  remove?: Array<string>;
  team: string;
}

export interface SnoozeRequest {
  as?: string;
  id?: Ref;
  number?: Ref;
  /** A time in UTC, with milliseconds. */
  until?: string;
}

export interface StandInsRequest {
  as?: string;
}

export interface StatusResponse {
  a2aNetwork?: string;
  agents: number;
  external?: boolean;
  journal: JournalState;
  limits: Array<LimitState>;
  limitsSet?: string;
  listen: string;
  logLevel: string;
  name: string;
  /** A node's public key. */
  node: string;
  openForms: number;
  peerAddress?: string;
  peerListen: string;
  peers: Peers;
  pid: number;
  plainHTTP?: boolean;
  problem?: Refusal;
  programs?: ProgramsStatus;
  quotas: NodeQuotas;
  service?: string;
  tlsCert?: string;
  tlsKey?: string;
  version: string;
}

export interface StopResponse {
  pid: number;
}

export interface StoreFileRequest {
  as?: string;
  data?: string;
  offset?: number;
  size?: number;
  upload?: string;
}

export interface StoreNameRequest {
  as?: string;
  name: string;
  /** Any JSON. */
  value: unknown;
}

export interface SubscribeRequest {
  as?: string;
  end?: boolean;
  everyMs?: number;
  stream?: boolean;
  topic: string;
}

export interface TeamCoder {
  folder: string;
  program: string;
  title: string;
}

export interface Text {
  name: string;
  text: string;
}

export interface TryRulesRequest {
  agent?: string;
  as?: string;
  deny?: boolean;
  id?: Ref;
  number?: Ref;
  offers?: Array<string>;
  rules?: Array<string>;
}

export interface Unmoved {
  error?: Refusal;
  id?: Ref;
  number?: Ref;
}

export interface VerifyResponse {
  archived?: number;
  commits: number;
  damaged?: Array<string>;
  elsewhere?: Array<number>;
  events: number;
  files?: number;
  mailboxes: number;
  unmarked?: boolean;
}

export interface WaitForFinishRequest {
  agentId: string;
  as?: string;
  timeoutMs?: number;
}

export interface Withdrawn {
  queued?: boolean;
}

export interface Absent {
  /** An ID: {ULID}@{node}. */
  address?: string;
  addressName?: string;
  archived?: boolean;
}

export interface Accepted {
  /** An ID: {ULID}@{node}. */
  host: string;
  name: string;
  /** A node's public key. */
  node: string;
}

export interface AgentUse {
  /** An ID: {ULID}@{node}. */
  agent: string;
  name?: string;
  quota?: string;
  /** An amount for each quota by name. -1 is no limit. */
  quotas: Record<string, number>;
  share: number;
  /** An amount for each quota by name. -1 is no limit. */
  used: Record<string, number>;
}

export interface Amendment {
  /** A time in UTC, with milliseconds. */
  at: string;
  changes: Array<string>;
  note?: string;
}

export interface AnswerRight {
  /** An ID: {ULID}@{node}. */
  form: string;
  /** An ID: {ULID}@{node}. */
  grant: string;
  outcomes: Array<string>;
  revision: number;
  secret: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
  uses?: number;
}

export interface Archive {
  bytes: number;
  checkpoint: number;
  last: number;
  new: number;
  segments: Array<ArchiveSegment>;
}

export interface ArchiveSegment {
  bytes: number;
  digest: string;
  first: number;
  /** A time in UTC, with milliseconds. */
  from: string;
  here: boolean;
  last: number;
  place?: string;
  /** A time in UTC, with milliseconds. */
  to: string;
}

export interface Archived {
  form: boolean;
  /** A time in UTC, with milliseconds. */
  from: string;
  hint: string;
  place?: string;
  segment: number;
  /** A time in UTC, with milliseconds. */
  to: string;
}

export interface Asked {
  /** An ID: {ULID}@{node}. */
  form?: string;
  number: number;
  outcome?: Outcome;
  /** An ID: {ULID}@{node}. */
  promise?: string;
  promised?: Promised;
  unreachable?: boolean;
}

export interface Attention {
  /** An ID: {ULID}@{node}. */
  agent: string;
  allSessions?: boolean;
  interruptions?: string;
  isQuiet?: boolean;
  quiet?: string;
  /** A time in UTC, with milliseconds. */
  quietUntil?: string;
  zone?: string;
}

export interface Away {
  /** A time in UTC, with milliseconds. */
  from: string;
  to?: Party;
  /** A time in UTC, with milliseconds. */
  until: string;
}

export interface Claim {
  /** An ID: {ULID}@{node}. */
  by: string;
  byName?: string;
  /** A time in UTC, with milliseconds. */
  since?: string;
  /** A time in UTC, with milliseconds. */
  until: string;
  was?: Party;
}

export interface Claimed {
  claim?: Claim;
  /** An ID: {ULID}@{node}. */
  form: string;
  number: number;
  queued?: boolean;
}

export interface Counted {
  acknowledged: number;
  /** An ID: {ULID}@{node}. */
  by: string;
  byName?: string;
  handled: number;
  known: string;
  missed: number;
  offered: number;
  passed: number;
  shown: number;
}

export interface CutMessage {
  /** A time in UTC, with milliseconds. */
  at: string;
  /** An ID: {ULID}@{node}. */
  message: string;
  number: number;
  text: string;
}

export interface Draft {
  /** A time in UTC, with milliseconds. */
  savedAt?: string;
  text?: string;
  texts: Array<Text>;
}

export interface DroppedPeer {
  givenUp: number;
  introduced: number;
  names: number;
  /** A node's public key. */
  node: string;
  revoked: number;
}

export interface Entry {
  /** A time in UTC, with milliseconds. */
  at: string;
  commit: number;
  /** An event's own members. */
  payload: Record<string, unknown>;
  schema: number;
  type: string;
  version: number;
}

export interface Envelope {
  /** A time in UTC, with milliseconds. */
  ackBy?: string;
  acknowledged?: boolean;
  amendment?: Amendment;
  answerNeeded: boolean;
  answering?: boolean;
  archived?: Archived;
  /** An ID: {ULID}@{node}. */
  author?: string;
  authorName?: string;
  authorSaid?: string;
  chain?: Array<Party>;
  changed: number;
  claim?: Claim;
  counts?: Array<Counted>;
  /** A time in UTC, with milliseconds. */
  date: string;
  /** A time in UTC, with milliseconds. */
  deadline?: string;
  delivered: boolean;
  description?: string;
  digest?: string;
  dismissed: boolean;
  /** A time in UTC, with milliseconds. */
  draftAt?: string;
  edges?: Record<string, unknown>;
  escalate?: Recipient;
  fields?: Array<Field>;
  files?: Array<File>;
  folder?: string;
  forwardedTo?: Array<Forwarded>;
  /** An ID: {ULID}@{node}. */
  forwarder?: string;
  forwarderName?: string;
  /** An ID: {ULID}@{node}. */
  from: string;
  fromName?: string;
  fromSaid?: string;
  held?: boolean;
  interrupted?: boolean;
  late?: Array<Recipient>;
  members?: Array<Member>;
  /** An ID: {ULID}@{node}. */
  messageId: string;
  noForward?: boolean;
  number: number;
  outcome?: Outcome;
  overdue?: boolean;
  passkey?: boolean;
  permission?: Permission;
  priority?: string;
  /** An ID: {ULID}@{node}. */
  promiseId?: string;
  promised?: Promised;
  queued?: boolean;
  receipts?: Array<Receipt>;
  received: boolean;
  recipients?: Array<Recipient>;
  refused?: string;
  replyNumber?: number;
  /** An ID: {ULID}@{node}. */
  replyTo?: string;
  /** An ID: {ULID}@{node}. */
  resolverId?: string;
  review?: Review;
  revision?: number;
  route?: Route;
  sent: boolean;
  /** A time in UTC, with milliseconds. */
  snoozedUntil?: string;
  state?: string;
  steps?: Array<ForwardStep>;
  subject?: string;
  text?: string;
  /** An ID: {ULID}@{node}. */
  thread?: string;
  title?: string;
  /** An ID: {ULID}@{node}. */
  to: string;
  toFollow?: Array<Following>;
  toName?: string;
  type: string;
  unreached?: Array<Unreached>;
  unread?: boolean;
  votes?: Votes;
}

export interface FilePart {
  data?: string;
  file: File;
  offset: number;
}

export interface Filter {
  labels?: Record<string, string>;
  statuses?: Array<string>;
}

export interface Finish {
  error?: string;
  final: Snapshot;
  status: string;
}

export interface Following {
  /** A time in UTC, with milliseconds. */
  at: string;
  /** An ID: {ULID}@{node}. */
  id: string;
  name: string;
  number?: number;
  type: string;
  words: string;
}

export interface ForwardStep {
  after?: string;
  /** A time in UTC, with milliseconds. */
  at?: string;
  /** An ID: {ULID}@{node}. */
  by: string;
  byName?: string;
  cause?: string;
  /** An ID: {ULID}@{node}. */
  to?: string;
  toName?: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
}

export interface Forwarded {
  /** An ID: {ULID}@{node}. */
  by?: string;
  byName?: string;
  cause?: string;
  /** An ID: {ULID}@{node}. */
  id: string;
  name?: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
}

export interface Found {
  behind?: number;
  messages: Array<Envelope>;
  next?: number;
}

export interface Granted {
  /** A time in UTC, with milliseconds. */
  at: string;
  /** An ID: {ULID}@{node}. */
  by: string;
  facet?: Facet;
  /** An ID: {ULID}@{node}. */
  grant: string;
  kind: string;
  /** An ID: {ULID}@{node}. */
  message?: string;
  name: string;
  outcomes?: Array<string>;
  /** An ID: {ULID}@{node}. */
  parent?: string;
  /** A time in UTC, with milliseconds. */
  revoked?: string;
  /** An ID: {ULID}@{node}. */
  target: string;
  /** An ID: {ULID}@{node}. */
  to: string;
  toName?: string;
  used?: number;
}

export interface Held {
  gone?: string;
  kind: string;
  left?: number;
  name: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
  words?: string;
}

export interface Holding {
  facet?: Facet;
  kind?: string;
  /** An ID: {ULID}@{node}. */
  resource?: string;
  used: number;
  uses: Array<UseBy>;
  verbs: Array<Verb>;
  words: string;
}

export interface Inbox {
  cursor: number;
  messages: Array<Envelope>;
  next?: number;
}

export interface Invitation {
  /** An ID: {ULID}@{node}. */
  id: string;
  locator?: string;
  name: string;
  /** A time in UTC, with milliseconds. */
  until: string;
}

export interface JournalState {
  archiveBytes?: number;
  archived?: number;
  behind?: number;
  bytes: number;
  commits: number;
  events: number;
  flushing?: number;
}

export interface Lease {
  behind?: Array<number>;
  for?: string;
  /** An ID: {ULID}@{node}. */
  holder?: string;
  holderName?: string;
  lease: number;
  own?: boolean;
  patterns: Array<string>;
  shared?: boolean;
  state: string;
  team?: string;
  title?: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
}

export interface Leases {
  leases: Array<Lease>;
}

export interface MadeResource {
  kind: string;
  name: string;
  /** An ID: {ULID}@{node}. */
  resource: string;
  tools?: Array<string>;
  words: string;
}

export interface Mandate {
  /** An ID: {ULID}@{node}. */
  agent: string;
  /** An ID: {ULID}@{node}. */
  by: string;
  calls: number;
  end?: string;
  /** A time in UTC, with milliseconds. */
  ended?: string;
  /** An ID: {ULID}@{node}. */
  form: string;
  /** A time in UTC, with milliseconds. */
  given: string;
  /** An ID: {ULID}@{node}. */
  mandate: string;
  /** An ID: {ULID}@{node}. */
  session?: string;
  sums?: Array<SpentSum>;
  /** A time in UTC, with milliseconds. */
  until?: string;
  used: number;
  words: Array<string>;
}

export interface MandateCall {
  amounts?: Array<string>;
  /** A time in UTC, with milliseconds. */
  at: string;
  folder?: string;
  /** Any JSON. */
  input: unknown;
  tool: string;
}

export interface Member {
  /** A time in UTC, with milliseconds. */
  at: string;
  /** An ID: {ULID}@{node}. */
  by: string;
  byName?: string;
  how?: string;
  /** An ID: {ULID}@{node}. */
  id: string;
  known: string;
  name?: string;
  said?: string;
  state: string;
}

export interface MessageCounts {
  all: number;
  done: number;
  pending: number;
  snoozed: number;
  unread: number;
}

export interface MissingEvents {
  first: number;
  /** A time in UTC, with milliseconds. */
  from: string;
  hint: string;
  last: number;
  place?: string;
  segment: number;
  /** A time in UTC, with milliseconds. */
  to: string;
}

export interface NodeQuotas {
  /** An amount for each quota by name. -1 is no limit. */
  agents: Record<string, number>;
  heaviestAgents: Array<AgentUse>;
  heaviestPeers: Array<PeerUse>;
  /** An amount for each quota by name. -1 is no limit. */
  peers: Record<string, number>;
}

export interface Outcome {
  allowed?: boolean;
  /** A time in UTC, with milliseconds. */
  at?: string;
  /** An ID: {ULID}@{node}. */
  by?: string;
  byName?: string;
  digest?: string;
  editedDigest?: string;
  editedInput?: string;
  /** An ID: {ULID}@{node}. */
  form?: string;
  message?: number;
  note?: string;
  order?: Array<string>;
  /** An ID: {ULID}@{node}. */
  promise?: string;
  signed?: boolean;
  status: string;
  /** Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}. */
  values?: unknown;
  votes?: Votes;
}

export interface OutputPiece {
  /** A time in UTC, with milliseconds. */
  at: string;
  cursor: number;
  /** An ID: {ULID}@{node}. */
  message?: string;
  /** An ID: {ULID}@{node}. */
  run: string;
  stream: string;
  text: string;
}

export interface Party {
  /** An ID: {ULID}@{node}. */
  id: string;
  name?: string;
}

export interface Passkey {
  /** A time in UTC, with milliseconds. */
  added: string;
  fingerprint: string;
  key: Array<number>;
  name: string;
  origin: string;
  /** An ID: {ULID}@{node}. */
  passkey: string;
  /** A time in UTC, with milliseconds. */
  used?: string;
}

export interface PasskeyNeed {
  /** An ID: {ULID}@{node}. */
  agent?: string;
  name?: string;
  need: string;
}

export interface Peer {
  hints?: Array<string>;
  /** An ID: {ULID}@{node}. */
  host?: string;
  /** A time in UTC, with milliseconds. */
  lastHeard?: string;
  name?: string;
  /** A node's public key. */
  node: string;
  reachable: boolean;
  traffic: Traffic;
  use: PeerUse;
  waiting: number;
}

export interface PeerUse {
  name?: string;
  /** A node's public key. */
  node: string;
  quota?: string;
  /** An amount for each quota by name. -1 is no limit. */
  quotas: Record<string, number>;
  share: number;
  /** An amount for each quota by name. -1 is no limit. */
  used: Record<string, number>;
}

export interface PendingPermission {
  /** A time in UTC, with milliseconds. */
  askedAt: string;
  folder?: string;
  /** An ID: {ULID}@{node}. */
  form: string;
  input: string;
  number: number;
  offers?: Array<Offer>;
  part?: string;
  passkey?: boolean;
  reason?: string;
  session?: string;
  tool: string;
  use?: AskedUse;
}

export interface Permitted {
  allowed: boolean;
  decided: boolean;
  /** An ID: {ULID}@{node}. */
  form?: string;
  leased?: Lease;
  /** An ID: {ULID}@{node}. */
  mandate?: string;
  number: number;
  outcome?: Outcome;
  /** An ID: {ULID}@{node}. */
  promise?: string;
  promised?: Promised;
  /** An ID: {ULID}@{node}. */
  rule?: string;
  unattended?: boolean;
  unreachable?: boolean;
}

export interface Promised {
  /** An ID: {ULID}@{node}. */
  form: string;
  name: string;
  number: number;
}

export interface Proof {
  /** An ID: {ULID}@{node}. */
  form: string;
  proof: string;
  signed?: boolean;
}

export interface Receipt {
  absent?: Absent;
  /** A time in UTC, with milliseconds. */
  at?: string;
  /** An ID: {ULID}@{node}. */
  by?: string;
  byName?: string;
  how?: string;
  known: string;
  /** An ID: {ULID}@{node}. */
  reader: string;
  readerName?: string;
  state: string;
}

export interface Recipient {
  /** An ID: {ULID}@{node}. */
  id: string;
  name?: string;
  said?: string;
}

export interface Review {
  /** A time in UTC, with milliseconds. */
  at?: string;
  /** An ID: {ULID}@{node}. */
  by: string;
  byName?: string;
  how?: string;
  mayAllow?: boolean;
  note?: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
}

export interface Route {
  escalations?: Array<RouteStep>;
  reminded?: number;
  /** A time in UTC, with milliseconds. */
  remindedAt?: string;
  /** A time in UTC, with milliseconds. */
  remindsAt?: string;
}

export interface RouteStep {
  /** A time in UTC, with milliseconds. */
  at: string;
  cause?: string;
  /** An ID: {ULID}@{node}. */
  to: string;
  toName?: string;
}

export interface Rule {
  /** An ID: {ULID}@{node}. */
  agent: string;
  allow: boolean;
  covers: Coverage;
  /** An ID: {ULID}@{node}. */
  form?: string;
  /** A time in UTC, with milliseconds. */
  lastUsed?: string;
  /** A time in UTC, with milliseconds. */
  made: string;
  paused?: boolean;
  /** An ID: {ULID}@{node}. */
  rule: string;
  tool: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
  uses: number;
  words: string;
}

export interface Schedule {
  /** A time in UTC, with milliseconds. */
  ackBy?: string;
  also?: Array<Party>;
  every?: string;
  files?: Array<File>;
  /** An ID: {ULID}@{node}. */
  last?: string;
  /** A time in UTC, with milliseconds. */
  lastAt?: string;
  /** A time in UTC, with milliseconds. */
  next?: string;
  number: number;
  priority?: string;
  refused?: string;
  subject?: string;
  text: string;
  /** An ID: {ULID}@{node}. */
  to: string;
  toName?: string;
  zone?: string;
}

export interface Schedules {
  schedules: Array<Schedule>;
}

export interface Sent {
  absent?: Array<Receipt>;
  given?: Array<string>;
  /** An ID: {ULID}@{node}. */
  message: string;
  notTo?: Array<Recipient>;
  number: number;
  plain?: Array<string>;
  promised?: Promised;
  queued?: boolean;
  recipients?: Array<Recipient>;
  unreachable?: boolean;
}

export interface Snapshot {
  /** A time in UTC, with milliseconds. */
  awayUntil?: string;
  /** A time in UTC, with milliseconds. */
  createdAt: string;
  ended?: boolean;
  error?: string;
  held?: boolean;
  /** An ID: {ULID}@{node}. */
  id: string;
  interrupted?: Array<CutMessage>;
  kind: string;
  labels: Record<string, string>;
  morePermissions?: number;
  name?: string;
  /** A node's public key. */
  node: string;
  /** An ID: {ULID}@{node}. */
  of?: string;
  openForms: number;
  pendingPermissions: Array<PendingPermission>;
  policy?: string;
  queued: number;
  runtime?: string;
  session?: string;
  state: string;
  status: string;
  stopped?: boolean;
  title: string;
  topic?: boolean;
  /** A time in UTC, with milliseconds. */
  updatedAt: string;
  user?: string;
  wrap?: Array<string>;
}

export interface SpentSum {
  left: string;
  member: string;
  most: string;
  spent: string;
  tool: string;
}

export interface StandIns {
  away?: Away;
  members: Array<Party>;
}

export interface StoredFile {
  digest?: string;
  offset: number;
  size: number;
  upload: string;
}

export interface Take {
  name: string;
  type: string;
}

export interface Team {
  /** An ID: {ULID}@{node}. */
  agent: string;
  members: Array<TeamMember>;
  team: string;
}

export interface TeamMember {
  /** An ID: {ULID}@{node}. */
  agent: string;
  /** A time in UTC, with milliseconds. */
  joined?: string;
  leases?: Array<number>;
  name?: string;
  /** An ID: {ULID}@{node}. */
  of?: string;
  own?: boolean;
  status: string;
  title?: string;
}

export interface Teams {
  teams: Array<Team>;
}

export interface Token {
  /** An ID: {ULID}@{node}. */
  by?: string;
  /** An ID: {ULID}@{node}. */
  id: string;
  /** A time in UTC, with milliseconds. */
  made: string;
  note?: string;
  scopes: Array<string>;
  session?: boolean;
  token?: string;
  /** A time in UTC, with milliseconds. */
  until?: string;
  /** A time in UTC, with milliseconds. */
  used?: string;
}

export interface Topic {
  /** An ID: {ULID}@{node}. */
  agent: string;
  everyMs?: number;
  /** A time in UTC, with milliseconds. */
  last?: string;
  /** A time in UTC, with milliseconds. */
  next?: string;
  posts: number;
  stream?: boolean;
  subscribed?: boolean;
  subscribers: number;
  team?: string;
  topic: string;
}

export interface TopicPost {
  /** A time in UTC, with milliseconds. */
  date: string;
  files?: Array<File>;
  /** An ID: {ULID}@{node}. */
  from: string;
  fromName?: string;
  fromSaid?: string;
  /** An ID: {ULID}@{node}. */
  message: string;
  number: number;
  replyTo?: number;
  subject?: string;
  text: string;
}

export interface TopicPosts {
  more?: boolean;
  posts: Array<TopicPost>;
}

export interface Topics {
  topics: Array<Topic>;
}

export interface Traffic {
  bytesIn: number;
  bytesOut: number;
  lettersIn: number;
  lettersOut: number;
  mailIn: number;
  mailOut: number;
  refused: number;
}

export interface Trial {
  behind?: number;
  calls: number;
  long?: number;
  more?: boolean;
  rules: Array<TriedRule>;
}

export interface TriedCall {
  input: string;
  number: number;
}

export interface TriedRule {
  against: number;
  allow: boolean;
  allowed: number;
  covered: number;
  denied: number;
  examples?: Array<TriedCall>;
  offer?: string;
  proposal?: string;
  /** An ID: {ULID}@{node}. */
  rule?: string;
  tool: string;
  words: string;
}

export interface Unreached {
  /** A time in UTC, with milliseconds. */
  at: string;
  /** An ID: {ULID}@{node}. */
  by: string;
  byName?: string;
  /** An ID: {ULID}@{node}. */
  id: string;
  known: string;
  name?: string;
  said?: string;
  why: string;
}

export interface Use {
  error?: Refusal;
  /** An ID: {ULID}@{node}. */
  form?: string;
  held?: Array<Held>;
  holds?: Holding;
  moreHeld?: boolean;
  /** Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}. */
  result: unknown;
  state?: string;
  /** An ID: {ULID}@{node}. */
  use?: string;
  words?: string;
}

export interface UseBy {
  /** A time in UTC, with milliseconds. */
  begun: string;
  /** An ID: {ULID}@{node}. */
  by: string;
  byName?: string;
  /** A time in UTC, with milliseconds. */
  ended?: string;
  error?: Refusal;
  state: string;
  words: string;
}

export interface Verb {
  name: string;
  needs: number;
  takes: Array<Take>;
  words: string;
}

export interface Vote {
  /** A time in UTC, with milliseconds. */
  at: string;
  /** An ID: {ULID}@{node}. */
  by: string;
  byName?: string;
  note?: string;
  outcome: string;
  void?: boolean;
}

export interface Votes {
  cast?: Array<Vote>;
  have: number;
  need: number;
  noSelf?: boolean;
  own?: string;
  replaced?: Party;
  veto: boolean;
  votedAs?: Party;
  waiting?: Array<Party>;
}

export interface Facet {
  ask?: boolean;
  below?: string;
  methods?: string;
  mode?: string;
  only?: string;
  rate?: Rate;
  /** A time in UTC, with milliseconds. */
  until?: string;
  uses?: number;
}

export interface Rate {
  seconds: number;
  uses: number;
}

export interface AskedUse {
  /** An ID: {ULID}@{node}. */
  by: string;
  called?: string;
  holder?: string;
  kind: string;
  name: string;
  through?: string;
}

export interface CommandPattern {
  operands?: string;
  options?: Array<string>;
  words: Array<string>;
}

export interface Coverage {
  commands?: Array<CommandPattern>;
  file?: string;
  folder?: string;
  glob?: string;
  input?: string;
  kind: string;
}

export interface Field {
  /** Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}. */
  default?: unknown;
  /** Any passable value: plain JSON, {"$cap":ID,"kind":KIND} for a reference, {"$bytes":BASE64}, or {"$sealed":true}. */
  example?: unknown;
  help?: string;
  label?: string;
  name: string;
  options?: Array<Option>;
  /** Any JSON. */
  pattern?: unknown;
  placeholder?: string;
  required?: boolean;
  type?: string;
}

export interface File {
  digest: string;
  name: string;
  size: number;
  type?: string;
}

export interface Offer {
  id: string;
  rule: Coverage;
  words: string;
}

export interface Option {
  description?: string;
  label?: string;
  value: string;
}

export interface Refusal {
  code: string;
  fields?: Record<string, string>;
  hint?: string;
  message: string;
}

export interface MandateRule {
  command?: string;
  files?: string;
  folder?: string;
  /** Any JSON. */
  input?: unknown;
  like?: boolean;
  offer?: string;
  read?: boolean;
  tool?: string;
}

export interface MandateSum {
  member: string;
  most: string;
  tool?: string;
}

export interface MandateTerms {
  calls?: number;
  rules: Array<MandateRule>;
  sums?: Array<MandateSum>;
  until?: string;
}

export interface PasskeySignature {
  authenticator: string;
  clientData: string;
  credential: string;
  signature: string;
  statement: string;
}

export interface Permission {
  folder?: string;
  input: string;
  offers?: Array<Offer>;
  part?: string;
  passkey?: boolean;
  reason?: string;
  session?: string;
  tool: string;
  use?: AskedUse;
}

export interface ReviewTerms {
  cautious?: boolean;
  reviewer: string;
  rules?: Array<MandateRule>;
  sample?: number;
  wait?: string;
}

/** What is sent to each operation, and what it answers. */
export interface Operations {
  accept: { request: AcceptRequest; response: Accepted };
  acknowledge: { request: MessageRequest; response: Done };
  add_passkey: { request: AddPasskeyRequest; response: Passkey };
  adopt: { request: AdoptRequest; response: Done };
  amend_form: { request: AmendFormRequest; response: Envelope };
  answer_with: { request: AnswerWithRequest; response: Outcome };
  approve: { request: ApproveRequest; response: Permitted };
  archive_agent: { request: AgentRequest; response: AgentResponse };
  archive_journal: { request: ArchiveJournalRequest; response: Archive };
  ask_passkey: { request: AskPasskeyRequest; response: AskPasskeyResponse };
  await: { request: AwaitRequest; response: Outcome };
  await_lease: { request: AwaitLeaseRequest; response: Lease };
  begin_passkey: { request: BeginPasskeyRequest; response: BeginPasskeyResponse };
  cancel_form: { request: EndRequest; response: Outcome };
  claim_form: { request: ClaimFormRequest; response: Claimed };
  complete: { request: CompleteRequest; response: CompleteResponse };
  copy_name: { request: CopyNameRequest; response: Done };
  count_messages: { request: CountMessagesRequest; response: MessageCounts };
  create_token: { request: CreateTokenRequest; response: Token };
  decide_many: { request: DecideManyRequest; response: DecideManyResponse };
  decline_form: { request: DeclineRequest; response: Outcome };
  describe_agent: { request: DescribeAgentRequest; response: Done };
  dismiss: { request: MessageRequest; response: Done };
  drop_peer: { request: DropPeerRequest; response: DroppedPeer };
  end_mandate: { request: MandateRequest; response: Done };
  end_resource: { request: NameRequest; response: Done };
  end_schedule: { request: EndScheduleRequest; response: Done };
  end_team: { request: EndTeamRequest; response: Done };
  end_topic: { request: EndTopicRequest; response: Done };
  fetch_agent: { request: AgentRequest; response: FetchAgentResponse };
  fetch_agents: { request: FetchAgentsRequest; response: FetchAgentsResponse };
  fetch_draft: { request: FetchDraftRequest; response: Draft };
  fetch_file: { request: FetchFileRequest; response: FilePart };
  fetch_segments: { request: MoveSegmentsRequest; response: Archive };
  follow_messages: { request: FollowMessagesRequest; response: Inbox };
  form: { request: FormRequest; response: Asked };
  forward_form: { request: ForwardFormRequest; response: Done };
  get_attention: { request: GetAttentionRequest; response: Attention };
  get_mandate: { request: MandateRequest; response: GetMandateResponse };
  get_message: { request: MessageRequest; response: Envelope };
  get_quota: { request: GetQuotaRequest; response: AgentUse };
  grant_answer: { request: GrantAnswerRequest; response: AnswerRight };
  hold_agent: { request: HoldAgentRequest; response: AgentResponse };
  invite: { request: InviteRequest; response: Invitation };
  invoke: { request: InvokeRequest; response: Use };
  lease: { request: LeaseRequest; response: Lease };
  limit_peer: { request: LimitPeerRequest; response: Peer };
  limit_rule: { request: LimitRuleRequest; response: Done };
  list_archive: { request: NodeRequest; response: Archive };
  list_grants: { request: ListGrantsRequest; response: ListGrantsResponse };
  list_invitations: { request: ListInvitationsRequest; response: ListInvitationsResponse };
  list_leases: { request: ListLeasesRequest; response: Leases };
  list_mandates: { request: ListMandatesRequest; response: ListMandatesResponse };
  list_messages: { request: ListMessagesRequest; response: Inbox };
  list_names: { request: ListNamesRequest; response: ListNamesResponse };
  list_nodes: { request: ListNodesRequest; response: ListNodesResponse };
  list_passkeys: { request: ListPasskeysRequest; response: ListPasskeysResponse };
  list_posts: { request: ListPostsRequest; response: TopicPosts };
  list_rules: { request: ListRulesRequest; response: ListRulesResponse };
  list_schedules: { request: ListSchedulesRequest; response: Schedules };
  list_stand_ins: { request: StandInsRequest; response: StandIns };
  list_teams: { request: ListTeamsRequest; response: Teams };
  list_tokens: { request: ListTokensRequest; response: ListTokensResponse };
  list_topics: { request: ListTopicsRequest; response: Topics };
  locate: { request: NameRequest; response: LocateResponse };
  lookup: { request: LookupRequest; response: LookupResponse };
  make_agent: { request: MakeAgentRequest; response: MakeAgentResponse };
  make_resource: { request: MakeResourceRequest; response: MadeResource };
  make_rule: { request: MakeRuleRequest; response: TriedRule };
  make_topic: { request: MakeTopicRequest; response: Topic };
  mark_read: { request: MarkReadRequest; response: MarkReadResponse };
  move_messages: { request: MoveMessagesRequest; response: MoveMessagesResponse };
  move_segments: { request: MoveSegmentsRequest; response: Archive };
  open_link: { request: OpenLinkRequest; response: OpenLinkResponse };
  pause_rule: { request: PauseRuleRequest; response: Done };
  post: { request: PostRequest; response: Sent };
  proof: { request: ProofRequest; response: Proof };
  propose_rules: { request: ProposeRulesRequest; response: Trial };
  read_log: { request: ReadLogRequest; response: ReadLogResponse };
  read_mail: { request: ReadMailRequest; response: ReadMailResponse };
  read_output: { request: ReadOutputRequest; response: ReadOutputResponse };
  reject: { request: DeclineRequest; response: Outcome };
  release_lease: { request: ReleaseLeaseRequest; response: Done };
  remove_name: { request: NameRequest; response: Done };
  remove_passkey: { request: RemovePasskeyRequest; response: Done };
  remove_rule: { request: RemoveRuleRequest; response: Done };
  rename_name: { request: RenameNameRequest; response: Done };
  renew_lease: { request: RenewLeaseRequest; response: Lease };
  reply: { request: ReplyRequest; response: Sent };
  request: { request: CapabilityRequest; response: Asked };
  require_passkey: { request: RequirePasskeyRequest; response: Done };
  resolve: { request: ResolveRequest; response: Outcome };
  respond_form: { request: RespondFormRequest; response: Outcome };
  restore_message: { request: MessageRequest; response: Done };
  revoke: { request: RevokeRequest; response: Done };
  revoke_token: { request: RevokeTokenRequest; response: Done };
  run_agent: { request: RunAgentRequest; response: MakeAgentResponse };
  save_draft: { request: SaveDraftRequest; response: Done };
  schedule: { request: ScheduleRequest; response: Schedule };
  search: { request: SearchRequest; response: Found };
  send: { request: SendRequest; response: Sent };
  send_agent_message: { request: SendAgentMessageRequest; response: SendAgentMessageResponse };
  set_attention: { request: SetAttentionRequest; response: Attention };
  set_away: { request: SetAwayRequest; response: StandIns };
  set_member: { request: SetMemberRequest; response: StandIns };
  set_policy: { request: SetPolicyRequest; response: AgentResponse };
  set_quota: { request: SetQuotaRequest; response: AgentUse };
  set_status: { request: SetStatusRequest; response: Done };
  set_team: { request: SetTeamRequest; response: Teams };
  snooze: { request: SnoozeRequest; response: Done };
  start_programs: { request: NodeRequest; response: Done };
  status: { request: NodeRequest; response: StatusResponse };
  stop: { request: NodeRequest; response: StopResponse };
  stop_agent: { request: AgentRequest; response: AgentResponse };
  store_file: { request: StoreFileRequest; response: StoredFile };
  store_name: { request: StoreNameRequest; response: Done };
  subscribe: { request: SubscribeRequest; response: Topic };
  try_rules: { request: TryRulesRequest; response: Trial };
  uninvite: { request: NameRequest; response: Done };
  verify: { request: NodeRequest; response: VerifyResponse };
  wait_for_finish: { request: WaitForFinishRequest; response: Finish };
  withdraw_vote: { request: MessageRequest; response: Withdrawn };
}

/** The operations that change nothing, and so can be called again. */
export const looks: Set<string>;
