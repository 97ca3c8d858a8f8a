package actors

import (
	"container/heap"
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
// actor drops its queue. So the registry stops only an actor whose queue is empty, and starts another for later
// messages.
type registry struct {
	node       *Node
	system     *actor.ActorSystem
	tree       *tree
	strategy   actor.SupervisorStrategy
	dispatcher *dispatcher

	queued  atomic.Int64 // of all registrations
	problem atomic.Bool  // a mailbox is, or was, quarantined

	mu            sync.Mutex
	registrations map[capabilities.ID]*registration
	idle          idleHeap        // all registrations
	acked         []*registration // may have pending acks
	recovered     uint64          // of new registrations; 0 until the start has delivered its mail
	closed        bool
}

// registration is the entry of one active mailbox. It outlives crashes of its actor.
type registration struct {
	id     capabilities.ID
	pid    *actor.PID
	queued atomic.Int64
	called atomic.Int64  // calls from outside the node among them
	loaded atomic.Bool   // its state has been replayed, or the mailbox is new
	last   atomic.Uint64 // position of its latest append

	doubtful  atomic.Bool   // its state was read while the journal had failed
	recovered atomic.Uint64 // 1 and the failures of the journal after which all mail for it has been delivered again

	// Quarantined is the error with which the actor refuses all messages: its log cannot be replayed, or it crashes too
	// often. The next registration of the mailbox tries again.
	quarantined atomic.Pointer[parley.Error]

	stored atomic.Pointer[mailbox.Parts] // whose pages are, by the newest snapshot

	durable atomic.Pointer[durableMailbox] // for readers while the disk hangs; nil if there are none

	used  atomic.Int64 // time of its last activity, in Unix nanoseconds
	state *mailbox.State

	acks  acks
	acked bool // it is in the registry's list

	unindexed atomic.Bool // it is in the list of mailboxes that the index for searching lacks events of
}

// shutdown is the last message to an actor when the node ends.
type shutdown struct{ done func() }

func newRegistry(n *Node) *registry {
	r := &registry{
		node: n, dispatcher: newDispatcher(func() { n.journal.Push() }), registrations: map[capabilities.ID]*registration{},
		system: actor.NewActorSystem(actor.WithLoggerFactory(logTo(n.log))),
	}
	r.tree = &tree{system: r.system, children: map[string]*child{}}
	r.strategy = &supervision{r.tree, r.quarantine}
	return r
}

// quarantine makes a mailbox that crashes too often refuse all messages with an error. Stopping its actor would lose the
// queue.
func (r *registry) quarantine(child *actor.PID, reason any) actor.Directive {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.registrations {
		if s.pid.Equal(child) {
			r.node.log.Error("mailbox put aside", "mailbox", s.id.String(), "panic", fmt.Sprint(reason))
			r.problem.Store(true)
			why := parley.Refuse(parley.Internal, "mailbox %s is put aside: it crashed %d times within %v", s.id, maxRestarts+1, restartWindow)
			s.quarantined.Store(why)
			r.node.directory.fail(s.id, why)
		}
	}
	return actor.RestartDirective
}

// problems returns the errors of quarantined mailboxes by the names of their actors.
func (r *registry) problems() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]string{}
	if !r.problem.Load() {
		return all
	}
	for _, s := range r.registrations {
		if why := s.quarantined.Load(); why != nil {
			all[agentName(s.id)] = why.Message
		}
	}
	return all
}

// call is tell for a message from outside the node. It refuses with RATE_LIMITED when queues are full, and with NOT_RUNNING
// when the node is closing.
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

// share is the fill of the node's queues up to which a caller is admitted, in quarters. The host is admitted after agents
// are refused, and agents after other nodes are.
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

// overloaded reports whether the queues are too full for a caller with a share.
func (r *registry) overloaded(s share) bool {
	return r.queued.Load() >= int64(s)*maxQueuedNode/4 || int64(r.node.journal.Backlog()) >= int64(s)*maxBacklog/4
}

func errClosing() error {
	return parley.Refuse(parley.NotRunning, "the node is stopping")
}

// tell sends a message from inside the node. The message follows from the append at position after, or from none if after is
// 0. It is never refused, because each call causes a bounded number of such messages.
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
	heap.Push(&r.idle, idleSince{s, s.used.Load()})
	s.pid = r.tree.spawn(agentName(id), actor.PropsFromProducer(func() actor.Actor {
		// A restarted actor is replayed from the log, because the crash may have left its state inconsistent.
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

// done records that an actor has handled a message.
func (r *registry) done(s *registration, d delivery) {
	if d.called {
		s.called.Add(-1)
	}
	s.used.Store(time.Now().UnixNano())
	s.queued.Add(-1)
	r.queued.Add(-1)
}

// isAwake reports whether a mailbox is in memory.
func (r *registry) isAwake(id capabilities.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, awake := r.registrations[id]
	return awake
}

// active returns the number of mailboxes in memory.
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

// end stops the actors once their queues are empty, and then the dispatcher.
func (r *registry) end() {
	r.mu.Lock()
	registrations := r.registrations
	r.idle, r.acked = nil, nil
	r.registrations = map[capabilities.ID]*registration{} // so that a reference to the node keeps no mailboxes in memory
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

// drain blocks until all queues are empty and all acks are recorded.
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

// dispatcher runs actors on a fixed set of goroutines, one per processor. The library starts a goroutine for each turn.
// Then each step of a commit waits behind all of them. Growing their stacks takes a tenth of the node's time.
type dispatcher struct {
	turns   chan func() // nil ends a goroutine
	workers int
	running atomic.Int64 // turns that are queued or under way, without those that wait for the disk
	idle    func()       // called when running falls to 0
}

const (
	turnsWaiting = 4096 // further turns get goroutines of their own
	turnLength   = 300  // messages in one turn of an actor
)

// newDispatcher starts a dispatcher, which runs until end is called. It calls idle after a turn when no other is left.
func newDispatcher(idle func()) *dispatcher {
	d := &dispatcher{turns: make(chan func(), turnsWaiting), workers: runtime.GOMAXPROCS(0), idle: idle}
	for range d.workers {
		go d.work()
	}
	return d
}

// end ends the goroutines. No actor may have messages.
func (d *dispatcher) end() {
	for range d.workers {
		d.turns <- nil
	}
}

// Schedule queues fn for a goroutine.
func (d *dispatcher) Schedule(fn func()) {
	d.running.Add(1)
	select {
	case d.turns <- fn:
	default:
		go d.run(fn)
	}
}

func (d *dispatcher) run(fn func()) {
	defer d.pause()
	fn()
}

// pause ends a turn, or the part of it before a wait.
func (d *dispatcher) pause() {
	if d.running.Add(-1) == 0 {
		d.idle()
	}
}

// busy reports whether a turn is queued or under way, so that more appends may follow.
func (d *dispatcher) busy() bool { return d.running.Load() > 0 }

// Throughput returns the number of messages that an actor may handle in one turn.
func (d *dispatcher) Throughput() int { return turnLength }

// block runs a function that may wait for the disk, within a turn. Another goroutine runs the turns of other actors
// meanwhile.
func (d *dispatcher) block(wait func() error) error {
	d.pause()
	defer d.running.Add(1)
	return d.stand(wait)
}

// stand is block for a turn that is paused already.
func (d *dispatcher) stand(wait func() error) error {
	done := make(chan struct{})
	defer close(done)
	go d.workUntil(done)
	return wait()
}

func (d *dispatcher) work() {
	for fn := <-d.turns; fn != nil; fn = <-d.turns {
		d.run(fn)
	}
}

// workUntil runs turns until done is closed.
func (d *dispatcher) workUntil(done <-chan struct{}) {
	for {
		select {
		case fn := <-d.turns:
			if fn == nil { // nil is for a permanent goroutine
				d.turns <- nil
				return
			}
			d.run(fn)
		case <-done:
			return
		}
	}
}

// notifyMissed notifies waiters of the outcomes in the log after the state was replayed. A commit with an unknown result may
// have been stored, and an actor may have crashed before it notified them.
func notifyMissed(b *mailboxActor) {
	b.node.tokenEpoch.Add(1)
	for _, key := range b.node.ended.keys(func(k formKey) bool { return k.mailbox == b.reg.id }) {
		if m, err := b.formOf(key.form); err == nil && !m.Form.IsOpen() {
			b.notifyWaiters(key.form)
		}
		b.notifyAsked(key.form)
	}
	if b.node.changed.has(b.reg.id) {
		b.release(func(error) { b.node.changed.notify(b.reg.id, none{}) })
	}
	b.publishStatus(0)
}

// passivate stops the actors of mailboxes that were not used since a time. Their queues are empty, and their appends
// are all durable. It stops none while the journal has failed, because each has to recover lost appends first. It looks
// only at mailboxes that were not used since that time when it last looked at them.
//
// The scheduler calls it. The actor library's receive timeout is not used: its timer changes the actor's context
// without a lock. It cannot see whether a message is on its way to the queue.
func (r *registry) passivate(before time.Time) {
	if r.node.journal.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var later []idleSince
	for len(r.idle) > 0 && r.idle[0].used <= before.UnixNano() {
		s := heap.Pop(&r.idle).(idleSince).reg
		if used := s.used.Load(); used > before.UnixNano() || s.queued.Load() != 0 || s.acks.any() || !r.settled(s) {
			later = append(later, idleSince{s, used})
			continue
		}
		delete(r.registrations, s.id)
		r.tree.stop(s.pid)
	}
	for _, s := range later {
		heap.Push(&r.idle, s)
	}
}

// settled reports whether all appends of a mailbox are durable, and its state equals the log.
func (r *registry) settled(s *registration) bool {
	return !s.doubtful.Load() && r.node.journal.Durable(persistence.Position(s.last.Load()))
}

// idleSince is a registration with the time of its last use, as it was when the registry last looked.
type idleSince struct {
	reg  *registration
	used int64 // in unix nanoseconds
}

// idleHeap has the registration that was not used for the longest on top.
type idleHeap []idleSince

func (h idleHeap) Len() int           { return len(h) }
func (h idleHeap) Less(i, j int) bool { return h[i].used < h[j].used }
func (h idleHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *idleHeap) Push(x any)        { *h = append(*h, x.(idleSince)) }
func (h *idleHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = idleSince{}
	*h = old[:len(old)-1]
	return last
}
