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

// NeedsPermission is the status that WaitForAgent returns for an agent that waits for permission to make a call. Its program
// still runs.
const NeedsPermission = "permission"

// The policies for an agent's calls that need permission. A standing rule that denies comes before all of them.
const (
	AskAlways = "always"  // every call is asked about, also those that a rule allows
	AskOnMiss = "on-miss" // calls that no rule decides are asked about; the default
	AskNever  = "never"   // calls that no rule denies are allowed
	DenyAll   = "deny"    // calls that no rule allows are denied
	Review    = "review"  // calls that no rule decides go to a reviewer first, whom api.SetPolicyRequest names
)

// Agent is the present state of an agent.
type Agent struct {
	ID                 ID                  `json:"id"`
	Title              string              `json:"title"`
	Name               string              `json:"name,omitempty"` // the client's agent's name for it
	Kind               string              `json:"kind"`           // host or guest
	Status             string              `json:"status"`
	State              string              `json:"state"` // waiting, error, running, idle, stopped, unreachable or ended: what a person reads
	Error              string              `json:"error,omitempty"`
	Labels             map[string]string   `json:"labels"`
	PendingPermissions []PendingPermission `json:"pendingPermissions"`
	MorePermissions    int64               `json:"morePermissions,omitempty"` // open calls beside these, which are the newest
	Queued             int64               `json:"queued"`                    // messages that wait for its program
	Interrupted        []CutMessage        `json:"interrupted,omitempty"`
	OpenForms          int64               `json:"openForms"`         // that it asked
	Runtime            string              `json:"runtime,omitempty"` // exec or acp, if it has a program
	User               string              `json:"user,omitempty"`    // that the program runs as, if one is named for it
	Wrap               []string            `json:"wrap,omitempty"`    // words before the program's command, if it has its own
	Held               bool                `json:"held,omitempty"`    // the node was restored, and does not start the program yet
	Stopped            bool                `json:"stopped,omitempty"` // its queue is held until somebody starts it
	Policy             string              `json:"policy,omitempty"`  // "" is AskOnMiss
	CreatedAt          time.Time           `json:"createdAt"`
	UpdatedAt          time.Time           `json:"updatedAt"`
	AwayUntil          time.Time           `json:"awayUntil,omitzero"` // while it is away: the end of that
	Node               string              `json:"node"`
	Of                 ID                  `json:"of,omitzero"`       // for a session of a coding agent: its address, the agent of the folder
	Session            string              `json:"session,omitempty"` // for such a session: the coding agent's ID for it. It is told of one agent, to its host and maker
	Ended              bool                `json:"ended,omitempty"`   // of a closed session: it is not archived, and its mail waits for who resumes it
	Topic              bool                `json:"topic,omitempty"`   // it is a topic, which is listed with those
}

// CutMessage is a message for which an agent's program ran when its node ended. The run ended too, and is not repeated. Send
// the message again if that does no harm. The message is left out once the agent has dismissed it.
type CutMessage struct {
	Message ID        `json:"message"`
	Number  uint64    `json:"number"` // in the agent's mailbox
	Text    string    `json:"text"`   // cut short
	At      time.Time `json:"at"`     // when it was sent
}

// PendingPermission is a call that an agent waits for permission to make. The Permission is empty for a reader that is neither
// the agent nor its host nor its maker.
type PendingPermission struct {
	Form              ID        `json:"form"`
	Number            uint64    `json:"number"` // in the agent's mailbox
	parley.Permission           // without its offers; input and reason are perhaps cut short
	AskedAt           time.Time `json:"askedAt"`
}

// AgentFilter selects agents: those that have all of its Labels and any of its Statuses. The zero AgentFilter selects all
// but those that are Closed.
type AgentFilter = view.AgentFilter

// agentList is a page of agents.
type agentList struct {
	Agents []Agent `json:"agents"`
	api.Paged
	PageInfo *api.PageInfo `json:"pageInfo,omitempty"` // for other clients, which ask for a page
}

// Agents lists the agents that the client's agent can see: itself and those that it holds. The node's host sees all. The
// oldest comes first.
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

// Agent returns an agent by its ID, the unique beginning of an ID, a name or an exact title. It refuses with AGENT_NOT_FOUND and
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

// Prompt is a message to an agent to work on, in plain words. The same MessageID is the same message; "" is a new one.
type Prompt struct {
	Agent     string `json:"agentId"` // as in Client.Agent
	Text      string `json:"text"`
	MessageID string `json:"messageId,omitempty"` // the same one is the same message
}

// Prompted is an accepted prompt. It is on the node's disk.
type Prompted struct {
	Agent   ID
	Message ID   // that the agent has it as
	Queued  bool // the agent's program was running already: it runs for this message after those before it
}

// Prompt sends a message to an agent, once. It returns when the message is on disk and the agent's program runs for it.
// It also returns when the message is Queued. A message to an agent without a program waits for its client.
// WaitForAgent waits until the work is done.
//
// Prompt refuses with AGENT_NOT_FOUND, AMBIGUOUS and AGENT_ARCHIVED. It refuses with RATE_LIMITED when no more programs
// may run, and with the reason when a program cannot run. The result has the Agent with an error too, if the agent was
// found.
func (c *Client) Prompt(ctx context.Context, p Prompt) (Prompted, error) {
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

// finish is the end of a wait for an agent.
type finish struct {
	Status string `json:"status"`
	Final  Agent  `json:"final"`
	Error  string `json:"error,omitempty"` // as Final has it
}

// WaitForAgent blocks until an agent has nothing more to do. It returns the status, Idle, Failed or NeedsPermission, and the agent.
// An agent that still has prompts to work on is not Idle. The wait goes on through restarts of the node until ctx ends. Then
// WaitForAgent refuses with TIMEOUT, and the agent goes on.
func (c *Client) WaitForAgent(ctx context.Context, agent string) (status string, final Agent, err error) {
	for {
		got, err := get[finish](ctx, c, "wait_for_finish", api.WaitForFinishRequest{AgentID: agent, TimeoutMs: turn(ctx, turnTime)})
		if err != nil || got.Status != "timeout" {
			return got.Status, got.Final, err
		}
	}
}

// Stop ends the run of an agent and cancels what it asks. It returns when the program has ended. Stop is for the agent itself,
// its host and its maker.
func (c *Client) Stop(ctx context.Context, agent string) error {
	return api.StopAgent.Run(ctx, c, api.AgentRequest{AgentID: agent})
}
