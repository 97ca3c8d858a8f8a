package client

import (
	"context"
	"time"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

// The statuses of an agent.
const (
	Initializing = "initializing"
	Idle         = "idle"
	Running      = "running"
	Failed       = "error"
	Closed       = "closed" // it is archived
)

// NeedsPermission is what WaitForAgent says of an agent that waits to be permitted a call, and is running still.
const NeedsPermission = "permission"

// The policies for an agent's calls that need permission. A standing rule that denies goes before all of them.
const (
	AskAlways = "always"  // every call is asked about, whatever rules allow
	AskOnMiss = "on-miss" // calls that no rule decides are asked about: so it is where nothing is said
	AskNever  = "never"   // calls that no rule denies are allowed
	DenyAll   = "deny"    // calls that no rule allows are denied
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
	Queued             int64               `json:"queued"` // messages that wait for its program
	Interrupted        []CutMessage        `json:"interrupted,omitempty"`
	OpenForms          int64               `json:"openForms"`         // that it asked
	Runtime            string              `json:"runtime,omitempty"` // exec or acp, if it has a program
	User               string              `json:"user,omitempty"`    // that the program runs as, if one is named for it
	Wrap               []string            `json:"wrap,omitempty"`    // words before the program's command, if it has its own
	Held               bool                `json:"held,omitempty"`    // the node was restored, and does not start the program yet
	Policy             string              `json:"policy,omitempty"`  // "" is AskOnMiss
	CreatedAt          time.Time           `json:"createdAt"`
	UpdatedAt          time.Time           `json:"updatedAt"`
	Node               string              `json:"node"`
}

// CutMessage is a message for which an agent's program ran when its node ended, so that the run did as well. It is not run
// for again: send it again if that does no harm. It is left out once the agent has dismissed it.
type CutMessage struct {
	Message ID        `json:"message"`
	Number  uint64    `json:"number"` // in the agent's mailbox
	Text    string    `json:"text"`   // cut short
	At      time.Time `json:"at"`     // when it was sent
}

// PendingPermission is a call that an agent asks whether it may make. Tool and Input are empty to who does not rule the agent.
type PendingPermission struct {
	Form    ID        `json:"form"`
	Number  uint64    `json:"number"` // in the agent's mailbox
	Tool    string    `json:"tool"`
	Input   string    `json:"input"` // a JSON document, perhaps cut short
	AskedAt time.Time `json:"askedAt"`
}

// AgentFilter selects agents: those that have all of its Labels and any of its Statuses. The zero AgentFilter selects all
// but those that are Closed.
type AgentFilter = view.AgentFilter

// agentList is a page of agents.
type agentList struct {
	Agents []Agent `json:"agents"`
	api.Paged
}

// Agents lists the agents of the node that the client's agent sees: itself and those that it holds, and the node's host all. The
// oldest is the first.
func (c *Client) Agents(ctx context.Context, f AgentFilter) ([]Agent, error) {
	var all []Agent
	for r := (api.FetchAgentsRequest{Filter: f, Paging: api.Paging{Limit: c.pageSize}}); ; {
		got, err := get[agentList](ctx, c, "fetch_agents", r)
		if err != nil {
			return nil, err
		}
		all = append(all, got.Agents...)
		if r.After = got.Next; r.After == "" {
			return all, nil
		}
	}
}

// agentResult is an agent, or the reason why there is none.
type agentResult struct {
	Agent *Agent        `json:"agent,omitempty"`
	Error *parley.Error `json:"error,omitempty"`
}

// Agent gives an agent by its ID, a unique beginning of that, a name or an exact title. It refuses with AGENT_NOT_FOUND, and with
// AMBIGUOUS.
func (c *Client) Agent(ctx context.Context, agent string) (Agent, error) {
	got, err := get[agentResult](ctx, c, "fetch_agent", api.AgentRequest{AgentID: agent})
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

// Prompt is a message to an agent at work, in plain words. MessageID makes a repeat harmless; "" is one of its own.
type Prompt struct {
	Agent     string `json:"agentId"` // as in Client.Agent
	Text      string `json:"text"`
	MessageID string `json:"messageId,omitempty"` // the same one is the same message
}

// Prompted is a prompt that was accepted: it is on the node's disk.
type Prompted struct {
	Agent   ID
	Message ID   // that the agent has it as
	Queued  bool // the agent's program was running already: it runs for this message after those before it
}

// Prompt sends a message to an agent, once, and returns when it is accepted: it is on disk, and the agent's program runs for it,
// or it is Queued, or waits for whoever serves an agent without a program. WaitForAgent waits until that is done. It refuses with
// AGENT_NOT_FOUND, AMBIGUOUS, AGENT_ARCHIVED, with RATE_LIMITED where as many programs run as may, and with what keeps a program
// from running. If it is known by then which agent is meant, Agent is given with the error.
func (c *Client) Prompt(ctx context.Context, p Prompt) (Prompted, error) {
	if p.MessageID == "" {
		p.MessageID = NewKey()
	}
	got, err := get[api.SendAgentMessageResponse](ctx, c, "send_agent_message", p)
	agent := idOf(got.AgentID)
	switch {
	case err != nil:
		return Prompted{}, err
	case got.Error != nil:
		return Prompted{Agent: agent}, got.Error
	case !got.Accepted:
		return Prompted{Agent: agent}, parley.Refuse(parley.NotPermitted, "agent %s did not accept the message", agent)
	}
	return Prompted{Agent: agent, Message: idOf(got.Message), Queued: got.Queued}, nil
}

// Report says what the client's agent, which has no program but this client, does: Initializing, Idle, Running, or Failed with what
// went wrong. Of an agent with a program the node says it, and Report is NOT_PERMITTED.
func (c *Client) Report(ctx context.Context, status, problem string) error {
	return c.Call(ctx, "set_status", api.SetStatusRequest{Status: status, Error: problem}, nil)
}

// finish is the end of a wait for an agent.
type finish struct {
	Status string `json:"status"`
	Final  Agent  `json:"final"`
}

// WaitForAgent waits until an agent has nothing more to do, and says how that is: Idle, Failed or NeedsPermission, with the agent as
// it is then; at once if it is so. One that still has prompts to work on is not Idle. It goes on through restarts of the node, until
// ctx ends: then it is TIMEOUT, and the agent goes on.
func (c *Client) WaitForAgent(ctx context.Context, agent string) (status string, final Agent, err error) {
	for {
		got, err := get[finish](ctx, c, "wait_for_finish", api.WaitForFinishRequest{AgentID: agent, TimeoutMs: turn(ctx, turnTime)})
		if err != nil || got.Status != "timeout" {
			return got.Status, got.Final, err
		}
	}
}

// Stop ends the run of an agent, and what it was asking, and returns when its program has ended. It is for the agent itself, its
// host and its maker.
func (c *Client) Stop(ctx context.Context, agent string) error {
	return c.Call(ctx, "stop_agent", api.AgentRequest{AgentID: agent}, nil)
}

// Archive puts an agent away, with what it does and asks: it takes no more messages. It is for its host and its maker.
func (c *Client) Archive(ctx context.Context, agent string) error {
	return c.Call(ctx, "archive_agent", api.AgentRequest{AgentID: agent}, nil)
}

// Description is what an agent is known by. What is nil stays as it is.
type Description struct {
	Title  *string           `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitzero"` // all of them: an empty map is none
}

// Describe replaces what the client's agent is known by.
func (c *Client) Describe(ctx context.Context, d Description) error {
	return c.Call(ctx, "describe_agent", d, nil)
}

// SetPolicy says what becomes of an agent's calls that need permission: AskAlways, AskOnMiss, AskNever or DenyAll. It is for its host.
func (c *Client) SetPolicy(ctx context.Context, agent, policy string) error {
	return c.Call(ctx, "set_policy", api.SetPolicyRequest{AgentID: agent, Policy: policy}, nil)
}
