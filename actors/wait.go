package actors

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// Version returns the number of events in the agent's mailbox.
func (a *Agent) Version(ctx context.Context) (uint64, error) {
	if at, rests := a.atRest(); rests {
		return at.Version, nil
	}
	return query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (uint64, error) { return s.Version, nil })
}

// Beyond blocks until the agent's mailbox has a later version than a given one, and returns that. If ctx ends first, it
// returns the given version and no error.
func (a *Agent) Beyond(ctx context.Context, version uint64) (uint64, error) {
	changed := make(chan struct{}, 1)
	defer a.node.changed.drop(a.node.changed.wait(a.id, changed))
	for {
		now, err := a.Version(ctx)
		if ctx.Err() != nil {
			return version, nil
		}
		if err != nil || now > version {
			return now, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return version, nil
		case <-a.node.life.Done():
			return version, errClosing()
		}
	}
}

// WaitForFinish blocks until the agent has nothing more to do: it is idle, in error, or waits for permission. After the
// timeout, if that is not 0, it returns the agent's status at that time. A ctx that ends gives TIMEOUT.
func (a *Agent) WaitForFinish(ctx context.Context, timeout time.Duration) (view.Finish, error) {
	ended := make(chan result[view.Finish], 1)
	waiting := &waiter[capabilities.ID, result[view.Finish]]{ch: ended}
	defer a.node.finished.drop(waiting)
	if over, err := whileStuck(ctx, a, awaitFinish{}); err == nil && over.Status != "" {
		return over, nil
	}
	first, err := call(ctx, a, awaitFinish{waiting})
	if err != nil || first.Status != "" {
		return first, err
	}
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
		status, err := a.Status(ctx)
		return view.FinishOf(view.FinishTimeout, status), err
	case <-ctx.Done():
		return view.Finish{}, errEnded(ctx, a.node)
	case <-a.node.life.Done():
		return view.Finish{}, parley.Refuse(parley.NotRunning, "the node is stopping")
	}
}

// awaitFinish returns how the agent has finished. If it has not, it adds the waiter for that, if there is one.
type awaitFinish struct {
	waiting *waiter[capabilities.ID, result[view.Finish]]
}

func (m awaitFinish) handle(b *mailboxActor) (view.Finish, error) {
	status, over := b.state.Finish()
	if !over && m.waiting != nil {
		b.node.finished.add(b.reg.id, m.waiting)
	}
	return view.FinishOf(status, statusOf(b.state)), nil
}

// waiters holds the channels of callers that wait for something, by what that is. It is not part of the log, and keeps
// no mailbox in memory.
type waiters[K comparable, V any] struct {
	mu    sync.Mutex
	all   map[K][]*waiter[K, V]
	count atomic.Int64
}

// waiter is a caller that waits for something. The lock of its registry guards it.
type waiter[K comparable, V any] struct {
	ch    chan<- V // has room for one value
	then  func(V)  // in its place; must not block
	asked *uint64  // of a wait for a form that also ends at a question: the number of the last that is known; nil for another
	key   K        // once it is added
	added bool
	gone  bool
}

// put gives the waiter a value.
func (one *waiter[K, V]) put(v V) {
	if one.then != nil {
		one.then(v)
		return
	}
	one.ch <- v
}

// formKey identifies a form in one mailbox.
type formKey struct{ mailbox, form capabilities.ID }

// wait adds a waiter for a key and returns it. The channel has room for one value.
func (w *waiters[K, V]) wait(key K, ch chan<- V) *waiter[K, V] {
	one := &waiter[K, V]{ch: ch}
	w.add(key, one)
	return one
}

// add adds a waiter for a key, unless it was dropped: its caller may be gone before a mailbox adds it.
func (w *waiters[K, V]) add(key K, one *waiter[K, V]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.gone {
		return
	}
	if w.all == nil {
		w.all = map[K][]*waiter[K, V]{}
	}
	one.key, one.added = key, true
	w.all[key] = append(w.all[key], one)
	w.count.Add(1)
}

// drop removes a waiter. One that was not added yet never will be.
func (w *waiters[K, V]) drop(one *waiter[K, V]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one.gone = true
	before := len(w.all[one.key])
	if !one.added || before == 0 {
		return
	}
	w.all[one.key] = slices.DeleteFunc(w.all[one.key], func(o *waiter[K, V]) bool { return o == one })
	w.count.Add(int64(len(w.all[one.key]) - before))
	if len(w.all[one.key]) == 0 {
		delete(w.all, one.key)
	}
}

// take removes and returns the waiters of a key. The caller sends each of them one value.
func (w *waiters[K, V]) take(key K) []*waiter[K, V] {
	if w.count.Load() == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.all[key]
	delete(w.all, key)
	w.count.Add(-int64(len(waiting)))
	return waiting
}

// takeAsked removes and returns the waiters of a key that wait for a question too, and do not know of the one with a number.
func (w *waiters[K, V]) takeAsked(key K, number uint64) (some []*waiter[K, V]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.all[key])
	w.all[key] = slices.DeleteFunc(w.all[key], func(one *waiter[K, V]) bool {
		takes := one.asked != nil && *one.asked < number
		if takes {
			some = append(some, one)
		}
		return takes
	})
	w.count.Add(int64(len(w.all[key]) - before))
	if len(w.all[key]) == 0 {
		delete(w.all, key)
	}
	return some
}

// notify sends a value to each waiter of a key that has taken the one before. The waiters stay. Their functions may not
// add or drop waiters.
func (w *waiters[K, V]) notify(key K, v V) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all[key] {
		if one.then != nil {
			one.then(v)
			continue
		}
		select {
		case one.ch <- v:
		default:
		}
	}
}

// has reports whether a key has waiters.
func (w *waiters[K, V]) has(key K) bool { return w.of(key) > 0 }

// of returns the number of waiters of a key.
func (w *waiters[K, V]) of(key K) int {
	if w.count.Load() == 0 {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all[key])
}

// keys returns the keys that have waiters and fit.
func (w *waiters[K, V]) keys(fits func(K) bool) (all []K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.all {
		if fits(key) {
			all = append(all, key)
		}
	}
	return all
}

// beginAsk begins a request that asks, and calls asked with its result. Part returns the part of that which every ask has.
func beginAsk[T any](a *Agent, r request[pending[T]], w *askWait, part func(*T) *view.Asked, asked func(T, error)) {
	begin(a, r, func(sent pending[T], err error) {
		if err != nil {
			w.forget()
		}
		accept := func() {
			asked(sent.result, err)
			w.accept()
		}
		if len(sent.waits) == 0 {
			accept()
			return
		}
		reached := func() { // it takes time to find out
			part(&sent.result).Unreachable = anyUnreachable(a.node, a.node.life, sent.waits)
			accept()
		}
		if !a.node.run(reached) {
			accept()
		}
	})
}

// outcomes is a waiter for the outcome of a form.
type outcomes = waiter[formKey, result[view.Outcome]]

// askWait waits for the outcome of an ask. It calls ended after the ask was accepted. Nil waits for nothing.
type askWait struct {
	node  *Node
	one   *outcomes
	ended func(view.Outcome, error)

	mu    sync.Mutex
	told  bool                  // the ask was accepted
	early *result[view.Outcome] // came before that
}

// beginWait returns the wait of an ask, and the function that ends it; nil if ended is.
func beginWait(a *Agent, ended func(view.Outcome, error)) (w *askWait, forget func()) {
	if ended == nil {
		return nil, func() {}
	}
	w = &askWait{node: a.node, ended: ended}
	w.one = outcomeWaiter(a, w.end)
	return w, w.forget
}

func (w *askWait) waiting() *outcomes {
	if w == nil {
		return nil
	}
	return w.one
}

func (w *askWait) forget() {
	if w != nil {
		w.node.ended.drop(w.one)
	}
}

func (w *askWait) accept() {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.told = true
	early := w.early
	w.mu.Unlock()
	if early != nil {
		w.ended(early.value, early.err)
	}
}

func (w *askWait) end(o view.Outcome, err error) {
	w.mu.Lock()
	if !w.told {
		w.early = &result[view.Outcome]{o, err}
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	w.ended(o, err)
}

// AfterRelease calls fn once, after the functions of all results that become known together with the present one. It
// calls fn now if none do. Fn must not block.
func (n *Node) AfterRelease(fn func()) { n.journal.AfterRelease(fn) }

// outcomeWaiter returns a waiter that calls ended with an outcome as the agent may see it.
func outcomeWaiter(a *Agent, ended func(view.Outcome, error)) *outcomes {
	return &outcomes{then: func(r result[view.Outcome]) {
		if r.err != nil || a.reveals() || r.value.Status == view.StatusAsked {
			ended(r.value, r.err)
			return
		}
		begin(a, queryOutcome{form: r.value.Form}, ended)
	}}
}
