package actors

import (
	"slices"
	"sync"
	"sync/atomic"

	"parley/capabilities"
)

// waits is who waits for what. It is no part of the log: a waiter holds on to no mailbox, and one that
// leaves is forgotten.
type waits struct {
	mu       sync.Mutex
	settling map[place][]chan<- result[Outcome]
	watching map[capabilities.ID][]chan<- struct{}
	watchers atomic.Int64
}

// place is a form as one mailbox sees it.
type place struct{ mailbox, form capabilities.ID }

type result[T any] struct {
	value T
	err   error
}

func newWaits() *waits {
	return &waits{settling: map[place][]chan<- result[Outcome]{}, watching: map[capabilities.ID][]chan<- struct{}{}}
}

// add enters a waiter for a form's end. The channel has room for one result and gets at most one.
func (w *waits) add(p place, ch chan<- result[Outcome]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settling[p] = append(w.settling[p], ch)
}

// drop forgets a waiter.
func (w *waits) drop(p place, ch chan<- result[Outcome]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settling[p] = slices.DeleteFunc(w.settling[p], func(c chan<- result[Outcome]) bool { return c == ch })
	if len(w.settling[p]) == 0 {
		delete(w.settling, p)
	}
}

// take removes and returns the waiters for a form.
func (w *waits) take(mailbox, form capabilities.ID) []chan<- result[Outcome] {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := place{mailbox, form}
	waiting := w.settling[p]
	delete(w.settling, p)
	return waiting
}

// watch signals a channel with room for one whenever a mailbox has changed.
func (w *waits) watch(mailbox capabilities.ID, ch chan<- struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watching[mailbox] = append(w.watching[mailbox], ch)
	w.watchers.Add(1)
}

func (w *waits) unwatch(mailbox capabilities.ID, ch chan<- struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watchers.Add(-1)
	w.watching[mailbox] = slices.DeleteFunc(w.watching[mailbox], func(c chan<- struct{}) bool { return c == ch })
	if len(w.watching[mailbox]) == 0 {
		delete(w.watching, mailbox)
	}
}

func (w *waits) watched(mailbox capabilities.ID) bool {
	if w.watchers.Load() == 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watching[mailbox]) > 0
}

func (w *waits) changed(mailbox capabilities.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.watching[mailbox] {
		select {
		case ch <- struct{}{}:
		default: // it has yet to look at the last change
		}
	}
}
