package persistence

import (
	"context"
	"slices"
)

// waiter is a callback for when all to pos is settled.
type waiter struct {
	pos Position
	fn  func(error)
}

// Release calls fn(nil) once pos and all before it are durable, or fn with an error (READ_ONLY, or
// CORRUPT_LOG where that is why) once pos is lost. Each fn is called once, in order of position, on a
// goroutine of the journal's; it must not block. Where pos is settled already and nobody waits for an
// earlier one, fn is called at once, on the caller's.
func (j *Journal) Release(pos Position, fn func(error)) {
	o := &j.order
	o.Lock()
	state, err := o.state(pos)
	if state != pending && !o.releasing && (len(o.waiting) == 0 || o.waiting[0].pos > pos) {
		o.Unlock()
		fn(err)
		return
	}
	at := len(o.waiting)
	for at > 0 && o.waiting[at-1].pos > pos { // nearly always in order
		at--
	}
	o.waiting = slices.Insert(o.waiting, at, waiter{pos, fn})
	if state != pending {
		nudge(o.due)
	}
	o.Unlock()
}

// Durable reports whether pos and all before it, but what was lost, are on disk.
func (j *Journal) Durable(pos Position) bool {
	j.order.Lock()
	defer j.order.Unlock()
	s, _ := j.order.state(pos)
	return s == durable
}

// Lost reports whether pos belongs to appends that failed.
func (j *Journal) Lost(pos Position) bool {
	if !j.order.failed.Load() {
		return false
	}
	j.order.Lock()
	defer j.order.Unlock()
	s, _ := j.order.state(pos)
	return s == gone
}

type state int

const (
	pending state = iota
	durable
	gone
)

// state says how pos stands, and why if it is gone. The lock is held.
func (o *order) state(pos Position) (state, error) {
	for i := len(o.spans) - 1; i >= 0 && o.spans[i].last >= pos; i-- {
		if o.spans[i].first <= pos {
			return gone, o.spans[i].err
		}
	}
	switch {
	case pos <= o.settled:
		return durable, nil
	case o.failure != nil:
		return gone, o.failure
	}
	return pending, nil
}

// releaser calls the waiters whose positions are settled, until ctx ends.
func (j *Journal) releaser(ctx context.Context) {
	var ready []waiter
	var errs []error
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.order.due:
		}
		for {
			ready, errs = j.order.ready(ready[:0], errs[:0])
			if len(ready) == 0 {
				break
			}
			for i, w := range ready {
				w.fn(errs[i])
			}
			clear(ready)
		}
	}
}

// ready moves the waiters that can be released to ready. While there are any, Release calls nobody.
func (o *order) ready(ready []waiter, errs []error) ([]waiter, []error) {
	o.Lock()
	defer o.Unlock()
	for _, w := range o.waiting {
		s, err := o.state(w.pos)
		if s == pending {
			break
		}
		ready, errs = append(ready, w), append(errs, err)
	}
	n := copy(o.waiting, o.waiting[len(ready):])
	clear(o.waiting[n:])
	o.waiting = o.waiting[:n]
	o.releasing = len(ready) > 0
	o.settledSome()
	return ready, errs
}
