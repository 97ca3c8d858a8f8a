package actors

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
)

// finishing is who waits for which agent to have finished.
type finishing struct {
	mu    sync.Mutex
	waits map[capabilities.ID][]chan<- result[view.Finish]
}

func (f *finishing) add(agent capabilities.ID, ch chan<- result[view.Finish]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waits == nil {
		f.waits = map[capabilities.ID][]chan<- result[view.Finish]{}
	}
	f.waits[agent] = append(f.waits[agent], ch)
}

func (f *finishing) drop(agent capabilities.ID, ch chan<- result[view.Finish]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits[agent] = slices.DeleteFunc(f.waits[agent], func(c chan<- result[view.Finish]) bool { return c == ch })
	if len(f.waits[agent]) == 0 {
		delete(f.waits, agent)
	}
}

// take removes and returns those who wait for an agent. Each has room for its one result.
func (f *finishing) take(agent capabilities.ID) []chan<- result[view.Finish] {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting := f.waits[agent]
	delete(f.waits, agent)
	return waiting
}

// WaitForFinish waits until the agent has nothing more to do: at once if it is idle, in error, or waits for permission.
// After the timeout, 0 being none, it gives the agent as it is then. An ended ctx is TIMEOUT.
func (a *Agent) WaitForFinish(ctx context.Context, timeout time.Duration) (view.Finish, error) {
	ended := make(chan result[view.Finish], 1)
	first, err := visitFor(ctx, a, func(b *mailboxActor) (view.Finish, error) {
		snap := snapshotOf(b.state)
		status, over := b.state.Finish()
		if !over {
			b.node.finishing.add(a.id, ended)
		}
		return view.Finish{Status: status, Final: snap}, nil
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
		snap, err := a.Status(ctx)
		return view.Finish{Status: view.FinishTimeout, Final: snap}, err
	case <-ctx.Done():
		return view.Finish{}, errEnded(ctx)
	case <-a.node.life.Done():
		return view.Finish{}, parley.Refuse(parley.NotRunning, "the node is stopping")
	}
}
