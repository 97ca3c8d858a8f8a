package api

import (
	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// MakeAgentRequest makes an agent, which the caller then holds under Name.
type MakeAgentRequest struct {
	Acting
	Kind   events.AgentKind  `json:"kind,omitempty"` // host or guest; default guest
	Name   string            `json:"name"`
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// MakeAgentResponse has the new agent's ID.
type MakeAgentResponse struct {
	Agent capabilities.ID  `json:"agent"`
	Name  string           `json:"name"`
	Kind  events.AgentKind `json:"kind"`
}

// FetchAgentsRequest lists the agents of the node that the caller holds. The node's host lists all.
type FetchAgentsRequest struct {
	Acting
	Paging
	Filter view.AgentFilter `json:"filter,omitzero"`
	Page   *Page            `json:"page,omitempty"` // another spelling of Paging
}

// Page is one page of a listing. Without a limit it has 1,000 items, which is the most.
type Page struct {
	Limit  *int   `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"` // the nextCursor of the page before
}

// PageInfo is the position of a page in its listing.
type PageInfo struct {
	HasMore    bool   `json:"hasMore"`
	NextCursor string `json:"nextCursor,omitempty"` // of the next page
	PrevCursor string `json:"prevCursor,omitempty"` // the cursor of this page, as it was asked for
}

// FetchAgentsResponse has the agents, oldest first.
type FetchAgentsResponse struct {
	Agents []view.AgentStatus `json:"agents"`
	Paged
	PageInfo *PageInfo `json:"pageInfo,omitempty"` // for a request with a page
}

// AgentRequest names one agent.
type AgentRequest struct {
	Acting
	AgentID string `json:"agentId"`
}

// FetchAgentResponse has the agent, or the error of the lookup.
type FetchAgentResponse struct {
	Agent *view.AgentStatus `json:"agent,omitempty"`
	Error *parley.Error     `json:"error,omitempty"`
}

// SendAgentMessageRequest sends an agent a prompt. Requests with the same MessageID send one message.
type SendAgentMessageRequest struct {
	Acting
	AgentID   string `json:"agentId"`
	Text      string `json:"text"`
	MessageID string `json:"messageId,omitempty"`
}

// SendAgentMessageResponse reports whether the message was accepted: it is on disk, and the program of the agent, if there
// is one, runs. If the program was running before, the message is Queued.
type SendAgentMessageResponse struct {
	AgentID  capabilities.ID `json:"agentId,omitzero"`
	Accepted bool            `json:"accepted"`
	Queued   bool            `json:"queued,omitempty"`
	Message  capabilities.ID `json:"message,omitzero"`
	Error    *parley.Error   `json:"error,omitempty"`
}

// WaitForFinishRequest waits until an agent is idle, in error, or waiting for permission.
type WaitForFinishRequest struct {
	Acting
	AgentID   string `json:"agentId"`
	TimeoutMs int64  `json:"timeoutMs,omitempty"` // 0 is none
}

// AgentResponse has the ID of the agent.
type AgentResponse struct {
	AgentID capabilities.ID `json:"agentId"`
}

// SetStatusRequest sets the status of the caller, an agent without a program. Error belongs to the status "error".
type SetStatusRequest struct {
	Acting
	Status string `json:"status"` // initializing, idle, running, error
	Error  string `json:"error,omitempty"`
}

// DescribeAgentRequest replaces the caller's title or labels. A missing member leaves them as they are.
type DescribeAgentRequest struct {
	Acting
	Title  *string           `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitzero"`
}

// SetPolicyRequest sets the policy for an agent's calls that need permission.
type SetPolicyRequest struct {
	Acting
	AgentID string `json:"agentId"`
	Policy  string `json:"policy"` // always, on-miss, never, deny, review

	Review *parley.ReviewTerms `json:"review,omitempty"` // of review

	Passkey *parley.PasskeySignature `json:"passkey,omitempty"` // of a policy by which calls run that nobody has signed: as in MakeRuleRequest
}

// HoldAgentRequest stops an agent, or starts it again. Stopped, its program ends, what it asked is cancelled, and what waits for it
// stays queued.
type HoldAgentRequest struct {
	Acting
	AgentID string `json:"agentId"`
	Hold    bool   `json:"hold"`
}

// RunAgentRequest makes an agent that runs a program, which the caller, the node's host, then holds under Name.
type RunAgentRequest struct {
	Acting
	events.ProgramSet
	Name   string            `json:"name,omitempty"` // default: one after the command
	Title  string            `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Policy string            `json:"policy,omitempty"` // default: on-miss
	Wait   bool              `json:"wait,omitempty"`   // it does not begin before its first message
}

// ReadOutputRequest reads the output of an agent's program after a cursor, or with Tail the end of it. With WaitMs it waits
// for output after the cursor.
type ReadOutputRequest struct {
	Acting
	AgentID string `json:"agentId"`
	After   uint64 `json:"after,omitempty"`
	Limit   int    `json:"limit,omitempty"`  // default and at most 500
	WaitMs  int64  `json:"waitMs,omitempty"` // at most 50,000
	Tail    *int   `json:"tail,omitempty"`   // number of the newest pieces, at most 500 or as many as fit; 0 for the cursor alone
}

// ReadOutputResponse has the output, oldest first, and the cursor after it.
type ReadOutputResponse struct {
	Pieces []view.OutputPiece `json:"pieces"`
	Cursor uint64             `json:"cursor"`
}

// MaxPieces bounds the pieces of output of one response.
const MaxPieces = 500
