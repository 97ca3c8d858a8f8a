package ws

import (
	"context"
	"sync"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/compat"
)

const maxSubscriptions = 64 // of one session

// subscriptions holds the open subscriptions of one session by ID.
type subscriptions struct {
	mu   sync.Mutex
	open map[string]*openSubscription
}

// openSubscription is one subscription of a session, to messages or to agents.
type openSubscription struct {
	id    string
	stop  context.CancelFunc
	ended chan struct{}
}

// SubscribeFrame follows the messages that a filter picks: first those that changed after the cursor, then each that
// changes.
type SubscribeFrame struct {
	api.Acting
	view.MessageFilter
	SubscriptionID string     `json:"subscriptionId"`
	Cursor         api.Cursor `json:"cursor,omitempty"`
}

// MessageFrame is a followed message. A subscription with its cursor goes on after it.
type MessageFrame struct {
	Type           string       `json:"type"` // message
	SubscriptionID string       `json:"subscriptionId"`
	Cursor         string       `json:"cursor"`
	Message        view.Message `json:"message"`
}

// UnsubscribeFrame ends a subscription, to messages or to a run.
type UnsubscribeFrame struct {
	SubscriptionID string `json:"subscriptionId,omitempty"`
	RunID          string `json:"runId,omitempty"`
}

// followFrame opens a subscription.
func followFrame(c *session, h *compat.Head, text []byte) error {
	var f SubscribeFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	at, err := api.ParsePosition(string(f.Cursor))
	if err != nil {
		return err
	}
	return c.subscribe(h, f.SubscriptionID, func(ctx context.Context) error {
		agent, err := c.server.backend.Agent(ctx, c.principal, f.As)
		if err != nil {
			return err
		}
		return api.Follow(ctx, agent.Mail(), f.MessageFilter, at, func(b api.Batch) error { return c.tellBatch(ctx, f.SubscriptionID, b) })
	})
}

// subscribe runs goOn in a goroutine until it returns, the client unsubscribes, or the session ends.
func (c *session) subscribe(h *compat.Head, id string, goOn func(context.Context) error) error {
	if id == "" || len(id) > compat.MaxRequestID {
		return parley.Refuse(parley.InvalidArgument, "a subscription has a subscriptionId of %d bytes at most", compat.MaxRequestID)
	}
	ctx, stop := context.WithCancel(c.ctx)
	sub := &openSubscription{id: id, stop: stop, ended: make(chan struct{})}
	account := c.principal.Account()
	if err := account.Take(api.KindSubscriptions, 1); err != nil {
		stop()
		return err
	}
	if err := c.subscriptions.add(sub); err != nil {
		account.Give(api.KindSubscriptions, 1)
		stop()
		return err
	}
	if h.RequestID != nil {
		c.tell(compat.Subscribed{Type: "subscribed", Regarding: h.Regarding})
	}
	about := h.Regarding
	kind := h.Type
	c.work.Go(func() {
		defer close(sub.ended)
		defer account.Give(api.KindSubscriptions, 1)
		defer c.subscriptions.remove(sub)
		defer stop()
		if err := c.survives(kind, func() error { return goOn(ctx) }); err != nil && ctx.Err() == nil {
			c.note(kind, err)
			c.tell(compat.Failed(about, err))
		}
	})
	return nil
}

func (c *session) survives(kind string, do func() error) (err error) {
	defer c.survive(kind, &err)
	return do()
}

// unsubscribeFrame ends a subscription. No frame of the subscription follows.
func unsubscribeFrame(c *session, h *compat.Head, text []byte) error {
	var f UnsubscribeFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	if f.RunID != "" && f.SubscriptionID == "" {
		c.relay.LeaveRun(f.RunID)
	} else if sub := c.subscriptions.find(f.SubscriptionID); sub != nil {
		sub.stop()
		<-sub.ended
	} else {
		return parley.Refuse(parley.InvalidArgument, "there is no subscription %.80q", f.SubscriptionID)
	}
	if h.RequestID != nil {
		c.tell(compat.Subscribed{Type: "unsubscribed", Regarding: h.Regarding})
	}
	return nil
}

func (s *subscriptions) add(sub *openSubscription) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[sub.id] != nil {
		return parley.Refuse(parley.InvalidArgument, "the connection has a subscription %.80q already", sub.id)
	}
	if len(s.open) >= maxSubscriptions {
		return parley.Refuse(parley.QuotaExceeded, "the connection has %d subscriptions already", maxSubscriptions).
			WithHint("end some first, or open another connection")
	}
	if s.open == nil {
		s.open = map[string]*openSubscription{}
	}
	s.open[sub.id] = sub
	return nil
}

func (s *subscriptions) find(id string) *openSubscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

func (s *subscriptions) remove(sub *openSubscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sub.id)
}

// tellBatch sends the messages of a batch, each with the cursor behind it.
func (c *session) tellBatch(ctx context.Context, id string, b api.Batch) error {
	if len(b.Messages) == 0 {
		return nil
	}
	if err := c.check(ctx); err != nil {
		return err
	}
	for i, m := range b.Messages {
		c.tell(MessageFrame{Type: "message", SubscriptionID: id, Cursor: b.After(i).String(), Message: m})
		if ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// SubscribeAgentsFrame follows the agents that the caller sees and a filter picks. The first updates are of all agents, so
// that a subscription needs no cursor. With Mark another frame follows these updates. A client that comes back then knows
// which agents are gone.
type SubscribeAgentsFrame struct {
	api.Acting
	SubscriptionID string `json:"subscriptionId"`
	Mark           bool   `json:"mark,omitempty"`
	Filter         struct {
		view.AgentFilter
		AgentID string `json:"agentId,omitempty"` // only this one
	} `json:"filter,omitzero"`
}

// AgentUpdateFrame has the status of an agent. An agent that the filter no longer picks is removed.
type AgentUpdateFrame struct {
	Type           string           `json:"type"` // agent_update
	SubscriptionID string           `json:"subscriptionId"`
	Kind           string           `json:"kind"` // upsert, remove
	Agent          view.AgentStatus `json:"agent"`
}

// AgentsToldFrame marks the end of the updates of all agents.
type AgentsToldFrame struct {
	Type           string `json:"type"` // agents_told
	SubscriptionID string `json:"subscriptionId"`
}

// agentsFrame opens a subscription to agents.
func agentsFrame(c *session, h *compat.Head, text []byte) error {
	var f SubscribeAgentsFrame
	if err := api.Decode(text, &f); err != nil {
		return err
	}
	return c.subscribe(h, f.SubscriptionID, func(ctx context.Context) error {
		agent, err := c.server.backend.Agent(ctx, c.principal, f.As)
		if err != nil {
			return err
		}
		var mark func()
		if f.Mark {
			mark = func() { c.tell(AgentsToldFrame{Type: "agents_told", SubscriptionID: f.SubscriptionID}) }
		}
		return api.FollowAgents(ctx, agent, f.Filter.AgentFilter, f.Filter.AgentID, func(u view.AgentChange) error {
			if err := c.check(ctx); err != nil {
				return err
			}
			kind := "upsert"
			if u.Gone {
				kind = "remove"
			}
			c.tell(AgentUpdateFrame{Type: "agent_update", SubscriptionID: f.SubscriptionID, Kind: kind, Agent: u.Status})
			return ctx.Err()
		}, mark)
	})
}
