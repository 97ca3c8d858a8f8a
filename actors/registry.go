package actors

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley"
	"parley/capabilities"
	"parley/mailbox"
	"parley/persistence"
)

// registry holds the active mailboxes. All messages to a mailbox go through it. That makes passivation safe: a stopped
// actor drops its queue, so the registry stops only an actor whose queue is empty, and starts another for later messages.
type registry struct {
	node       *Node
	system     *actor.ActorSystem
	tree       *tree
	strategy   actor.SupervisorStrategy
	dispatcher *dispatcher

	queued atomic.Int64 // of all registrations

	mu            sync.Mutex
	registrations map[capabilities.ID]*registration
	recovered     uint64 // of registrations that begin
	closed        bool
}

// registration is the entry of one active mailbox. It outlives crashes of its actor.
type registration struct {
	id     capabilities.ID
	pid    *actor.PID
	queued atomic.Int64
	called atomic.Int64  // calls from outside among them
	loaded atomic.Bool   // its state was made from the log, or with the mailbox, before
	last   atomic.Uint64 // position of its latest append

	doubtful  atomic.Bool   // its state was read while the journal had failed
	recovered atomic.Uint64 // failures of the journal after which all mail for it has been delivered again

	// Quarantined is why the actor refuses all messages: its log cannot be replayed, or it crashes too often. The next
	// registration of the mailbox tries again.
	quarantined atomic.Pointer[parley.Error]

	used  atomic.Int64 // when it last did something, in unix nanoseconds
	state *mailbox.State

	acks acks
}

// shutdown is the last message to an actor, when the node ends.
type shutdown struct{ done func() }

func newRegistry(n *Node) *registry {
	r := &registry{
		node: n, dispatcher: newDispatcher(), registrations: map[capabilities.ID]*registration{},
		system: actor.NewActorSystem(actor.WithLoggerFactory(logTo(n.log))),
	}
	r.tree = &tree{system: r.system, children: map[string]*child{}}
	r.strategy = &supervision{r.tree, r.quarantine}
	return r
}

// quarantine has a mailbox that crashes too often refuse its messages, and the callers hear why. Stopping its actor would
// lose the queue.
func (r *registry) quarantine(child *actor.PID, reason any) actor.Directive {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.registrations {
		if s.pid.Equal(child) {
			r.node.log.Error("mailbox put aside", "mailbox", s.id.String(), "panic", fmt.Sprint(reason))
			s.quarantined.Store(parley.Refuse(parley.Internal, "mailbox %s is put aside: it crashed %d times within %v", s.id, maxRestarts+1, restartWindow))
		}
	}
	return actor.RestartDirective
}

// problems returns why actors of mailboxes are quarantined, by their names.
func (r *registry) problems() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]string{}
	for _, s := range r.registrations {
		if why := s.quarantined.Load(); why != nil {
			all[agentName(s.id)] = why.Message
		}
	}
	return all
}

// call is tell for what comes from outside: it refuses with RATE_LIMITED when too much waits, and with
// NOT_RUNNING when the node is closing.
func (r *registry) call(id capabilities.ID, m message) error {
	if r.overloaded(r.shareOf(id)) {
		return parley.Refuse(parley.RateLimited, "the node has too much to do").WithHint("try again in a moment")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosing()
	}
	s := r.registration(id)
	if s.called.Load() >= maxQueuedMailbox {
		return parley.Refuse(parley.RateLimited, "too much waits for this mailbox").WithHint("try again in a moment")
	}
	s.called.Add(1)
	r.send(s, delivery{message: m, called: true})
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

func (r *registry) shareOf(id capabilities.ID) share {
	if id == r.node.host {
		return shareOfHost
	}
	return shareOfAgents
}

// overloaded reports whether too much waits to accept more calls from outside.
func (r *registry) overloaded(s share) bool {
	return r.queued.Load() >= int64(s)*maxQueuedNode/4 || int64(r.node.journal.Backlog()) >= int64(s)*maxBacklog/4
}

func errClosing() error {
	return parley.Refuse(parley.NotRunning, "the node is stopping")
}

// tell sends a message from within the node that follows from an append, or from none if after is 0. It is never
// refused: a call causes a bounded number of these.
func (r *registry) tell(id capabilities.ID, after persistence.Position, m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.send(r.registration(id), delivery{message: m, after: after})
}

func (r *registry) send(s *registration, d delivery) {
	s.queued.Add(1)
	r.queued.Add(1)
	r.system.Root.Send(s.pid, d)
}

// registration returns a mailbox's registration, and starts its actor if there is none. The caller has the lock.
func (r *registry) registration(id capabilities.ID) *registration {
	if s, ok := r.registrations[id]; ok {
		return s
	}
	return r.spawn(id, nil, 0)
}

func (r *registry) spawn(id capabilities.ID, state *mailbox.State, last persistence.Position) *registration {
	s := &registration{id: id, state: state}
	s.loaded.Store(state != nil)
	s.recovered.Store(r.recovered)
	s.last.Store(uint64(last))
	s.used.Store(time.Now().UnixNano())
	r.registrations[id] = s
	s.pid = r.tree.spawn(agentName(id), actor.PropsFromProducer(func() actor.Actor {
		// A restarted actor starts from the log: what crashed the last one may have harmed its state.
		b := &mailboxActor{node: r.node, reg: s, state: s.state, last: persistence.Position(s.last.Load())}
		s.state = nil
		return b
	}, actor.WithGuardian(r.strategy), actor.WithDispatcher(r.dispatcher)))
	return s
}

// register adds a new mailbox, whose first event has been appended.
func (r *registry) register(state *mailbox.State, last persistence.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spawn(state.ID, state, last)
}

// done is called by an actor when it has handled a message.
func (r *registry) done(s *registration, d delivery) {
	if d.called {
		s.called.Add(-1)
	}
	s.used.Store(time.Now().UnixNano())
	s.queued.Add(-1)
	r.queued.Add(-1)
}

// passivate stops the actors of the mailboxes that have nothing to do, were not used since a time, and whose appends are
// all durable. While the journal has failed, all stay: each has to look at what was lost first.
//
// The scheduler calls it. The actor library's receive timeout is not used: its timer changes the actor's context without
// a lock, and cannot see whether a message is on its way to the queue.
func (r *registry) passivate(before time.Time) {
	if r.node.journal.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, s := range r.registrations {
		if s.queued.Load() != 0 || s.used.Load() > before.UnixNano() || s.acks.any() || !r.settled(s) {
			continue
		}
		delete(r.registrations, id)
		r.tree.stop(s.pid)
	}
}

// settled reports whether all that a mailbox has appended is on disk, and its state is what the log says.
func (r *registry) settled(s *registration) bool {
	return !s.doubtful.Load() && r.node.journal.Durable(persistence.Position(s.last.Load()))
}

// isAwake reports whether a mailbox is in memory.
func (r *registry) isAwake(id capabilities.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, awake := r.registrations[id]
	return awake
}

// busy reports whether some mailbox has something to do, so that more appends may follow at once.
func (r *registry) busy() bool { return r.queued.Load() > 0 }

// active returns how many mailboxes are in memory.
func (r *registry) active() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.registrations)
}

// close refuses further calls.
func (r *registry) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
}

// end ends the actors, when they have nothing to do, and all that they run on.
func (r *registry) end() {
	r.mu.Lock()
	registrations := r.registrations
	r.registrations = map[capabilities.ID]*registration{} // whoever still holds the node holds no mailboxes
	r.mu.Unlock()
	var left sync.WaitGroup
	left.Add(len(registrations))
	for _, s := range registrations {
		r.system.Root.Send(s.pid, shutdown{left.Done})
	}
	left.Wait()
	r.system.Shutdown()
	r.dispatcher.end()
}

// drain blocks until no mailbox has anything to do and all acks are recorded.
func (r *registry) drain(ctx context.Context) error {
	for again := true; again; again = r.recordAllAcks() {
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

// dispatcher runs actors on a few goroutines that stay, as many as can run at once. With one for each turn,
// the actor library's own way, a commit on its way to the disk stands in line behind them all at each of its
// steps, and a tenth of the node's time goes into growing stacks.
type dispatcher struct {
	turns chan func() // nil ends one of the goroutines
	staff int
}

const (
	turnsWaiting = 4096 // more than these get goroutines of their own
	turnLength   = 300  // messages before another actor has its turn
)

// newDispatcher makes a dispatcher that works until end is called.
func newDispatcher() *dispatcher {
	d := &dispatcher{turns: make(chan func(), turnsWaiting), staff: runtime.GOMAXPROCS(0)}
	for range d.staff {
		go d.work()
	}
	return d
}

// end ends the goroutines. The caller makes sure that no actor has messages.
func (d *dispatcher) end() {
	for range d.staff {
		d.turns <- nil
	}
}

// Schedule runs fn soon.
func (d *dispatcher) Schedule(fn func()) {
	select {
	case d.turns <- fn:
	default:
		go fn()
	}
}

// Throughput is how many messages an actor may handle in one turn.
func (d *dispatcher) Throughput() int { return turnLength }

// aside runs, within a turn, what may wait for the disk. Others have their turns meanwhile: an actor that
// reads its log holds up nobody.
func (d *dispatcher) aside(wait func() error) error {
	done := make(chan struct{})
	defer close(done)
	go d.standIn(done)
	return wait()
}

func (d *dispatcher) work() {
	for fn := <-d.turns; fn != nil; fn = <-d.turns {
		fn()
	}
}

// standIn works until done is closed.
func (d *dispatcher) standIn(done <-chan struct{}) {
	for {
		select {
		case fn := <-d.turns:
			if fn == nil { // meant for one of the staff
				d.turns <- nil
				return
			}
			fn()
		case <-done:
			return
		}
	}
}

// notifyMissed notifies waiters of what the log shows, when the state was made from it again. A commit that was in doubt may
// have been stored, and a crash may have kept the actor from notifying anybody.
func notifyMissed(b *mailboxActor) {
	for _, key := range b.node.ended.keys(func(k formKey) bool { return k.mailbox == b.reg.id }) {
		if m, err := b.state.Mail.FindFormID(key.form); err == nil && !m.Form.IsOpen() {
			b.notifyWaiters(key.form)
		}
	}
	if b.node.changed.has(b.reg.id) {
		b.release(func(error) { b.node.changed.notify(b.reg.id, none{}) })
	}
	b.publishStatus(0)
}

// recheckAll has every mailbox in memory compare its state with the log, and deliver again what a failure of the journal
// has lost. When all have done that, each is told, behind the mail that was delivered to it.
func (r *registry) recheckAll() {
	failures := r.node.journal.Failures()
	var left atomic.Int64
	done := func() {
		if left.Add(-1) == 0 {
			r.endRecovery(failures)
		}
	}
	left.Store(1)
	defer done()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.registrations {
		s.quarantined.Store(nil) // of all, before any of them gets mail
	}
	for id, s := range r.registrations {
		left.Add(1)
		r.send(s, delivery{message: resume{r.node, id, done}})
	}
}

// endRecovery tells the mailboxes in memory that mail lost by failures of the journal has been delivered again.
func (r *registry) endRecovery(failures uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recovered = failures
	for _, s := range r.registrations {
		r.send(s, delivery{message: recovered{s, failures}})
	}
}

// recovered comes to a mailbox after all mail that was lost by failures of the journal.
type recovered struct {
	reg      *registration
	failures uint64
}

func (m recovered) handle(*mailboxActor) { m.reg.recovered.Store(m.failures) }
func (m recovered) fail(error)           { m.reg.recovered.Store(m.failures) } // a mailbox that cannot be read says so itself

// isRecovering reports whether acknowledged mail for the mailbox may be missing, because the journal has failed.
func (b *mailboxActor) isRecovering() bool {
	return b.node.journal.Failures() != b.reg.recovered.Load() && parley.CodeOf(b.node.journal.Err()) != parley.CorruptLog
}

// errRecovering is the error of a call for a message that is not there while the node recovers.
func errRecovering() error {
	return parley.Refuse(parley.ReadOnly, "there is no such message yet: the journal has failed, and mail is still being delivered again").
		WithHint("try again in a moment")
}
