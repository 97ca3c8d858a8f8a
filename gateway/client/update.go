package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"reflect"

	"github.com/coder/websocket"

	"parley"
	"parley/gateway/api"
	"parley/gateway/mux"
)

// AgentUpdate is the new state of an agent. Removed reports that the agent was archived, or that the subscription does not include
// it any more.
type AgentUpdate struct {
	Removed bool
	Agent   Agent
}

// AgentSubscription selects the agents to follow. The zero AgentSubscription selects all.
type AgentSubscription struct {
	Labels  map[string]string `json:"labels,omitempty"`  // only those that have all of these
	AgentID string            `json:"agentId,omitempty"` // only this one, as in Client.Agent
}

// FollowAgents yields the present agents, then each change, until ctx ends or an error, which comes last. It continues through
// restarts of the node, and yields no unchanged agent again.
func (c *Client) FollowAgents(ctx context.Context, s AgentSubscription) iter.Seq2[AgentUpdate, error] {
	return func(yield func(AgentUpdate, error) bool) {
		f := followingAgents{client: c, of: s, known: map[ID]Agent{}, yield: yield}
		a := again{client: c, operation: "fetch_agents"} // a read
		for {
			err := f.run(ctx, &a)
			if f.stopped {
				return
			}
			if err := a.after(ctx, err); err != nil {
				yield(AgentUpdate{}, err)
				return
			}
		}
	}
}

// followingAgents is one call of FollowAgents.
type followingAgents struct {
	client  *Client
	of      AgentSubscription
	known   map[ID]Agent // as yielded
	first   map[ID]bool  // those in the first updates of this connection; nil after these
	yield   func(AgentUpdate, error) bool
	stopped bool // the caller wants no more
}

// run follows over one connection until that is lost or refused, or the caller wants no more.
func (f *followingAgents) run(ctx context.Context, a *again) error {
	b, err := f.client.request(f.of)
	if err != nil {
		return err
	}
	s, err := f.client.transport.follow(ctx, mux.FollowAgents, b)
	if err != nil {
		return err
	}
	if s == nil {
		return f.runText(ctx, a)
	}
	defer s.close()
	for f.first = map[ID]bool{}; !f.stopped; {
		text, err := s.next(ctx)
		if err != nil {
			return err
		}
		f.client.saw()
		a.pause = 0
		var item struct {
			Kind  string `json:"kind"`
			Agent Agent  `json:"agent"`
		}
		if err := json.Unmarshal(text, &item); err != nil {
			return unreadable("fetch_agents", err)
		}
		if item.Kind == "told" {
			f.forget()
			continue
		}
		f.take(item.Agent, item.Kind == "remove")
	}
	return nil
}

const agentsSubscription = "agents"

// runText is run with a node that has text frames only.
func (f *followingAgents) runText(ctx context.Context, a *again) error {
	w, ok := f.client.transport.transport.(*web)
	if !ok {
		return parley.Refuse(parley.InvalidArgument, "agents are followed over a URL, not a socket")
	}
	conn, err := w.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.CloseNow() //nolint:errcheck // no response is lost
	opening, err := json.Marshal(struct {
		Type           string            `json:"type"`
		RequestID      string            `json:"requestId"`
		SubscriptionID string            `json:"subscriptionId"`
		As             string            `json:"as,omitempty"`
		Mark           bool              `json:"mark"` // to end the first updates with a frame
		Filter         AgentSubscription `json:"filter"`
	}{"subscribe_agent_updates", agentsSubscription, agentsSubscription, f.client.options.As, true, f.of})
	if err != nil {
		return unwritable(err)
	}
	if err := conn.Write(ctx, websocket.MessageText, opening); err != nil {
		return &lost{sent: true, cause: err}
	}
	for f.first = map[ID]bool{}; !f.stopped; {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return &lost{sent: true, cause: err}
		}
		f.client.saw()
		a.pause = 0
		if err := f.receive(text); err != nil {
			return err
		}
	}
	return nil
}

// forget yields the removal of agents that the first updates lack: they were removed during the interruption.
func (f *followingAgents) forget() {
	for id, was := range f.known {
		if !f.first[id] {
			f.update(AgentUpdate{Removed: true, Agent: was})
		}
	}
	f.first = nil
}

// receive handles a frame.
func (f *followingAgents) receive(text []byte) error {
	var frame struct {
		Type           string `json:"type"`
		SubscriptionID string `json:"subscriptionId"`
		Kind           string `json:"kind"`
		Agent          Agent  `json:"agent"`
		parley.Error
	}
	if err := json.Unmarshal(text, &frame); err != nil {
		return unreadable("subscribe_agent_updates", err)
	}
	switch {
	case frame.Type == "error" && frame.Code == parley.NotRunning: // the node is about to stop
		return &lost{sent: true, cause: &frame.Error}
	case frame.Type == "error":
		return &frame.Error
	case frame.SubscriptionID != agentsSubscription:
	case frame.Type == "agent_update":
		f.take(frame.Agent, frame.Kind == "remove")
	case frame.Type == "agents_told":
		f.forget()
	}
	return nil
}

// take takes an update of the node.
func (f *followingAgents) take(a Agent, removed bool) {
	if f.first != nil {
		f.first[a.ID] = true
	}
	f.update(AgentUpdate{Removed: removed, Agent: a})
}

// update yields an update, unless it changes nothing.
func (f *followingAgents) update(u AgentUpdate) {
	was, isKnown := f.known[u.Agent.ID]
	if f.stopped || u.Removed && !isKnown || !u.Removed && isKnown && reflect.DeepEqual(was, u.Agent) {
		return
	}
	if u.Removed {
		delete(f.known, u.Agent.ID)
	} else {
		f.known[u.Agent.ID] = u.Agent
	}
	f.stopped = !f.yield(u, nil)
}

// maxFrame bounds a frame of the node, in bytes.
const maxFrame = 16 << 20

// dial opens a WebSocket to the node.
func (w *web) dial(ctx context.Context) (*websocket.Conn, error) {
	h := http.Header{}
	if w.token != "" {
		h.Set("Authorization", "Bearer "+w.token)
	}
	conn, resp, err := websocket.Dial(ctx, //nolint:bodyclose // the body is in memory
		w.base.JoinPath(api.WebSocketPath).String(), &websocket.DialOptions{HTTPClient: &w.client, HTTPHeader: h})
	switch {
	case err == nil:
		conn.SetReadLimit(maxFrame)
		return conn, nil
	case resp == nil:
		return nil, w.failure(err, !isDial(err))
	}
	text, err := io.ReadAll(resp.Body) // short, and in memory
	if err != nil {
		return nil, &lost{sent: true, cause: err}
	}
	return nil, refusal(answer{status: resp.StatusCode, body: text})
}
