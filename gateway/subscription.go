package gateway

import (
	"context"
	"sync"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
)

const maxSubscriptions = 64 // of one session

// subscriptions are what one session follows.
type subscriptions struct {
	mu   sync.Mutex
	open map[string]*line
}

// line is one subscription, to whatever.
type line struct {
	id    string
	stop  context.CancelFunc
	ended chan struct{}
}

// subscription is messages followed.
type subscription struct {
	id   string
	as   string
	view view.MessageFilter
	at   position
}

// SubscribeFrame follows the messages of a view: first those that there are, or that changed after the cursor, then
// each that changes.
type SubscribeFrame struct {
	api.Acting
	view.MessageFilter
	SubscriptionID string `json:"subscriptionId"`
	Cursor         Cursor `json:"cursor,omitempty"`
}

// MessageFrame is a message that was followed. Who comes back with its cursor is told what came after it.
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

// subscribed acknowledges, to who gave a requestId, that a subscription has begun or ended.
type subscribed struct {
	Type string `json:"type"`
	regarding
}

// followFrame opens a subscription.
func followFrame(c *wsSession, h *head, text []byte) error {
	var f SubscribeFrame
	if err := decode(text, &f); err != nil {
		return err
	}
	at, err := parsePosition(string(f.Cursor))
	if err != nil {
		return err
	}
	sub := &subscription{id: f.SubscriptionID, as: f.As, view: f.MessageFilter, at: at}
	return c.subscribe(h, f.SubscriptionID, func(ctx context.Context) error { return c.follow(ctx, sub) })
}

// subscribe goes on with something, as a subscription, until that ends or is to end.
func (c *wsSession) subscribe(h *head, id string, goOn func(context.Context) error) error {
	if id == "" || len(id) > maxRequestID {
		return parley.Refuse(parley.InvalidArgument, "a subscription has a subscriptionId of %d bytes at most", maxRequestID)
	}
	ctx, stop := context.WithCancel(c.ctx)
	line := &line{id: id, stop: stop, ended: make(chan struct{})}
	account := c.principal.account
	if err := account.take(kindSubscriptions, 1); err != nil {
		stop()
		return err
	}
	if err := c.subscriptions.add(line); err != nil {
		account.give(kindSubscriptions, 1)
		stop()
		return err
	}
	if h.RequestID != nil {
		c.tell(subscribed{Type: "subscribed", regarding: h.regarding})
	}
	about := h.regarding
	kind := h.Type
	c.work.Go(func() {
		defer close(line.ended)
		defer account.give(kindSubscriptions, 1)
		defer c.subscriptions.remove(line)
		defer stop()
		if err := c.survives(kind, func() error { return goOn(ctx) }); err != nil && ctx.Err() == nil {
			c.note(kind, err)
			c.tell(failed(about, err))
		}
	})
	return nil
}

func (c *wsSession) survives(kind string, do func() error) (err error) {
	defer c.survive(kind, &err)
	return do()
}

// unsubscribeFrame ends a subscription. No frame of it follows.
func unsubscribeFrame(c *wsSession, h *head, text []byte) error {
	var f UnsubscribeFrame
	if err := decode(text, &f); err != nil {
		return err
	}
	if f.RunID != "" && f.SubscriptionID == "" {
		c.relay.leaveRun(f.RunID)
	} else if sub := c.subscriptions.find(f.SubscriptionID); sub != nil {
		sub.stop()
		<-sub.ended
	} else {
		return parley.Refuse(parley.InvalidArgument, "there is no subscription %.80q", f.SubscriptionID)
	}
	if h.RequestID != nil {
		c.tell(subscribed{Type: "unsubscribed", regarding: h.regarding})
	}
	return nil
}

func (s *subscriptions) add(sub *line) error {
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
		s.open = map[string]*line{}
	}
	s.open[sub.id] = sub
	return nil
}

func (s *subscriptions) find(id string) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

func (s *subscriptions) remove(sub *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sub.id)
}

// follow tells of messages until ctx ends.
func (c *wsSession) follow(ctx context.Context, sub *subscription) error {
	agent, err := c.server.agent(ctx, sub.as)
	if err != nil {
		return err
	}
	at := sub.at
	if at.isWithin() {
		if at, err = c.tellRest(ctx, agent, sub); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		in, err := agent.Changes(ctx, sub.view, at.seen)
		if err != nil {
			return err
		}
		if err := c.tellBatch(ctx, sub, position{seen: at.seen, upTo: in.Cursor}, in.Messages); err != nil {
			return err
		}
		at = position{seen: in.Cursor}
	}
	return nil
}

// tellRest tells the rest of a batch that was told in part before, and gives the position after it.
func (c *wsSession) tellRest(ctx context.Context, agent *actors.Agent, sub *subscription) (position, error) {
	at := sub.at
	for at.seen < at.upTo {
		in, err := agent.Since(ctx, sub.view, at.seen)
		if err != nil {
			return at, err
		}
		if in.Cursor <= at.seen {
			break
		}
		end := min(in.Cursor, at.upTo)
		if err := c.tellBatch(ctx, sub, position{seen: at.seen, upTo: end}, at.rest(in.Messages)); err != nil {
			return at, err
		}
		at.seen = end
	}
	return position{seen: at.upTo}, nil
}

// tellBatch tells of messages that changed together, in the order of their numbers.
func (c *wsSession) tellBatch(ctx context.Context, sub *subscription, at position, batch []view.Message) error {
	if len(batch) == 0 {
		return nil
	}
	if err := c.check(ctx); err != nil {
		return err
	}
	for i, e := range batch {
		if at.number = e.Number; i == len(batch)-1 {
			at = position{seen: at.upTo}
		}
		c.tell(MessageFrame{Type: "message", SubscriptionID: sub.id, Cursor: at.String(), Message: e})
		if ctx.Err() != nil {
			return nil
		}
	}
	return nil
}
