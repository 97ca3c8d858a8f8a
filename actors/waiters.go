package actors

import (
	"slices"
	"sync"
	"sync/atomic"

	"parley/capabilities"
)

// waiters holds the channels of callers that wait for something, by what that is. It is not part of the log, and keeps
// no mailbox in memory.
type waiters[K comparable, V any] struct {
	mu    sync.Mutex
	all   map[K][]chan<- V
	count atomic.Int64
}

// formKey identifies a form in one mailbox.
type formKey struct{ mailbox, form capabilities.ID }

// add adds a waiter. The channel has room for one value.
func (w *waiters[K, V]) add(key K, ch chan<- V) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[K][]chan<- V{}
	}
	w.all[key] = append(w.all[key], ch)
	w.count.Add(1)
}

// drop removes a waiter, if it is still there.
func (w *waiters[K, V]) drop(key K, ch chan<- V) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.all[key])
	if before == 0 {
		return
	}
	w.all[key] = slices.DeleteFunc(w.all[key], func(c chan<- V) bool { return c == ch })
	w.count.Add(int64(len(w.all[key]) - before))
	if len(w.all[key]) == 0 {
		delete(w.all, key)
	}
}

// take removes and returns the waiters of a key. The caller sends each of them one value.
func (w *waiters[K, V]) take(key K) []chan<- V {
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

// notify sends a value to each waiter of a key that has taken the one before. The waiters stay.
func (w *waiters[K, V]) notify(key K, v V) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.all[key] {
		select {
		case ch <- v:
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
