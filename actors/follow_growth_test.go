package actors

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
)

// called returns how many calls from outside wait for an agent's actor, or are handled by it.
func called(a *Agent) int {
	r := a.node.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.registrations[a.id].called.Load())
}

// sendNotes sends notes to the host.
func sendNotes(t *testing.T, from *Agent, count int) {
	t.Helper()
	for k := range count {
		if _, err := from.Send(t.Context(), "HOST", fmt.Sprint("note ", k)); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "all have arrived", func() bool { return isDelivered(t, from) })
}

// TestGrowthOfFirstLoads has few followers and many come at once to a mailbox, and callers that list it. However many they are, a short
// call finds one piece of each kind before it.
func TestGrowthOfFirstLoads(t *testing.T) {
	n := openNode(t, t.TempDir())
	host := n.Host()
	sendNotes(t, guest(t, n, "fae"), 2*lookAtOnce)
	for _, count := range []int{2, 200} {
		release := make(chan struct{})
		var left sync.WaitGroup
		left.Add(1)
		n.registry.tell(n.host, 0, blocked{release, left.Done})
		for range count {
			left.Go(func() {
				if _, err := host.Mail().Since(t.Context(), view.MessageFilter{All: true}, 0); err != nil {
					t.Error(err)
				}
			})
			left.Go(func() {
				if _, err := host.Mail().Last(t.Context(), view.MessageFilter{All: true}, 0, 50); err != nil {
					t.Error(err)
				}
			})
		}
		eventually.Holds(t, "all have come", func() bool {
			return called(host)+n.pieces.Waiting(piece{n.host, ofLoads})+n.pieces.Waiting(piece{n.host, ofLists}) == 2*count
		})
		if before := called(host); before != 2 {
			t.Errorf("%d followers and callers: %d pieces stand before a short call", 2*count, before)
		}
		close(release)
		left.Wait()
	}
}

// TestFollowersOfAMailboxThatChangesGetEachChangeOnce has followers read a mailbox from the first message on, in many pieces, while
// its messages change. One of them comes back with its cursor after each batch, as a page that is loaded again.
func TestFollowersOfAMailboxThatChangesGetEachChangeOnce(t *testing.T) {
	n := openNode(t, t.TempDir())
	host, fae := n.Host(), guest(t, n, "fae")
	sendNotes(t, fae, 5*lookAtOnce)
	var all sync.WaitGroup
	all.Go(func() {
		for k := range uint64(100) {
			if err := host.Mail().Acknowledge(t.Context(), capabilities.FormNumber(k*6)); err != nil {
				t.Error(err)
			}
			if err := host.Dismiss(t.Context(), capabilities.FormNumber(600-k*5)); err != nil {
				t.Error(err)
			}
			if _, err := fae.Send(t.Context(), "HOST", "a late note"); err != nil {
				t.Error(err)
			}
		}
		if _, err := host.Send(t.Context(), "@self", "the end"); err != nil {
			t.Error(err)
		}
	})
	for range 5 {
		all.Go(func() {
			cursor, last, seen := uint64(0), map[uint64]view.Message{}, map[[2]uint64]bool{}
			for ended := false; !ended; {
				in, err := host.Mail().Changes(t.Context(), view.MessageFilter{All: true}, cursor)
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.IsSortedFunc(in.Messages, func(a, b view.Message) int { return int(a.Number) - int(b.Number) }) {
					t.Error("a batch is not in the order of the numbers")
				}
				if in.Cursor <= cursor {
					t.Errorf("the cursor goes from %d to %d", cursor, in.Cursor)
				}
				inBatch := map[uint64]bool{}
				for _, m := range in.Messages {
					change := [2]uint64{m.Number, m.Changed}
					if seen[change] || inBatch[m.Number] {
						t.Errorf("the change of message %d at %d comes twice", m.Number, m.Changed)
					}
					if m.Changed <= cursor || m.Changed > in.Cursor {
						t.Errorf("a batch from %d to %d has a change at %d", cursor, in.Cursor, m.Changed)
					}
					if m.Changed < last[m.Number].Changed {
						t.Errorf("message %d is told as it was", m.Number)
					}
					seen[change], inBatch[m.Number], last[m.Number] = true, true, m
					ended = ended || m.Text == "the end"
				}
				cursor = in.Cursor
			}
			now, err := host.Mail().Inbox(t.Context(), view.MessageFilter{All: true})
			if err != nil || len(now.Messages) != len(last) {
				t.Errorf("%d messages were told of, there are %d: %v", len(last), len(now.Messages), err)
			}
			for _, m := range now.Messages {
				if last[m.Number].Changed != m.Changed {
					t.Errorf("the last change of message %d, at %d, was not told; the last was at %d", m.Number, m.Changed, last[m.Number].Changed)
				}
			}
		})
	}
	all.Wait()
}

// TestFollowerThatGoesAwayHoldsUpNoOther has followers give up while they wait for others. The next is served.
func TestFollowerThatGoesAwayHoldsUpNoOther(t *testing.T) {
	n := openNode(t, t.TempDir())
	host := n.Host()
	sendNotes(t, guest(t, n, "fae"), 2*lookAtOnce)
	release := make(chan struct{})
	var left sync.WaitGroup
	left.Add(1)
	n.registry.tell(n.host, 0, blocked{release, left.Done})
	gone, leave := context.WithCancel(t.Context())
	for range 20 {
		left.Go(func() {
			if in, err := host.Mail().Changes(gone, view.MessageFilter{All: true}, 0); err != nil || len(in.Messages) != 0 {
				t.Errorf("%d, %v", len(in.Messages), err)
			}
		})
	}
	eventually.Holds(t, "all wait", func() bool { return n.pieces.Waiting(piece{n.host, ofLoads}) == 19 })
	leave()
	close(release)
	left.Wait()
	if in, err := host.Mail().Since(t.Context(), view.MessageFilter{All: true}, 0); err != nil || len(in.Messages) != 2*lookAtOnce {
		t.Errorf("%d, %v", len(in.Messages), err)
	}
}
