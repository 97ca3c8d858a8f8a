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
)

// AgentUpdate is an agent as it has become, or one that is not to be shown any more: it is Removed when it is archived, or what is
// followed does not take it in any more.
type AgentUpdate struct {
	Removed bool
	Agent   Agent
}

// AgentSubscription says which agents are followed. The zero AgentSubscription is all.
type AgentSubscription struct {
	Labels  map[string]string `json:"labels,omitempty"`  // only those that have all of these
	AgentID string            `json:"agentId,omitempty"` // only this one, as in Client.Agent
}

// FollowAgents yields agents as they are, then each that changes, until ctx ends or an error, which comes last. It goes on
// through restarts of the node; an agent that is the same as before is not told of again. It is to be had over a URL alone.
func (c *Client) FollowAgents(ctx context.Context, s AgentSubscription) iter.Seq2[AgentUpdate, error] {
	return func(yield func(AgentUpdate, error) bool) {
		w, ok := c.transport.transport.(*web)
		if !ok {
			yield(AgentUpdate{}, parley.Refuse(parley.InvalidArgument, "agents are followed over a URL, not a socket"))
			return
		}
		f := followingAgents{client: c, web: w, of: s, told: map[ID]Agent{}, yield: yield}
		a := again{client: c, operation: "fetch_agents"} // it only looks
		for {
			err := f.talk(ctx, &a)
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

// followingAgents is one use of FollowAgents.
type followingAgents struct {
	client  *Client
	web     *web
	of      AgentSubscription
	told    map[ID]Agent
	there   map[ID]bool // who was told of over this connection, until all that there are were
	yield   func(AgentUpdate, error) bool
	stopped bool // who is told wants no more
}

const agentsSubscription = "agents"

// talk follows over one connection, until that is lost, refused, or not wanted any more.
func (f *followingAgents) talk(ctx context.Context, a *again) error {
	conn, err := f.web.talk(ctx)
	if err != nil {
		return err
	}
	defer conn.CloseNow() //nolint:errcheck // nothing is on its way there
	opening, err := json.Marshal(struct {
		Type           string            `json:"type"`
		RequestID      string            `json:"requestId"`
		SubscriptionID string            `json:"subscriptionId"`
		As             string            `json:"as,omitempty"`
		Mark           bool              `json:"mark"` // that all there are were told
		Filter         AgentSubscription `json:"filter"`
	}{"subscribe_agent_updates", agentsSubscription, agentsSubscription, f.client.options.As, true, f.of})
	if err != nil {
		return unwritable(err)
	}
	if err := conn.Write(ctx, websocket.MessageText, opening); err != nil {
		return &lost{sent: true, cause: err}
	}
	for f.there = map[ID]bool{}; !f.stopped; {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return &lost{sent: true, cause: err}
		}
		f.client.saw()
		a.pause = 0
		if err := f.hear(text); err != nil {
			return err
		}
	}
	return nil
}

// forget tells of those that went while nobody listened: a subscription begins with those that there are.
func (f *followingAgents) forget() {
	for id, was := range f.told {
		if !f.there[id] {
			f.tell(AgentUpdate{Removed: true, Agent: was})
		}
	}
	f.there = nil
}

// hear reads a frame.
func (f *followingAgents) hear(text []byte) error {
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
	case frame.Type == "error" && frame.Code == parley.NotRunning: // it is about to stop
		return &lost{sent: true, cause: &frame.Error}
	case frame.Type == "error":
		return &frame.Error
	case frame.SubscriptionID != agentsSubscription:
	case frame.Type == "agent_update":
		if f.there != nil {
			f.there[frame.Agent.ID] = true
		}
		f.tell(AgentUpdate{Removed: frame.Kind == "remove", Agent: frame.Agent})
	case frame.Type == "agents_told":
		f.forget()
	}
	return nil
}

// tell passes an update on, if it is one.
func (f *followingAgents) tell(u AgentUpdate) {
	was, known := f.told[u.Agent.ID]
	if f.stopped || u.Removed && !known || !u.Removed && known && reflect.DeepEqual(was, u.Agent) {
		return
	}
	if u.Removed {
		delete(f.told, u.Agent.ID)
	} else {
		f.told[u.Agent.ID] = u.Agent
	}
	f.stopped = !f.yield(u, nil)
}

// maxFrame bounds a frame of a node's, in bytes.
const maxFrame = 16 << 20

// dial opens a WebSocket to the node.
func (w *web) talk(ctx context.Context) (*websocket.Conn, error) {
	h := http.Header{}
	if w.token != "" {
		h.Set("Authorization", "Bearer "+w.token)
	}
	conn, resp, err := websocket.Dial(ctx, //nolint:bodyclose // it is in memory
		w.base.JoinPath(api.WebSocketPath).String(), &websocket.DialOptions{HTTPClient: &w.client, HTTPHeader: h})
	switch {
	case err == nil:
		conn.SetReadLimit(maxFrame)
		return conn, nil
	case resp == nil:
		return nil, w.failure(err, !isDial(err))
	}
	text, err := io.ReadAll(resp.Body) // it is short, and in memory
	if err != nil {
		return nil, &lost{sent: true, cause: err}
	}
	return nil, refusal(answer{status: resp.StatusCode, body: text})
}
