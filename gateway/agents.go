package gateway

import (
	"context"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// An agentId in these requests is a whole ID or a locator, a name of the caller's, the beginning of an ID that only one
// agent has, or the whole title of just one. It is resolved here, and never by a client.

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

func fetchAgents(ctx context.Context, a *actors.Agent, r FetchAgentsRequest) (FetchAgentsResponse, error) {
	all, err := a.Agents(ctx, r.Filter)
	if err != nil {
		return FetchAgentsResponse{}, err
	}
	list, paged, err := pageOf(all, r.Paging, func(s view.AgentStatus) string { return s.ID.String() })
	return FetchAgentsResponse{list, paged}, err
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

func fetchAgent(ctx context.Context, a *actors.Agent, r AgentRequest) (FetchAgentResponse, error) {
	agent, err := a.Find(ctx, r.AgentID)
	if err != nil {
		return FetchAgentResponse{Error: shown(err)}, failedItself(err)
	}
	snap, err := agent.Status(ctx)
	if err == nil {
		snap, err = a.Seen(ctx, snap)
	}
	if err != nil {
		return FetchAgentResponse{}, err
	}
	return FetchAgentResponse{Agent: &snap}, nil
}

// failedItself gives the error of a call that says in its response what was refused: only what is no refusal.
func failedItself(err error) error {
	switch parley.CodeOf(err) {
	case parley.Internal, parley.Timeout, parley.NotRunning:
		return err
	}
	return nil
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

func sendAgentMessage(ctx context.Context, a *actors.Agent, r SendAgentMessageRequest) (SendAgentMessageResponse, error) {
	if r.Text == "" {
		return SendAgentMessageResponse{}, parley.Refuse(parley.InvalidArgument, "a message needs a text")
	}
	agent, err := a.Find(ctx, r.AgentID)
	if err != nil {
		return SendAgentMessageResponse{Error: shown(err)}, failedItself(err)
	}
	p, err := a.Prompt(ctx, agent, r.Text, r.MessageID)
	if err != nil {
		return SendAgentMessageResponse{AgentID: agent.ID(), Error: shown(err)}, failedItself(err)
	}
	return SendAgentMessageResponse{AgentID: agent.ID(), Accepted: true, Queued: p.Queued, Message: p.Message}, nil
}

// WaitForFinishRequest waits until an agent is idle, in error, or waits for permission; at once if it is so.
type WaitForFinishRequest struct {
	Acting
	AgentID   string `json:"agentId"`
	TimeoutMs int64  `json:"timeoutMs,omitempty"` // 0 is none
}

// maxTimeout bounds a wait in milliseconds: some 24 days.
const maxTimeout = 1 << 31

func waitForFinish(ctx context.Context, a *actors.Agent, r WaitForFinishRequest) (view.Finish, error) {
	if r.TimeoutMs < 0 {
		return view.Finish{}, parley.Refuse(parley.InvalidArgument, "timeoutMs %d is negative", r.TimeoutMs)
	}
	agent, err := a.Find(ctx, r.AgentID)
	if err != nil {
		return view.Finish{}, err
	}
	f, err := agent.WaitForFinish(ctx, time.Duration(min(r.TimeoutMs, maxTimeout))*time.Millisecond)
	if err != nil && ctx.Err() != nil { // who waits has not gone away: it would not hear of it
		return f, errStopping
	}
	if err != nil {
		return f, err
	}
	f.Final, err = a.Seen(ctx, f.Final)
	return f, err
}

// AgentResponse says which agent it was.
type AgentResponse struct {
	AgentID capabilities.ID `json:"agentId"`
}

func stopAgent(ctx context.Context, a *actors.Agent, r AgentRequest) (AgentResponse, error) {
	return onAgent(ctx, a, r.AgentID, a.Interrupt)
}

func archiveAgent(ctx context.Context, a *actors.Agent, r AgentRequest) (AgentResponse, error) {
	return onAgent(ctx, a, r.AgentID, a.Archive)
}

func onAgent(ctx context.Context, a *actors.Agent, which string, do func(context.Context, *actors.Agent) error) (AgentResponse, error) {
	agent, err := a.Find(ctx, which)
	if err != nil {
		return AgentResponse{}, err
	}
	return AgentResponse{AgentID: agent.ID()}, do(ctx, agent)
}

// SetStatusRequest says what the caller, an agent that has no program, does now. Error goes with the status error.
type SetStatusRequest struct {
	Acting
	Status string `json:"status"` // initializing, idle, running, error
	Error  string `json:"error,omitempty"`
}

func setStatus(ctx context.Context, a *actors.Agent, r SetStatusRequest) (Done, error) {
	return Done{}, a.Report(ctx, r.Status, r.Error)
}

// DescribeAgentRequest replaces what the caller is known by. What is not mentioned stays as it is.
type DescribeAgentRequest struct {
	Acting
	Title  *string           `json:"title,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

func describeAgent(ctx context.Context, a *actors.Agent, r DescribeAgentRequest) (Done, error) {
	return Done{}, a.Describe(ctx, r.Title, r.Labels)
}

// SetPolicyRequest says what becomes of an agent's calls that need permission.
type SetPolicyRequest struct {
	Acting
	AgentID string `json:"agentId"`
	Policy  string `json:"policy"` // always, on-miss, never, deny
}

func setPolicy(ctx context.Context, a *actors.Agent, r SetPolicyRequest) (AgentResponse, error) {
	return onAgent(ctx, a, r.AgentID, func(ctx context.Context, agent *actors.Agent) error { return a.SetPolicy(ctx, agent, r.Policy) })
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

func runAgent(ctx context.Context, a *actors.Agent, r RunAgentRequest) (MakeAgentResponse, error) {
	if caller(ctx) != nil { // a stolen token or session would be a shell on the node's machine
		return MakeAgentResponse{}, parley.Refuse(parley.NotPermitted, "programs are given to a node on its own socket alone").
			WithHint("parley run on the node's machine")
	}
	if r.Runtime == "" {
		r.Runtime = "exec"
	}
	name := r.Name
	for n := 1; ; n++ {
		if r.Name == "" {
			name = nameAfter(r.Command, n)
		}
		made, err := a.Make(ctx, actors.NewAgent{
			Kind: events.Guest, Name: name, Title: r.Title, Labels: r.Labels, Program: &r.ProgramSet, Policy: r.Policy, Wait: r.Wait,
		})
		if r.Name == "" && parley.CodeOf(err) == parley.NameTaken && n < maxNumbered {
			continue
		}
		if err != nil {
			return MakeAgentResponse{}, err
		}
		return MakeAgentResponse{Agent: made.ID(), Name: name, Kind: events.Guest}, nil
	}
}
