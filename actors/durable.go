package actors

import (
	"context"
	"errors"
	"sync"
	"time"

	"parley/capabilities"
	"parley/persistence"
)

// A mailbox's state is ahead of the disk, and a reader waits until the disk has what it read. While one flush hangs, that
// has no end. Readers of such a mailbox get what was durable before then:
//
//	commit 8   fae: message 0              durable
//	commit 9   fae: message 1, host: sent  the disk hangs in its flush
//	inbox of fae                           message 0, made from the log up to commit 8
//	send to fae                            waits for the disk, as all that writes
//	inbox of carl                          by its actor: nothing of it is in commit 9
//
// No reader is shown message 1 before the disk has it.

const (
	readPatience = 2 * time.Second        // for a read while the disk hangs: the log may be out of reach then too
	actorGrace   = 200 * time.Millisecond // of it for the mailbox's actor, which may wait for the disk itself
)

// read is call for a request that changes nothing. While the disk hangs it returns what is durable, or the error that
// names the disk.
func read[T any](ctx context.Context, a *Agent, r request[T]) (T, error) {
	var zero T
	stuck, reply := a.node.journal.Stuck(), newReply[T]()
	select {
	case <-stuck:
		if a.node.registry.isAhead(a.id) {
			return readDurable(ctx, a, r)
		}
	default:
	}
	if err := a.node.registry.call(a.id, &requestMessage[T]{r, reply}); err != nil {
		return zero, err
	}
	select {
	case got := <-reply.ch:
		return got.value, got.err
	case <-ctx.Done():
		return zero, errEnded(ctx, a.node)
	case <-stuck:
	}
	select {
	case got := <-reply.ch:
		return got.value, got.err
	case <-time.After(actorGrace):
		return readDurable(ctx, a, r)
	}
}

// errGoesOn is the error of whileStuck while the disk goes on.
var errGoesOn = errors.New("the disk goes on")

// whileStuck is read if the disk hangs, for a caller who would wait for more than the answer.
func whileStuck[T any](ctx context.Context, a *Agent, r request[T]) (v T, err error) {
	if !isStuck(a.node) {
		return v, errGoesOn
	}
	return read(ctx, a, r)
}

// readDurable answers a request from the durable state of a mailbox.
func readDurable[T any](ctx context.Context, a *Agent, r request[T]) (T, error) {
	var zero T
	reply := newReply[T]()
	if !a.node.run(func() { reply.put(durably(a.node, a.node.registry.durableOf(a.id), r)) }) {
		return zero, errClosing()
	}
	for {
		select {
		case got := <-reply.ch:
			return got.value, got.err
		case <-ctx.Done():
			return zero, errEnded(ctx, a.node)
		case <-time.After(readPatience):
			if err := a.node.journal.StuckError(); err != nil {
				return zero, err
			}
		}
	}
}

// durableMailbox is the durable state of a mailbox, for readers while the disk hangs. It is made from the log when it is
// read, and again when the log has grown. The mailbox's actor drops it when the disk goes on.
type durableMailbox struct {
	id    capabilities.ID
	mu    sync.Mutex
	actor *mailboxActor // it only reads, and is not in the registry; nil before the first read
}

// durably handles a request with the durable state of a mailbox.
func durably[T any](n *Node, d *durableMailbox, r request[T]) (v T, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, _ := n.journal.Mailbox(d.id)
	if d.actor == nil || d.actor.state.Version != at.Version {
		s, _, err := n.replay(n.life, d.id)
		if err != nil {
			return v, err
		}
		d.actor = &mailboxActor{node: n, reg: &registration{id: d.id}, state: s}
		d.actor.old = lendTo(d.actor)
		d.actor.old.detached = true
		d.actor.old.block = func(wait func() error) error { return wait() } // no turn of an actor waits
	}
	v, err = recalled(d.actor.old, func() (T, error) { return r.handle(d.actor) })
	d.actor.old.trimPages()
	d.actor.old.trim()
	return v, err
}

// isStuck reports whether the disk hangs.
func isStuck(n *Node) bool {
	select {
	case <-n.journal.Stuck():
		return true
	default:
		return false
	}
}

// isAhead reports whether a mailbox has events that are not durable.
func (r *registry) isAhead(id capabilities.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, awake := r.registrations[id]
	return awake && !r.node.journal.Durable(persistence.Position(s.last.Load()))
}

// durableOf returns the durable state of a mailbox. That of a mailbox that is not in memory is kept by nobody.
func (r *registry) durableOf(id capabilities.ID) *durableMailbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := &durableMailbox{id: id}
	if s, awake := r.registrations[id]; awake && !s.durable.CompareAndSwap(nil, d) {
		if before := s.durable.Load(); before != nil {
			return before
		}
	}
	return d
}

// dropDurable lets the durable state go when the disk has gone on.
func (b *mailboxActor) dropDurable() {
	if b.reg.durable.Load() != nil && !isStuck(b.node) {
		b.reg.durable.Store(nil)
	}
}
