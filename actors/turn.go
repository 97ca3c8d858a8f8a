package actors

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"parley/capabilities"
	"parley/internal/fair"
	"parley/mailbox"
)

// A listing is made in pieces of bounded size. A piece reads some old messages back, looks through a page of the index, or
// encodes a response. The agents of a node take turns with these. What others of its agent wait for meanwhile
// is not part of a turn, nor is the disk.

// turns are the turns of a node's guests.
type turns struct {
	*fair.Queue[capabilities.ID]
	rest *fair.Rest
}

// newTurns returns the turns of a node's guests. They leave one processor for its host and for what is not listed, if
// there are several.
func newTurns() *turns {
	places := max(1, min(runtime.NumCPU(), runtime.GOMAXPROCS(0))-1) // more threads than processors change nothing
	return &turns{fair.New[capabilities.ID](places, places), fair.NewRest(0)}
}

// InTurn calls work, which is a piece of a listing of the agent, when it is the agent's turn. The node's host waits for
// nobody. It returns an error if ctx ends before.
func (m Mail) InTurn(ctx context.Context, work func() error) error {
	a := m.agent
	if a.IsHost() {
		return work()
	}
	turn, err := a.node.turns.Enter(ctx, a.id)
	if err != nil {
		return errEnded(ctx, a.node)
	}
	defer a.node.leaveTurn(turn)
	return work()
}

const longestRest = 50 * time.Millisecond // after a piece of a listing

// leaveTurn ends a turn. While anybody writes, the place rests for as long as the turn took. Else listings would get all of their
// processors whenever somebody lists, and who writes would share what is left.
func (n *Node) leaveTurn(turn fair.Place[capabilities.ID]) {
	if !n.turns.rest.Due(n.journal.Position(), time.Now()) {
		turn.Leave()
		return
	}
	time.AfterFunc(min(turn.Taken(), longestRest), turn.Leave)
}

// begin blocks until it is the mailbox's turn. Other mailboxes go on meanwhile. The caller ends the turn. For the dispatcher a
// turn is a wait: nothing is appended in it, and a commit that waited for its end would wait very long.
func (o *oldMail) begin() error {
	if o.detached {
		return nil
	}
	d := o.node.registry.dispatcher
	if o.reg.id != o.node.host {
		turn, ok := o.node.turns.Try(o.reg.id)
		if !ok {
			err := d.block(func() (err error) {
				turn, err = o.node.turns.Enter(o.node.life, o.reg.id)
				return err
			})
			if err != nil {
				return err
			}
		}
		o.turn = &turn
	}
	d.pause()
	o.block = d.stand
	return nil
}

// pause calls wait without the mailbox's turn, if it has one: others do not wait meanwhile. The dispatcher runs other
// mailboxes already.
func (o *oldMail) pause(wait func() error) error {
	if o.turn == nil {
		return wait()
	}
	o.turn.Leave()
	o.turn = nil
	err := wait()
	turn, ended := o.node.turns.Enter(o.node.life, o.reg.id)
	if ended == nil {
		o.turn = &turn
	}
	return cmp.Or(err, ended)
}

// end ends the mailbox's turn.
func (o *oldMail) end() {
	if o.detached {
		return
	}
	d := o.node.registry.dispatcher
	d.running.Add(1)
	o.block = d.block
	if o.turn != nil {
		o.node.leaveTurn(*o.turn)
		o.turn = nil
	}
}

// inTurn is recalled in a turn of the mailbox. Turns are not nested.
func inTurn[T any](o *oldMail, fn func() (T, error)) (v T, err error) {
	if err := o.begin(); err != nil {
		return v, unread{err}
	}
	defer o.end()
	return recalled(o, fn)
}

// queryListing is query in a turn of the agent, for a result that grows with what the mailbox has.
func queryListing[T any](ctx context.Context, a *Agent, look func(s *mailbox.State, now capabilities.Time) (T, error)) (T, error) {
	return read(ctx, a, listing[T]{queryState[T]{look}})
}

// listing is a request whose cost grows with what the mailbox has. It is handled in a turn.
type listing[T any] struct{ request[T] }

func (m listing[T]) handle(b *mailboxActor) (T, error) {
	if err := b.old.begin(); err != nil {
		var zero T
		return zero, unread{err}
	}
	defer b.old.end()
	return m.request.handle(b)
}
