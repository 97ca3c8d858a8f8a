package actors

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/capabilities"
)

// Finish is where an agent stood when it had nothing more to do: idle, error, or permission, when somebody must permit
// a call before it goes on. After a timeout it still had.
type Finish struct {
	Status string   `json:"status"`
	Final  Snapshot `json:"final"`
}

// The statuses of a Finish.
const (
	FinishIdle       = "idle"
	FinishError      = "error"
	FinishPermission = "permission"
	FinishTimeout    = "timeout"
)

// finishing is who waits for which agent to have finished.
type finishing struct {
	mu    sync.Mutex
	waits map[capabilities.ID][]chan<- result[Finish]
}

func (f *finishing) add(agent capabilities.ID, ch chan<- result[Finish]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waits == nil {
		f.waits = map[capabilities.ID][]chan<- result[Finish]{}
	}
	f.waits[agent] = append(f.waits[agent], ch)
}

func (f *finishing) drop(agent capabilities.ID, ch chan<- result[Finish]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits[agent] = slices.DeleteFunc(f.waits[agent], func(c chan<- result[Finish]) bool { return c == ch })
	if len(f.waits[agent]) == 0 {
		delete(f.waits, agent)
	}
}

// take removes and returns those who wait for an agent. Each has room for its one result.
func (f *finishing) take(agent capabilities.ID) []chan<- result[Finish] {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting := f.waits[agent]
	delete(f.waits, agent)
	return waiting
}

// WaitForFinish waits until the agent has nothing more to do: at once if it is idle, in error, or waits for permission.
// After the timeout, 0 being none, it gives the agent as it is then. An ended ctx is TIMEOUT.
func (a *Agent) WaitForFinish(ctx context.Context, timeout time.Duration) (Finish, error) {
	ended := make(chan result[Finish], 1)
	first, err := visitFor(ctx, a, func(b *mailboxActor) (Finish, error) {
		snap := snapshotOf(b.state)
		status, over := b.state.Finish()
		if !over {
			b.node.finishing.add(a.id, ended)
		}
		return Finish{Status: status, Final: snap}, nil
	})
	if err != nil || first.Status != "" {
		return first, err
	}
	defer a.node.finishing.drop(a.id, ended)
	var passed <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case r := <-ended:
		return r.value, r.err
	case <-passed:
		snap, err := a.Snapshot(ctx)
		return Finish{Status: FinishTimeout, Final: snap}, err
	case <-ctx.Done():
		return Finish{}, errEnded(ctx)
	case <-a.node.life.Done():
		return Finish{}, parley.Refuse(parley.NotRunning, "the node is stopping")
	}
}
