package actors

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/events"
	"parley/internal/eventually"
)

// TestUnreadableMailboxIsRetriedAfterStart fails the first read of a mailbox. Its queued message still gets a run, without
// any call.
func TestUnreadableMailboxIsRetriedAfterStart(t *testing.T) {
	t.Parallel()
	folder, g := t.TempDir(), newBarrier(t)
	n := openNode(t, folder)
	a := newShellAgent(t, n, "w", g.wait())
	prompt(t, a, "one")
	prompt(t, a, "two")
	closeNode(t, n)
	g.open()

	var loads atomic.Int64
	n = openWith(t, Options{Folder: folder, Idle: time.Hour, Failpoint: func(step string) error {
		if strings.HasPrefix(step, "before load ") && loads.Add(1) <= 2 { // one of them may be the host's
			return parley.Refuse(parley.ReadOnly, "not now, for the test")
		}
		return nil
	}})
	a = &Agent{node: n, id: a.id}
	eventually.Holds(t, "the second message has a run", func() bool {
		return len(eventsOf[*events.RunEnded](t, a)) == 2 // it reads the log and activates no mailbox
	})
	if loads.Load() < 3 {
		t.Errorf("the mailbox was read at once, in %d", loads.Load())
	}
}
