package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley"
)

// journalSupervisor is the actor that watches the journal. When the journal fails, it logs that, reopens the journal
// with growing pauses, and then resumes unfinished work.
type journalSupervisor struct {
	node *Node
	wait time.Duration
}

type (
	journalChanged struct{}
	reopenJournal  struct{}
)

const (
	reopenFirst = 100 * time.Millisecond
	reopenMost  = 5 * time.Second
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
	case *actor.Started, journalChanged: // a restarted actor looks at once
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

// retry sends itself a message after a pause. The timer ends with the node, at the latest by being ignored.
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
	trying, cancel := context.WithTimeout(k.node.life, reopenMost)
	defer cancel()
	if err := k.node.journal.Reopen(trying); err != nil {
		k.node.log.Warn("the journal does not come back yet", "error", err)
		k.wait = min(2*k.wait, reopenMost)
		k.retry(ctx)
		return
	}
	k.wait = 0
	k.node.log.Info("the journal is back: writing again")
	k.node.registry.recheckAll()
	k.node.resume()
}

func (n *Node) stopFor(err error) {
	n.doneMu.Lock()
	defer n.doneMu.Unlock()
	if n.why == nil {
		n.why = err
		close(n.done)
	}
}
