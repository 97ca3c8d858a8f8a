package actors

import (
	"context"
	"time"

	"parley"
	"parley/actors/view"
)

// WaitForFinish waits until the agent has nothing more to do: at once if it is idle, in error, or waits for permission.
// After the timeout, 0 being none, it gives the agent as it is then. An ended ctx is TIMEOUT.
func (a *Agent) WaitForFinish(ctx context.Context, timeout time.Duration) (view.Finish, error) {
	ended := make(chan result[view.Finish], 1)
	first, err := call(ctx, a, awaitFinish{ended})
	if err != nil || first.Status != "" {
		return first, err
	}
	defer a.node.finished.drop(a.id, ended)
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

// awaitFinish returns how the agent has finished. If it has not, it adds a waiter for that.
type awaitFinish struct{ ended chan<- result[view.Finish] }

func (m awaitFinish) handle(b *mailboxActor) (view.Finish, error) {
	status, over := b.state.Finish()
	if !over {
		b.node.finished.add(b.reg.id, m.ended)
	}
	return view.Finish{Status: status, Final: snapshotOf(b.state)}, nil
}
