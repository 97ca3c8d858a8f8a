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
	judging  map[place][]chan<- result[Outcome]
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
	return &waits{
		settling: map[place][]chan<- result[Outcome]{}, judging: map[place][]chan<- result[Outcome]{},
		watching: map[capabilities.ID][]chan<- struct{}{},
	}
}

// add enters a waiter for a form's end. The channel has room for one result and gets at most one.
func (w *waits) add(p place, ch chan<- result[Outcome]) { w.enter(w.settling, p, ch) }

// drop forgets a waiter.
func (w *waits) drop(p place, ch chan<- result[Outcome]) { w.leave(w.settling, p, ch) }

// take removes and returns the waiters for a form.
func (w *waits) take(mailbox, form capabilities.ID) []chan<- result[Outcome] {
	return w.remove(w.settling, place{mailbox, form})
}

// judge enters a waiter for what a home on another node says to what was said to it: to an answer to a form, or
// to handing it on, which goes by the ID of its grant. The channel is as in add.
func (w *waits) judge(p place, ch chan<- result[Outcome]) { w.enter(w.judging, p, ch) }

// unjudge forgets such a waiter.
func (w *waits) unjudge(p place, ch chan<- result[Outcome]) { w.leave(w.judging, p, ch) }

// takeJudges removes and returns such waiters.
func (w *waits) takeJudges(p place) []chan<- result[Outcome] { return w.remove(w.judging, p) }

func (w *waits) enter(all map[place][]chan<- result[Outcome], p place, ch chan<- result[Outcome]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all[p] = append(all[p], ch)
}

func (w *waits) leave(all map[place][]chan<- result[Outcome], p place, ch chan<- result[Outcome]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all[p] = slices.DeleteFunc(all[p], func(c chan<- result[Outcome]) bool { return c == ch })
	if len(all[p]) == 0 {
		delete(all, p)
	}
}

func (w *waits) remove(all map[place][]chan<- result[Outcome], p place) []chan<- result[Outcome] {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := all[p]
	delete(all, p)
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
