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

// FetchAgentsRequest asks for the agents of the node that the caller sees: those that it holds, and the node's host all.
type FetchAgentsRequest struct {
	Acting
	Paging
	Filter view.AgentFilter `json:"filter,omitzero"`
}

// FetchAgentsResponse has them, the oldest first.
type FetchAgentsResponse struct {
	Agents []view.AgentStatus `json:"agents"`
	Paged
}

// AgentRequest is about one agent.
type AgentRequest struct {
	Acting
	AgentID string `json:"agentId"`
}

// FetchAgentResponse has the agent, or why there is none.
type FetchAgentResponse struct {
	Agent *view.AgentStatus `json:"agent,omitempty"`
	Error *parley.Error     `json:"error,omitempty"`
}

// SendAgentMessageRequest gives an agent something to work on, in plain words. The same MessageID is the same message.
type SendAgentMessageRequest struct {
	Acting
	AgentID   string `json:"agentId"`
	Text      string `json:"text"`
	MessageID string `json:"messageId,omitempty"`
}

// SendAgentMessageResponse says whether it was accepted: it is on disk, and an agent with a program runs. If that ran
// before, the message is Queued.
type SendAgentMessageResponse struct {
	AgentID  capabilities.ID `json:"agentId,omitzero"`
	Accepted bool            `json:"accepted"`
	Queued   bool            `json:"queued,omitempty"`
	Message  capabilities.ID `json:"message,omitzero"`
	Error    *parley.Error   `json:"error,omitempty"`
}

// WaitForFinishRequest waits until an agent is idle, in error, or waits for permission; at once if it is so.
type WaitForFinishRequest struct {
	Acting
	AgentID   string `json:"agentId"`
	TimeoutMs int64  `json:"timeoutMs,omitempty"` // 0 is none
}

// AgentResponse says which agent it was.
type AgentResponse struct {
	AgentID capabilities.ID `json:"agentId"`
}

// SetStatusRequest says what the caller, an agent that has no program, does now. Error goes with the status error.
type SetStatusRequest struct {
	Acting
	Status string `json:"status"` // initializing, idle, running, error
	Error  string `json:"error,omitempty"`
}

// DescribeAgentRequest replaces what the caller is known by. What is not mentioned stays as it is.
type DescribeAgentRequest struct {
	Acting
	Title  *string           `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// SetPolicyRequest says what becomes of an agent's calls that need permission.
type SetPolicyRequest struct {
	Acting
	AgentID string `json:"agentId"`
	Policy  string `json:"policy"` // always, on-miss, never, deny
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

// ReadOutputRequest reads what an agent's program has put out: what came after a cursor, for some of which it waits where
// a WaitMs is given, or with a Tail the end of it.
type ReadOutputRequest struct {
	Acting
	AgentID string `json:"agentId"`
	After   uint64 `json:"after,omitempty"`
	Limit   int    `json:"limit,omitempty"`  // default and at most 500
	WaitMs  int64  `json:"waitMs,omitempty"` // at most 50,000
	Tail    *int   `json:"tail,omitempty"`   // so many of the newest pieces, at most 500 or as many as fit; 0 gives the cursor alone
}

// ReadOutputResponse has it, oldest first, and the cursor to go on from.
type ReadOutputResponse struct {
	Pieces []view.OutputPiece `json:"pieces"`
	Cursor uint64             `json:"cursor"`
}

// MaxPieces is how many pieces of output one call gives at most.
const MaxPieces = 500
