package actors

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/persistence"
)

// The names of the node's actors. The actor of a program is below its agent's.
const (
	journalName   = "journal"
	schedulerName = "scheduler"
)

func agentName(id capabilities.ID) string    { return "agents/" + id.ULID.String() }
func programName(id capabilities.ID) string  { return agentName(id) + "/program" }
func peerName(id capabilities.NodeID) string { return "peers/" + id.String() }

// An actor that crashes more than maxRestarts times within restartWindow does not recover by a restart.
const (
	maxRestarts   = 10
	restartWindow = time.Minute
)

// supervision is a node's one-for-one strategy. It restarts an actor that has crashed, which keeps its queue. The library's
// strategy stops an actor that crashes too often, which loses the queue and leaves its callers waiting. Escalate is called
// instead, and differs for each kind of actor.
type supervision struct {
	tree     *tree
	escalate func(child *actor.PID, reason any) actor.Directive
}

// HandleFailure restarts an actor that has crashed. It escalates when the actor crashes too often.
func (s *supervision) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, child *actor.PID, stats *actor.RestartStatistics, reason, _ any) {
	stats.Fail()
	s.tree.crashed(child)
	directive := actor.RestartDirective
	if stats.NumberOfFailures(restartWindow) > maxRestarts {
		stats.Reset()
		directive = s.escalate(child, reason)
	}
	switch directive {
	case actor.StopDirective:
		parent.StopChildren(child)
	default:
		parent.RestartChildren(child)
	}
}

// escalateToNode stops the node, which cannot go on without the actor.
func (n *Node) escalateToNode(child *actor.PID, reason any) actor.Directive {
	n.log.Error("an actor that the node needs crashes: stopping", "actor", child.Id, "panic", fmt.Sprint(reason))
	n.stopFor(parley.Refuse(parley.Internal, "%s crashed %d times within %v: %v", child.Id, maxRestarts+1, restartWindow, reason))
	return actor.StopDirective
}

// stopChild stops a crashing actor for good. The other actors continue.
func (n *Node) stopChild(child *actor.PID, reason any) actor.Directive {
	n.log.Error("an actor crashes too often: stopped", "actor", child.Id, "panic", fmt.Sprint(reason))
	return actor.StopDirective
}

// tree holds the node's actors by name.
type tree struct {
	system *actor.ActorSystem

	mu       sync.Mutex
	children map[string]*child // by the ID of the PID
	again    atomic.Uint64
}

// child is an actor in the tree.
type child struct {
	name     string
	restarts int
}

// spawn starts an actor under a name. If an actor of that name is still stopping, the new actor's ID has a number after the
// name.
func (t *tree) spawn(name string, props *actor.Props) *actor.PID {
	pid, err := t.system.Root.SpawnNamed(props, name)
	for err != nil {
		pid, err = t.system.Root.SpawnNamed(props, fmt.Sprintf("%s~%d", name, t.again.Add(1)))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.children[pid.Id] = &child{name: name}
	return pid
}

// stop stops an actor.
func (t *tree) stop(pid *actor.PID) {
	t.mu.Lock()
	delete(t.children, pid.Id)
	t.mu.Unlock()
	t.system.Root.Stop(pid)
}

// crashed counts a crash.
func (t *tree) crashed(pid *actor.PID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.children[pid.Id]; c != nil {
		c.restarts++
	}
}

// Tree lists the node's actors by name. Parents come before their children.
func (n *Node) Tree() []view.ActorState {
	t := n.registry.tree
	t.mu.Lock()
	all := make([]view.ActorState, 0, len(t.children))
	for _, c := range t.children {
		all = append(all, view.ActorState{Name: c.name, Restarts: c.restarts})
	}
	t.mu.Unlock()
	problems := n.registry.problems()
	for i := range all {
		all[i].Problem = problems[all[i].Name]
		if all[i].Name == journalName {
			all[i].Snapshots = n.journal.DiscardedSnapshots()
		}
	}
	slices.SortFunc(all, func(a, b view.ActorState) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// journalSupervisor is the actor that watches the journal. When the journal fails, it logs that, reopens the journal
// with growing pauses, and then resumes unfinished work.
type journalSupervisor struct {
	node *Node
	wait time.Duration
	said string // the last error in the log, without its numbers

	tries int // failed ones since the journal failed
}

// withoutNumbers returns a text by which errors are compared.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

func (k *journalSupervisor) most() time.Duration {
	if k.node.o.URL != "" {
		return reopenRemote
	}
	return reopenMost
}

type (
	journalChanged struct{}
	reopenJournal  struct{}
)

const (
	reopenFirst  = 100 * time.Millisecond
	reopenMost   = 5 * time.Second        // between two attempts, and for one with a journal elsewhere
	reopenRemote = 200 * time.Millisecond // most, of a journal elsewhere: its servers elect a leader at any time
)

// spawnRoot starts the actors that the node needs: the journal's supervisor and the scheduler.
func (n *Node) spawnRoot() {
	root, strategy := n.registry.system.Root, &supervision{n.registry.tree, n.escalateToNode}
	pid := n.registry.tree.spawn(journalName, actor.PropsFromProducer(func() actor.Actor { return &journalSupervisor{node: n} }, actor.WithGuardian(strategy)))
	n.tasks.Go(func() {
		for {
			changed := n.journal.Changed()
			root.Send(pid, journalChanged{})
			select {
			case <-changed:
			case <-n.life.Done():
				return
			}
		}
	})
	n.scheduler.spawn(strategy)
}

// Receive handles a change of the journal's condition, and the time to try again.
func (k *journalSupervisor) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started, journalChanged: // a restarted actor checks the journal first
		k.look(ctx)
	case reopenJournal:
		k.reopen(ctx)
	}
}

func (k *journalSupervisor) look(ctx actor.Context) {
	err := k.node.journal.Err()
	switch {
	case err == nil:
	case k.node.journal.Fenced():
		k.node.log.Error("another process runs this node: stopping", "error", err)
		k.node.stopFor(err)
	case parley.CodeOf(err) == parley.CorruptLog:
		k.node.log.Error("the log is damaged: read-only until it is restored", "error", err)
	case k.wait == 0:
		k.node.log.Error("the journal failed: read-only", "error", err)
		k.wait = reopenFirst
		k.retry(ctx)
	}
}

// retry sends the actor a message after a pause. A message after the node's end is ignored.
func (k *journalSupervisor) retry(ctx actor.Context) {
	self, root := ctx.Self(), k.node.registry.system.Root
	time.AfterFunc(k.wait, func() {
		if k.node.life.Err() == nil {
			root.Send(self, reopenJournal{})
		}
	})
}

func (k *journalSupervisor) reopen(ctx actor.Context) {
	if k.node.journal.Err() == nil || k.node.journal.Fenced() || k.node.life.Err() != nil {
		k.wait = 0
		return
	}
	trying := k.node.life // an embedded server takes its time to read a long log on a busy machine: what is asked of it then has bounds of its own
	if k.node.o.URL != "" {
		var cancel context.CancelFunc
		trying, cancel = context.WithTimeout(trying, reopenMost)
		defer cancel()
	}
	if err := k.node.journal.Reopen(trying); err != nil {
		k.tries++
		if why := withoutNumbers(err.Error()); why != k.said { // it may be tried for hours, with another temporary file each time
			k.node.log.Warn("the journal does not come back yet; it is tried again", "error", err)
			k.said = why
		}
		k.wait = min(2*k.wait, k.most())
		k.retry(ctx)
		return
	}
	k.node.log.Info("the journal is back: writing again", "failed attempts", k.tries)
	k.wait, k.said, k.tries = 0, "", 0
	recovery := k.node.registry.beginRecovery()
	k.node.registry.recheckAll(recovery)
	k.node.resume(recovery)
	recovery.done()
}

func (n *Node) stopFor(err error) {
	n.doneMu.Lock()
	defer n.doneMu.Unlock()
	if n.why == nil {
		n.why = err
		close(n.done)
	}
}

// recovery counts the mailboxes that have to deliver mail again, after a start or a failure of the journal.
type recovery struct {
	registry *registry
	failures uint64 // of the journal, when it began
	left     atomic.Int64
}

// beginRecovery begins a recovery. The caller adds mailboxes to it, and then calls done.
func (r *registry) beginRecovery() *recovery {
	c := &recovery{registry: r, failures: r.node.journal.Failures()}
	c.left.Store(1)
	return c
}

// resume has a mailbox deliver its items again.
func (c *recovery) resume(s *registration) {
	c.left.Add(1)
	c.registry.send(s, delivery{message: resume{c.registry.node, s.id, c.done}})
}

// done ends one mailbox's part. With the last one, each mailbox gets a recovered message, which follows the mail that was
// delivered again.
func (c *recovery) done() {
	if c.left.Add(-1) == 0 {
		c.registry.endRecovery(c.failures + 1)
	}
}

// recheckAll makes every mailbox in memory compare its state with the log. They redeliver items that a failure of the
// journal has lost.
func (r *registry) recheckAll(c *recovery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.registrations {
		s.quarantined.Store(nil) // of all mailboxes before any gets mail
	}
	for _, s := range r.registrations {
		c.resume(s)
	}
}

// resumeIn has a mailbox deliver its items as part of a recovery.
func (r *registry) resumeIn(c *recovery, id capabilities.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.resume(r.registration(id))
}

// endRecovery sends recovered to the mailboxes in memory.
func (r *registry) endRecovery(count uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recovered = count
	for _, s := range r.registrations {
		r.send(s, delivery{message: recovered{s, count}})
	}
}

// recovered is the message to a mailbox that follows all mail that was delivered again. Count is 1 after the start, and 1
// more for each failure of the journal.
type recovered struct {
	reg   *registration
	count uint64
}

func (m recovered) handle(*mailboxActor) { m.reg.recovered.Store(m.count) }
func (m recovered) fail(error)           { m.reg.recovered.Store(m.count) } // calls to an unreadable mailbox return its own error

// isRecovering reports whether acknowledged mail for the mailbox may be missing. That may be so after the node has
// started, or the journal has failed.
func (s *registration) isRecovering(j *persistence.Journal) bool {
	return j.Failures()+1 != s.recovered.Load() && parley.CodeOf(j.Err()) != parley.CorruptLog
}

// errRecovering is the error of a call for an unknown message while the node recovers.
func errRecovering() error {
	return parley.Refuse(parley.ReadOnly, "there is no such message yet: mail is still being delivered again after a start or a failure of the journal").
		WithHint("try again in a moment")
}
