package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"

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
	b, err := f.client.request("", f.of)
	if err != nil {
		return err
	}
	s, err := f.client.transport.follow(ctx, mux.FollowAgents, b)
	if err != nil {
		return err
	}
	if s == nil { // a call by HTTP says what is wrong, if something else is
		if err := api.FetchAgents.Run(ctx, f.client, api.FetchAgentsRequest{}); err != nil {
			return err
		}
		return &lost{cause: errors.New("the node opens no WebSocket")}
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

// forget yields the removal of agents that the first updates lack: they were removed during the interruption.
func (f *followingAgents) forget() {
	for id, was := range f.known {
		if !f.first[id] {
			f.update(AgentUpdate{Removed: true, Agent: was})
		}
	}
	f.first = nil
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
