package actors

import (
	"slices"
	"sync"
	"sync/atomic"

	"parley/actors/view"
	"parley/capabilities"
)

// waiters holds the callers that wait for a form's end, for another node's reply, or for a change of a mailbox. It is
// not part of the log, and keeps no mailbox in memory.
type waiters struct {
	mu       sync.Mutex
	settling map[formKey][]chan<- result[view.Outcome]
	remote   map[formKey][]chan<- result[view.Outcome]
	watching map[capabilities.ID][]chan<- struct{}
	watchers atomic.Int64
}

// formKey identifies a form in one mailbox.
type formKey struct{ mailbox, form capabilities.ID }

type result[T any] struct {
	value T
	err   error
}

func newWaiters() *waiters {
	return &waiters{
		settling: map[formKey][]chan<- result[view.Outcome]{}, remote: map[formKey][]chan<- result[view.Outcome]{},
		watching: map[capabilities.ID][]chan<- struct{}{},
	}
}

// add adds a waiter for a form's end. The channel has room for one result and gets at most one.
func (w *waiters) add(p formKey, ch chan<- result[view.Outcome]) { w.enter(w.settling, p, ch) }

// drop removes a waiter.
func (w *waiters) drop(p formKey, ch chan<- result[view.Outcome]) { w.leave(w.settling, p, ch) }

// take removes and returns the waiters for a form.
func (w *waiters) take(mailbox, form capabilities.ID) []chan<- result[view.Outcome] {
	return w.remove(w.settling, formKey{mailbox, form})
}

// addRemote adds a waiter for another node's reply to an answer, or to a forward, which is known by the ID of its grant.
// The channel is as in add.
func (w *waiters) addRemote(p formKey, ch chan<- result[view.Outcome]) { w.enter(w.remote, p, ch) }

// dropRemote removes such a waiter.
func (w *waiters) dropRemote(p formKey, ch chan<- result[view.Outcome]) { w.leave(w.remote, p, ch) }

// takeRemote removes and returns such waiters.
func (w *waiters) takeRemote(p formKey) []chan<- result[view.Outcome] { return w.remove(w.remote, p) }

func (w *waiters) enter(all map[formKey][]chan<- result[view.Outcome], p formKey, ch chan<- result[view.Outcome]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all[p] = append(all[p], ch)
}

func (w *waiters) leave(all map[formKey][]chan<- result[view.Outcome], p formKey, ch chan<- result[view.Outcome]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all[p] = slices.DeleteFunc(all[p], func(c chan<- result[view.Outcome]) bool { return c == ch })
	if len(all[p]) == 0 {
		delete(all, p)
	}
}

func (w *waiters) remove(all map[formKey][]chan<- result[view.Outcome], p formKey) []chan<- result[view.Outcome] {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := all[p]
	delete(all, p)
	return waiting
}

// watch signals a channel with room for one whenever a mailbox has changed.
func (w *waiters) watch(mailbox capabilities.ID, ch chan<- struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watching[mailbox] = append(w.watching[mailbox], ch)
	w.watchers.Add(1)
}

func (w *waiters) unwatch(mailbox capabilities.ID, ch chan<- struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchers.Add(-1)
	w.watching[mailbox] = slices.DeleteFunc(w.watching[mailbox], func(c chan<- struct{}) bool { return c == ch })
	if len(w.watching[mailbox]) == 0 {
		delete(w.watching, mailbox)
	}
}

func (w *waiters) watched(mailbox capabilities.ID) bool {
	if w.watchers.Load() == 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watching[mailbox]) > 0
}

func (w *waiters) changed(mailbox capabilities.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.watching[mailbox] {
		select {
		case ch <- struct{}{}:
		default: // it has yet to look at the last change
		}
	}
}
