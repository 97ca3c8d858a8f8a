package client

import (
	"context"
	"encoding/json"
	"time"

	"parley"
)

// The statuses of an agent.
const (
	Initializing = "initializing"
	Idle         = "idle"
	Running      = "running"
	Failed       = "error"
	Closed       = "closed"
)

// Agent is one as it is now.
type Agent struct {
	ID                 ID                `json:"id"`
	Title              string            `json:"title"`
	Name               string            `json:"name,omitempty"` // the client's agent's name for it
	Status             string            `json:"status"`
	Labels             map[string]string `json:"labels"`
	PendingPermissions []json.RawMessage `json:"pendingPermissions"`
	CreatedAt          time.Time         `json:"createdAt"`
	UpdatedAt          time.Time         `json:"updatedAt"`
	Node               string            `json:"node"`
}

// AgentFilter says which agents are meant. The zero AgentFilter is all.
type AgentFilter struct {
	Labels   map[string]string `json:"labels,omitempty"`
	Statuses []string          `json:"statuses,omitempty"`
}

type fetchingAgents struct {
	Filter AgentFilter `json:"filter,omitzero"`
}

type fetchedAgents struct {
	Agents []Agent `json:"agents"`
}

// Agents lists agents.
func (c *Client) Agents(ctx context.Context, f AgentFilter) ([]Agent, error) {
	got, err := get[fetchedAgents](ctx, c, "fetch_agents", fetchingAgents{f})
	return got.Agents, err
}

// IsZero reports whether f is all agents.
func (f AgentFilter) IsZero() bool { return len(f.Labels) == 0 && len(f.Statuses) == 0 }

type ofAgent struct {
	AgentID string `json:"agentId"`
}

type fetchedAgent struct {
	Agent *Agent        `json:"agent,omitempty"`
	Error *parley.Error `json:"error,omitempty"`
}

// Agent gives an agent by its ID, a unique beginning of that, a name or an exact title. It refuses with AGENT_NOT_FOUND, and with
// AMBIGUOUS.
func (c *Client) Agent(ctx context.Context, agent string) (Agent, error) {
	got, err := get[fetchedAgent](ctx, c, "fetch_agent", ofAgent{agent})
	switch {
	case err != nil:
		return Agent{}, err
	case got.Error != nil:
		return Agent{}, got.Error
	case got.Agent == nil:
		return Agent{}, parley.Refuse(parley.AgentNotFound, "there is no agent %.80q", agent)
	}
	return *got.Agent, nil
}

// Prompt is a message to an agent at work. MessageID makes a repeat harmless; "" is one of its own.
type Prompt struct {
	Agent     string `json:"agentId"`
	Text      string `json:"text"`
	MessageID string `json:"messageId,omitempty"`
}

type prompted struct {
	AgentID  ID            `json:"agentId"`
	Accepted bool          `json:"accepted"`
	Error    *parley.Error `json:"error,omitempty"`
}

// Prompt sends a message to an agent, once, and returns when it is accepted: it is on disk, and the agent is running, or some
// client serves it.
func (c *Client) Prompt(ctx context.Context, p Prompt) (ID, error) {
	if p.MessageID == "" {
		p.MessageID = NewKey()
	}
	got, err := get[prompted](ctx, c, "send_agent_message", p)
	switch {
	case err != nil:
		return "", err
	case got.Error != nil:
		return got.AgentID, got.Error
	case !got.Accepted:
		return got.AgentID, parley.Refuse(parley.NotPermitted, "agent %s did not accept the message", got.AgentID)
	}
	return got.AgentID, nil
}

type waitingForAgent struct {
	AgentID   string `json:"agentId"`
	TimeoutMs int64  `json:"timeoutMs,omitempty"`
}

type finished struct {
	Status string `json:"status"`
	Final  Agent  `json:"final"`
}

// WaitForAgent waits until an agent is idle, in error, or waits for permission ("permission"), and says which, with the agent as it is
// then. It goes on through restarts of the node, until ctx ends.
func (c *Client) WaitForAgent(ctx context.Context, agent string) (status string, final Agent, err error) {
	for {
		got, err := get[finished](ctx, c, "wait_for_finish", waitingForAgent{agent, turn(ctx, turnTime)})
		if err != nil || got.Status != "timeout" {
			return got.Status, got.Final, err
		}
	}
}

// Stop ends the run of an agent, and what it was asking.
func (c *Client) Stop(ctx context.Context, agent string) error {
	return c.Call(ctx, "stop_agent", ofAgent{agent}, nil)
}

// Archive puts an agent away: it takes no more messages.
func (c *Client) Archive(ctx context.Context, agent string) error {
	return c.Call(ctx, "archive_agent", ofAgent{agent}, nil)
}
