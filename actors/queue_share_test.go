package actors

import (
	"sync"
	"testing"

	"parley"
	"parley/internal/eventually"
)

func TestHostHasLargestQueueShare(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	for _, c := range []struct {
		quarters int64
		peers    bool
		agents   bool
		host     bool
	}{{1, true, true, true}, {2, false, true, true}, {3, false, false, true}, {4, false, false, false}} {
		waiting := c.quarters * maxQueuedNode / 4
		n.registry.queued.Add(waiting)
		if got := !n.registry.overloaded(shareOfPeers); got != c.peers {
			t.Errorf("%d quarters: other nodes are admitted: %t", c.quarters, got)
		}
		for a, want := range map[*Agent]bool{fae: c.agents, n.Host(): c.host} {
			if _, err := a.Version(t.Context()); (err == nil) != want || err != nil && parley.CodeOf(err) != parley.RateLimited {
				t.Errorf("%d quarters: %s: %v", c.quarters, a.id, err)
			}
		}
		n.registry.queued.Add(-waiting)
	}
}

// TestQueuedMailLeavesRoomForCalls fills the host's mailbox queue with mail. The host's own call is still admitted.
func TestQueuedMailLeavesRoomForCalls(t *testing.T) {
	n := openNode(t, t.TempDir())
	release := make(chan struct{})
	var left sync.WaitGroup
	for range maxQueuedMailbox + 1 {
		left.Add(1)
		n.registry.tell(n.host, 0, blocked{release, left.Done})
	}
	called := make(chan error, 1)
	go func() {
		_, err := n.Host().Version(t.Context())
		called <- err
	}()
	eventually.Holds(t, "the call is admitted", func() bool {
		n.registry.mu.Lock()
		defer n.registry.mu.Unlock()
		return n.registry.registrations[n.host].called.Load() == 1
	})
	close(release)
	if err := <-called; err != nil {
		t.Error(err)
	}
	left.Wait()
}

// blocked is a message whose handler blocks until release is closed.
type blocked struct {
	release <-chan struct{}
	done    func()
}

func (m blocked) handle(*mailboxActor) { <-m.release; m.done() }
func (m blocked) fail(error)           { m.done() }
