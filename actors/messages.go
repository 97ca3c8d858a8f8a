package actors

import (
	"context"

	"parley/capabilities"
	"parley/mailbox"
	"parley/persistence"
)

// message is a message to a mailbox's actor. Exactly one of its methods is called, once: handle with the mailbox's state
// in memory, or fail if the mailbox cannot be read or what the message follows from was never stored.
//
// A feature adds a message and its handler, in the file of its noun. Handlers use the actor's state, decide and release.
type message interface {
	handle(b *mailboxActor)
	fail(err error)
}

// delivery is a message in an actor's queue.
type delivery struct {
	message
	after  persistence.Position // the append that it follows from
	called bool                 // it came from outside
}

// request is a message with a result.
type request[T any] interface {
	handle(b *mailboxActor) (T, error)
}

// relay is a request that goes on to another mailbox before there is a result. The handler makes sure that reply gets
// just one.
type relay[T any] interface {
	handle(b *mailboxActor, reply replyTo[T])
}

// call sends a request to the agent's mailbox. It returns the result when all that the result follows from is durable.
func call[T any](ctx context.Context, a *Agent, r request[T]) (T, error) {
	reply := make(replyTo[T], 1)
	if err := a.node.registry.call(a.id, &requestMessage[T]{r, reply}); err != nil {
		var zero T
		return zero, err
	}
	return reply.wait(ctx)
}

// callRelay is call for a relay.
func callRelay[T any](ctx context.Context, a *Agent, r relay[T]) (T, error) {
	reply := make(replyTo[T], 1)
	if err := a.node.registry.call(a.id, &relayMessage[T]{r, reply}); err != nil {
		var zero T
		return zero, err
	}
	return reply.wait(ctx)
}

// requestMessage is a request with the channel for its result.
type requestMessage[T any] struct {
	request request[T]
	reply   replyTo[T]
}

func (m *requestMessage[T]) handle(b *mailboxActor) {
	v, err := m.request.handle(b)
	m.reply.release(b, v, err)
}

func (m *requestMessage[T]) fail(err error) { m.reply.fail(err) }

// relayMessage is a relay with the channel for its result.
type relayMessage[T any] struct {
	relay relay[T]
	reply replyTo[T]
}

func (m *relayMessage[T]) handle(b *mailboxActor) { m.relay.handle(b, m.reply) }
func (m *relayMessage[T]) fail(err error)         { m.reply.fail(err) }

// result is a value or an error.
type result[T any] struct {
	value T
	err   error
}

// replyTo takes the one result of a call.
type replyTo[T any] chan result[T]

// release sends a result once all that b's state follows from is durable, or the error by which that was lost.
func (r replyTo[T]) release(b *mailboxActor, v T, err error) {
	b.release(func(lost error) {
		if lost != nil {
			err = lost
		}
		r <- result[T]{v, err}
	})
}

// fail sends an error.
func (r replyTo[T]) fail(err error) {
	var zero T
	r <- result[T]{zero, err}
}

// wait blocks until there is a result or ctx ends.
func (r replyTo[T]) wait(ctx context.Context) (T, error) {
	if ctx.Done() == nil {
		got := <-r
		return got.value, got.err
	}
	select {
	case got := <-r:
		return got.value, got.err
	case <-ctx.Done():
		var zero T
		return zero, errEnded(ctx)
	}
}

// query returns what read finds in the agent's state. Read changes nothing, and keeps no part of the state that may
// change.
func query[T any](ctx context.Context, a *Agent, read func(s *mailbox.State, now capabilities.Time) (T, error)) (T, error) {
	return call(ctx, a, queryState[T]{read})
}

// queryState is a request that only reads the state.
type queryState[T any] struct {
	read func(s *mailbox.State, now capabilities.Time) (T, error)
}

func (m queryState[T]) handle(b *mailboxActor) (T, error) { return m.read(b.state, b.node.now()) }

// none is the result of a request of which only success matters.
type none = struct{}

// activate has a mailbox read, with all that goes before any message: its state is made from the log, deliveries and
// acks are resumed, and deadlines are met.
type activate struct{}

func (activate) handle(*mailboxActor) {}
func (activate) fail(error)           {}

// resume is activate for a mailbox with unfinished work. A mailbox that cannot be read now is tried again later.
type resume struct {
	node    *Node
	mailbox capabilities.ID
}

func (resume) handle(*mailboxActor) {}

func (m resume) fail(err error) {
	m.node.log.Warn("mail not resumed", "mailbox", m.mailbox.String(), "error", err)
	m.node.resumeLater(m.mailbox, err)
}
