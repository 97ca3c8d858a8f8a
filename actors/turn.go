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
	return readPiece(ctx, a, ofLists, listing[T]{queryState[T]{look}})
}

// pieces are the lines of what reads pieces of mailboxes. An actor handles what it is sent in order. So the pieces of a thousand
// followers that come at once, each with the whole mailbox to read, would all stand before a short call of the same agent. Of each
// line only one piece is sent to the actor at a time, and the others wait for it out here.
//
//	in the actor's queue      call, load 1, list 1
//	in the line of loads      load 2, load 3, ... load 1000
//	in the line of lists      list 2
//
// A follower has its place in the line for one batch, and goes to the end of the line for the next. So followers take turns.
type pieces = fair.Lines[piece]

// piece is a line of a mailbox.
type piece struct {
	mailbox capabilities.ID
	of      pieceOf
}

type pieceOf uint8

const (
	ofLists   pieceOf = iota
	ofChanges         // what followers read that have read what was before
	ofLoads           // what followers read that have much to read, and lists for fair.Later
)

// readPiece is read for a piece of a listing, in its line.
func readPiece[T any](ctx context.Context, a *Agent, of pieceOf, r request[T]) (v T, err error) {
	if of == ofLists && fair.IsLater(ctx) {
		of = ofLoads
	}
	err = inLine(ctx, a, of, func() (err error) {
		v, err = read(ctx, a, r)
		return err
	})
	return v, err
}

// inLine calls work, which sends the agent's actor one piece at a time, when it is its turn in a line.
func inLine(ctx context.Context, a *Agent, of pieceOf, work func() error) error {
	line := piece{a.id, of}
	if err := a.node.pieces.Enter(ctx, line); err != nil {
		return errEnded(ctx, a.node)
	}
	defer a.node.pieces.Leave(line)
	return work()
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
