package actors

import "context"

// inspect calls fn in an agent's mailbox actor.
func inspect[T any](ctx context.Context, a *Agent, fn func(*mailboxActor) (T, error)) (T, error) {
	return call(ctx, a, inspection[T]{fn})
}

type inspection[T any] struct {
	fn func(*mailboxActor) (T, error)
}

func (m inspection[T]) handle(b *mailboxActor) (T, error) { return m.fn(b) }
