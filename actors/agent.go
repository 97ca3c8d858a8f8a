package actors

import (
	"context"
	"errors"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Agent acts for one agent of a node. It is a handle: it holds no state and needs no closing. Its methods
// block until what they say is durable or ctx ends; an ended ctx gives TIMEOUT, or its
// cause if that has a code, and what was asked for may still happen.
type Agent struct {
	node *Node
	id   capabilities.ID
	by   *Token // by which it acts: it can do no more than that; nil is by itself
}

// ID returns the agent's ID.
func (a *Agent) ID() capabilities.ID { return a.id }

// errEnded is the error of a call whose context ended: the context's own cause if it has a code, else TIMEOUT.
func errEnded(ctx context.Context) error {
	if e, ok := errors.AsType[*parley.Error](context.Cause(ctx)); ok {
		return e
	}
	return parley.Refuse(parley.Timeout, "the call ended before its result was there (%v)", context.Cause(ctx)).
		WithHint("what was asked for may still happen")
}

// do has the agent's mailbox decide on a command of which nothing but success is of interest.
func (a *Agent) do(ctx context.Context, c mailbox.Command) error {
	_, err := call(ctx, a, decide{c})
	return err
}

// decide has a mailbox decide on a command. Its result is the events that follow.
type decide struct{ command mailbox.Command }

func (m decide) handle(b *mailboxActor) ([]events.Event, error) { return b.decide(m.command) }
