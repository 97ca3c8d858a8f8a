package actors

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley"
	"parley/capabilities"
	"parley/mailbox"
	"parley/persistence"
)

// roster knows which mailboxes are in memory. Everything for a mailbox goes through it, so that one can be
// put to rest without losing what is on its way there: an actor that is stopped drops its queue silently,
// so only one with an empty queue is, and whatever comes later wakes another.
type roster struct {
	node   *Node
	system *actor.ActorSystem
	crash  actor.SupervisorStrategy
	turns  *dispatcher

	queued atomic.Int64 // of all seats

	mu     sync.Mutex
	seats  map[capabilities.ID]*seat
	closed bool
}

// seat is the place of one active mailbox. It outlives crashes of its actor.
type seat struct {
	id     capabilities.ID
	pid    *actor.PID
	queued atomic.Int64
	called atomic.Int64  // calls from outside among them
	loaded atomic.Bool   // its state was made from the log, or with the mailbox, before
	last   atomic.Uint64 // position of its latest append

	doubtful atomic.Bool // its state was read while the journal had failed

	used  atomic.Int64 // when it last did something, in unix nanoseconds
	state *mailbox.State

	receipts receipts
}

// visit is work for a mailbox's actor. Just one of run and lost is called, once: lost if the work cannot be
// done, because the mailbox cannot be read or what the visit follows from was never stored.
type visit struct {
	after  persistence.Position // what it follows from
	called bool                 // it came from outside
	run    func(*box)
	lost   func(error)
}

// farewell is the last that an actor hears when the node ends.
type farewell struct{ heard func() }

func newRoster(n *Node) *roster {
	return &roster{
		node: n, crash: actor.NewRestartingStrategy(), turns: newDispatcher(), seats: map[capabilities.ID]*seat{},
		system: actor.NewActorSystem(actor.WithLoggerFactory(logTo(n.log))),
	}
}

// call is tell for what comes from outside: it refuses with RATE_LIMITED when too much waits, and with
// NOT_RUNNING when the node is closing.
func (r *roster) call(id capabilities.ID, v visit) error {
	if r.crowded(r.shareOf(id)) {
		return parley.Refuse(parley.RateLimited, "the node has too much to do").WithHint("try again in a moment")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosing()
	}
	s := r.seat(id)
	if s.called.Load() >= maxQueuedMailbox {
		return parley.Refuse(parley.RateLimited, "too much waits for this mailbox").WithHint("try again in a moment")
	}
	v.called = true
	s.called.Add(1)
	r.send(s, v)
	return nil
}

// share is how much of the node's room for what waits a caller may find taken, in quarters. The host finds room when
// agents do not, and agents when other nodes do not.
type share int64

const (
	shareOfPeers  share = 2
	shareOfAgents share = 3
	shareOfHost   share = 4
)

func (r *roster) shareOf(id capabilities.ID) share {
	if id == r.node.host {
		return shareOfHost
	}
	return shareOfAgents
}

// crowded reports whether too much waits for anything more to be let in from outside.
func (r *roster) crowded(s share) bool {
	return r.queued.Load() >= int64(s)*maxQueuedNode/4 || int64(r.node.journal.Backlog()) >= int64(s)*maxBacklog/4
}

func errClosing() error {
	return parley.Refuse(parley.NotRunning, "the node is stopping")
}

// tell sends work from one mailbox, or the clock, to another. It is never refused: what is let in by call
// gives rise to a bounded number of these.
func (r *roster) tell(id capabilities.ID, v visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send(r.seat(id), v)
}

func (r *roster) send(s *seat, v visit) {
	s.queued.Add(1)
	r.queued.Add(1)
	r.system.Root.Send(s.pid, v)
}

// seat gives a mailbox's seat, woken if need be. The caller has the lock.
func (r *roster) seat(id capabilities.ID) *seat {
	if s, ok := r.seats[id]; ok {
		return s
	}
	return r.spawn(id, nil, 0)
}

func (r *roster) spawn(id capabilities.ID, state *mailbox.State, last persistence.Position) *seat {
	s := &seat{id: id, state: state}
	s.loaded.Store(state != nil)
	s.last.Store(uint64(last))
	s.used.Store(time.Now().UnixNano())
	r.seats[id] = s
	s.pid = r.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		// A restarted actor starts from the log: what crashed the last one may have harmed its state.
		b := &box{node: r.node, seat: s, state: s.state, last: persistence.Position(s.last.Load())}
		s.state = nil
		return b
	}, actor.WithGuardian(r.crash), actor.WithDispatcher(r.turns)))
	return s
}

// enter gives a seat to a new mailbox whose first event is on its way to the journal.
func (r *roster) enter(state *mailbox.State, last persistence.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spawn(state.ID, state, last)
}

// done is called by an actor when it has finished a visit.
func (r *roster) done(s *seat, v visit) {
	if v.called {
		s.called.Add(-1)
	}
	s.used.Store(time.Now().UnixNano())
	s.queued.Add(-1)
	r.queued.Add(-1)
}

// rest stops the actors of the mailboxes that have nothing to do, were not used since a time, and have all
// they appended on disk. What was lost, or is in doubt while the journal is failed, its mailbox has to look at first.
func (r *roster) rest(before time.Time) {
	if r.node.journal.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, s := range r.seats {
		if s.queued.Load() != 0 || s.used.Load() > before.UnixNano() || s.receipts.any() || !r.settled(s) {
			continue
		}
		delete(r.seats, id)
		r.system.Root.Stop(s.pid)
	}
}

// settled reports whether all that a mailbox has appended is on disk, and its state is what the log says.
func (r *roster) settled(s *seat) bool {
	return !s.doubtful.Load() && r.node.journal.Durable(persistence.Position(s.last.Load()))
}

// busy reports whether some mailbox has something to do, so that more appends may follow at once.
func (r *roster) busy() bool { return r.queued.Load() > 0 }

// active returns how many mailboxes are in memory.
func (r *roster) active() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seats)
}

// close lets nothing more in.
func (r *roster) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
}

// end ends the actors, when they have nothing to do, and all that they run on.
func (r *roster) end() {
	r.mu.Lock()
	seats := r.seats
	r.seats = map[capabilities.ID]*seat{} // whoever still holds the node holds no mailboxes
	r.mu.Unlock()
	var left sync.WaitGroup
	left.Add(len(seats))
	for _, s := range seats {
		r.system.Root.Send(s.pid, farewell{left.Done})
	}
	left.Wait()
	r.system.Shutdown()
	r.turns.end()
}

// drain waits until no mailbox has anything to do, and all receipts are noted.
func (r *roster) drain(ctx context.Context) error {
	for again := true; again; again = r.noteAll() {
		for r.queued.Load() > 0 {
			select {
			case <-ctx.Done():
				return fmt.Errorf("%d calls did not end: %w", r.queued.Load(), ctx.Err())
			case <-time.After(time.Millisecond):
			}
		}
	}
	return nil
}
