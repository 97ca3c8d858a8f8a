package actors

import (
	"context"
	"errors"

	"parley"
	"parley/capabilities"
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

// visitFor runs fn on the agent's mailbox and gives its result when all that it depends on is durable.
func visitFor[T any](ctx context.Context, a *Agent, fn func(*mailboxActor) (T, error)) (T, error) {
	return handOver(ctx, a, func(b *mailboxActor, reply replyTo[T]) {
		v, err := fn(b)
		b.answer(reply.durably(v, err))
	})
}

// replyTo takes the one result of a call.
type replyTo[T any] chan result[T]

// durably gives the function that releases a result, or that it was lost.
func (r replyTo[T]) durably(v T, err error) func(error) {
	return func(lost error) {
		if lost != nil {
			err = lost
		}
		r <- result[T]{v, err}
	}
}

func (r replyTo[T]) lost(err error) {
	var zero T
	r <- result[T]{zero, err}
}

func (b *mailboxActor) answer(fn func(error)) { b.release(fn) }

// handOver is visitFor for what goes on to another mailbox before there is a result.
func handOver[T any](ctx context.Context, a *Agent, fn func(*mailboxActor, replyTo[T])) (T, error) {
	reply := make(replyTo[T], 1)
	err := a.node.registry.call(a.id, visit{run: func(b *mailboxActor) { fn(b, reply) }, lost: reply.lost})
	if err != nil {
		var zero T
		return zero, err
	}
	if ctx.Done() == nil {
		r := <-reply
		return r.value, r.err
	}
	select {
	case r := <-reply:
		return r.value, r.err
	case <-ctx.Done():
		var zero T
		return zero, errEnded(ctx)
	}
}

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
	_, err := visitFor(ctx, a, func(b *mailboxActor) (struct{}, error) {
		_, err := b.decide(c)
		return struct{}{}, err
	})
	return err
}
