package actors

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// statusRecorder records the statuses of agents and checks their order.
type statusRecorder struct {
	mu         sync.Mutex
	last       map[capabilities.ID]view.AgentStatus
	gone       map[capabilities.ID]bool
	violations []string
}

// recordStatuses follows, as the host, the agents that a filter selects, until stop is called.
func recordStatuses(t *testing.T, n *Node, filter view.AgentFilter) (f *statusRecorder, stop func()) {
	t.Helper()
	f = &statusRecorder{last: map[capabilities.ID]view.AgentStatus{}, gone: map[capabilities.ID]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- followAgents(ctx, n, filter, f.record) }()
	return f, func() {
		cancel()
		if err := <-left; err != nil {
			t.Error(err)
		}
	}
}

// followAgents tells of the agents that the host sees, until ctx ends or an error.
func followAgents(ctx context.Context, n *Node, f view.AgentFilter, tell func(s view.AgentStatus, gone bool) error) error {
	changed := make(chan struct{}, 1)
	w := n.Host().Agents().Watch(f, capabilities.ID{}, func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer w.Stop()
	for {
		news, err := w.Next(ctx)
		for _, c := range news {
			err = errors.Join(err, tell(c.Status, c.Gone))
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// record checks the order of each agent's statuses.
func (f *statusRecorder) record(s view.AgentStatus, gone bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, known := f.last[s.ID]
	if known && s.Version <= before.Version {
		f.violations = append(f.violations, fmt.Sprintf("%s: version %d after %d", s.ID, s.Version, before.Version))
	}
	if known && s.Status != mailbox.Closed && titleNumber(s) < titleNumber(before) {
		f.violations = append(f.violations, fmt.Sprintf("%s: %s after %s", s.ID, s.Title, before.Title))
	}
	f.last[s.ID], f.gone[s.ID] = s, gone
	return nil
}

func titleNumber(s view.AgentStatus) int {
	n, _ := strconv.Atoi(s.Title)
	return n
}

// TestDirectoryIsConsistentUnderChanges makes, changes and archives agents while the directory is built, listed and
// followed. Every reader sees each agent's changes in order, and at last all of them.
func TestDirectoryIsConsistentUnderChanges(t *testing.T) {
	const makers, each, turns = 8, 6, 5
	folder := t.TempDir()
	n := openNode(t, folder)
	for i := range 20 {
		guest(t, n, fmt.Sprint("old", i))
	}
	closeNode(t, n)
	n = openNode(t, folder) // the directory is built during the changes

	whole, stop := recordStatuses(t, n, view.AgentFilter{})
	closed, stopClosed := recordStatuses(t, n, view.AgentFilter{Statuses: []string{mailbox.Closed}})
	done := make(chan struct{})
	var readers, working sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			lists := &statusRecorder{last: map[capabilities.ID]view.AgentStatus{}, gone: map[capabilities.ID]bool{}}
			for {
				list, err := n.Host().Agents().List(t.Context(), view.AgentFilter{})
				if err != nil || len(list) < 21 {
					t.Errorf("%d agents, %v", len(list), err)
					return
				}
				for _, s := range list {
					if before, known := lists.last[s.ID]; known && (s.Version < before.Version || titleNumber(s) < titleNumber(before)) {
						t.Errorf("a list goes back: %s, %s after %s", s.ID, s.Title, before.Title)
					}
					lists.last[s.ID] = s
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	archived, kept := make(chan capabilities.ID, makers*each), make(chan capabilities.ID, makers*each)
	for m := range makers {
		working.Go(func() {
			for i := range each {
				a, err := n.Host().Make(t.Context(), NewAgent{Kind: events.Guest, Name: fmt.Sprint("new", m, "-", i), Title: "0"})
				if err != nil {
					t.Error(err)
					return
				}
				for k := range turns {
					title := fmt.Sprint(k + 1)
					if err := a.Describe(t.Context(), &title, nil); err != nil {
						t.Error(err)
					}
				}
				if i%2 == 0 {
					kept <- a.id
					continue
				}
				if err := n.Host().Agents().Archive(t.Context(), a); err != nil {
					t.Error(err)
				}
				archived <- a.id
			}
		})
	}
	working.Wait()
	close(done)
	readers.Wait()
	close(archived)
	close(kept)

	sees := func(f *statusRecorder, ids []capabilities.ID, status string, gone bool) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, id := range ids {
			if s, known := f.last[id]; !known || s.Status != status || titleNumber(s) != turns || f.gone[id] != gone {
				return false
			}
		}
		return true
	}
	var gone, stay []capabilities.ID
	for id := range archived {
		gone = append(gone, id)
	}
	for id := range kept {
		stay = append(stay, id)
	}
	eventually.Holds(t, "all changes are seen", func() bool {
		return sees(whole, stay, mailbox.Idle, false) && sees(closed, gone, mailbox.Closed, false)
	})
	eventually.Holds(t, "archived agents are reported gone", func() bool {
		whole.mu.Lock()
		defer whole.mu.Unlock()
		for _, id := range gone {
			if _, known := whole.last[id]; known && !whole.gone[id] {
				return false
			}
		}
		return true
	})
	stop()
	stopClosed()
	for _, f := range []*statusRecorder{whole, closed} {
		if len(f.violations) > 0 {
			t.Errorf("%d times out of order: %s", len(f.violations), f.violations[0])
		}
	}
	if len(closed.last) != len(gone) {
		t.Errorf("the follower of closed agents got %d of %d", len(closed.last), len(gone))
	}
	list, err := n.Host().Agents().List(t.Context(), view.AgentFilter{Statuses: []string{mailbox.Idle, mailbox.Closed}})
	if err != nil || len(list) != 21+makers*each {
		t.Errorf("%d agents, %v", len(list), err)
	}
}

// TestFollowDeliversEachAgentOnce follows the agents while the directory is built. Each agent is delivered once.
func TestFollowDeliversEachAgentOnce(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	for i := range 5 {
		guest(t, n, fmt.Sprint("g", i))
	}
	closeNode(t, n)
	n = openNode(t, folder)
	fae, err := n.ActAs(t.Context(), "g3")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ctx, cancel := context.WithCancel(t.Context())
	err = followAgents(ctx, n, view.AgentFilter{}, func(s view.AgentStatus, gone bool) error {
		names = append(names, s.Name)
		switch {
		case s.Status == mailbox.Running:
			cancel()
		case len(names) == 6:
			go func() {
				if err := fae.Report(t.Context(), mailbox.Running, ""); err != nil {
					t.Error(err)
				}
			}()
		}
		return nil
	})
	cancel()
	if want := "[HOST g0 g1 g2 g3 g4 g3]"; err != nil || fmt.Sprint(names) != want {
		t.Errorf("delivered %v, %v; want %s", names, err, want)
	}
}
