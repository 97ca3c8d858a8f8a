package client

import (
	"context"
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
	ID                 ID                  `json:"id"`
	Title              string              `json:"title"`
	Name               string              `json:"name,omitempty"` // the client's agent's name for it
	Kind               string              `json:"kind"`           // host or guest
	Status             string              `json:"status"`
	Error              string              `json:"error,omitempty"`
	Labels             map[string]string   `json:"labels"`
	PendingPermissions []PendingPermission `json:"pendingPermissions"`
	Queued             int64               `json:"queued"`            // messages that wait for its program
	OpenForms          int64               `json:"openForms"`         // that it asked
	Runtime            string              `json:"runtime,omitempty"` // exec or acp, if it has a program
	Policy             string              `json:"policy,omitempty"`
	CreatedAt          time.Time           `json:"createdAt"`
	UpdatedAt          time.Time           `json:"updatedAt"`
	Node               string              `json:"node"`
}

// PendingPermission is a call that an agent asks whether it may make. Tool and Input are empty to who does not rule the agent.
type PendingPermission struct {
	Form    ID        `json:"form"`
	Number  uint64    `json:"number"` // in the agent's mailbox
	Tool    string    `json:"tool"`
	Input   string    `json:"input"` // a JSON document, perhaps cut short
	AskedAt time.Time `json:"askedAt"`
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
	AgentID  ID            `json:"agentId,omitempty"`
	Accepted bool          `json:"accepted"`
	Queued   bool          `json:"queued,omitempty"`
	Message  ID            `json:"message,omitempty"`
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

type agentID struct {
	AgentID ID `json:"agentId"`
}

type reporting struct {
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
}

// Report says what the client's agent, which has no program but this client, does: Initializing, Idle, Running, or Failed with what
// went wrong.
func (c *Client) Report(ctx context.Context, status, problem string) error {
	return c.Call(ctx, "set_status", reporting{status, problem}, nil)
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
