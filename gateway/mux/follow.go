package mux

import (
	"context"
	"math"
	"sync"

	"parley/actors/view"
	"parley/gateway/api"
	"parley/internal/pack"
)

// followMessagesRequest is the body of a follow of messages, from a cursor on.
type followMessagesRequest struct {
	api.Acting
	view.MessageFilter
	Cursor api.Cursor `json:"cursor,omitempty"`
}

// messageItem is a followed message. A follow with its cursor goes on after it.
type messageItem struct {
	Cursor  string       `json:"cursor"`
	Message view.Message `json:"message"`
}

// followMessages follows the agent's messages.
func (c *call) followMessages(allowed uint64) error {
	var r followMessagesRequest
	if err := c.request.Read(&r); err != nil {
		return err
	}
	at, err := api.ParsePosition(string(r.Cursor))
	if err != nil {
		return err
	}
	return c.follow(r.As, allowed, func(ctx context.Context, a api.Agent, send func(any) error) error {
		return api.Follow(ctx, a.Mail(), r.MessageFilter, at, func(b api.Batch) error {
			for i, m := range b.Messages {
				if err := send(messageItem{b.After(i).String(), m}); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// followAgentsRequest is the body of a follow of agents.
type followAgentsRequest struct {
	api.Acting
	view.AgentFilter
	AgentID string `json:"agentId,omitempty"` // only this one
}

// The kinds of items of a follow of agents.
const (
	upsert = "upsert"
	remove = "remove" // the filter no longer picks the agent
	told   = "told"   // all agents have been sent that there were
)

// agentItem is a followed agent, as it is now.
type agentItem struct {
	Kind  string            `json:"kind"`
	Agent *view.AgentStatus `json:"agent,omitempty"`
}

// followAgents follows the agents that the agent sees.
func (c *call) followAgents(allowed uint64) error {
	var r followAgentsRequest
	if err := c.request.Read(&r); err != nil {
		return err
	}
	return c.follow(r.As, allowed, func(ctx context.Context, a api.Agent, send func(any) error) error {
		return a.FollowAgents(ctx, r.AgentFilter, r.AgentID, func(s view.AgentStatus, gone bool) error {
			if gone {
				return send(agentItem{remove, &s})
			}
			return send(agentItem{upsert, &s})
		}, func() { _ = send(agentItem{Kind: told}) }) // it fails if the follow ends
	})
}

// follow has run send items, as the client allows, until the follow ends. Send blocks until an item is allowed.
func (c *call) follow(as string, allowed uint64, run func(ctx context.Context, a api.Agent, send func(any) error) error) error {
	account := c.agent.principal.Account()
	if err := account.Take(api.KindSubscriptions, 1); err != nil {
		return err
	}
	credit := newCredit(allowed)
	c.session.mu.Lock()
	if t := c.session.under[c.id]; t != nil {
		t.credit = credit
	}
	c.session.mu.Unlock()
	err := c.session.run(c.agent, c.id, true, func(ctx context.Context) {
		defer account.Give(api.KindSubscriptions, 1)
		c.finish(pack.AppendMap(nil, 0), c.session.survive("follow", func() error {
			a, err := c.session.o.Backend.Agent(ctx, c.agent.principal, as)
			if err != nil {
				return err
			}
			return run(ctx, a, func(item any) error { return c.send(ctx, credit, item) })
		}))
	})
	if err != nil {
		account.Give(api.KindSubscriptions, 1)
	}
	return err
}

// send sends an item when the client allows it, and has taken most of what was sent before.
func (c *call) send(ctx context.Context, credit *credit, item any) error {
	if err := credit.take(ctx); err != nil {
		return err
	}
	if err := c.session.out.await(ctx, &c.agent.queue); err != nil {
		return err
	}
	if err := c.session.o.Backend.Check(ctx, c.agent.principal); err != nil {
		return err
	}
	body, err := c.encode(nil, item)
	if err != nil {
		return err
	}
	c.session.item(c.id, c.agent, Item, body)
	return nil
}

// credit counts the items that a client takes of a follow.
type credit struct {
	mu   sync.Mutex
	left uint64
	more chan struct{} // has room for one
}

func newCredit(n uint64) *credit { return &credit{left: n, more: make(chan struct{}, 1)} }

// add allows n items more.
func (c *credit) add(n uint64) {
	c.mu.Lock()
	c.left += min(n, math.MaxUint64-c.left)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// take blocks until an item is allowed, or ctx ends.
func (c *credit) take(ctx context.Context) error {
	for {
		c.mu.Lock()
		if c.left > 0 {
			c.left--
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
		select {
		case <-c.more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
