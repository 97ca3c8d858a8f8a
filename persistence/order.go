package persistence

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/events"
)

// Position is a place in the order of appends. It grows by one for each append, from 1. Positions are valid only in
// this process, and each is used once.
type Position uint64

// order holds the appends that are not settled, and the callers that wait for them. An append is settled when it is
// durable or lost.
type order struct {
	log    *slog.Logger
	wake   chan struct{} // receives when there is something to commit
	busy   func() bool   // Options.Busy, not nil
	linger time.Duration
	timer  *time.Timer // calls pushLate
	timed  atomic.Bool // whether it runs

	mu      sync.Mutex
	next    Position      // the last of all appends
	settled Position      // all to here are durable or lost
	spans   []span        // the lost positions among the settled
	doubted Position      // the last one of a commit that was in doubt when the journal failed
	failure error         // the reason why all after settled are lost; nil if none are
	times   uint64        // number of failures
	changed chan struct{} // closed when failure changes

	queued  []appended  // positions settled+taken+1 to next
	waits   atomic.Bool // whether there are any
	failed  atomic.Bool // whether there ever was a failure
	taken   int         // appends in the commit under way
	backlog int         // bytes of both

	waiting   []waiter // by position
	releasing bool
	after     []func()      // to be called when the waiters under way have been
	due       chan struct{} // receives when waiters can be released
	empty     chan struct{} // closed when nothing is left; nil without a waiter
}

type appended struct {
	sections []events.Section
	size     int // 0 if it was lost when it was appended
}

// span is a range of lost positions, with the reason.
type span struct {
	first, last Position
	err         error
}

func (o *order) init(options *Options) {
	o.log, o.busy, o.linger = options.Log, options.Busy, options.Linger
	o.timer = time.AfterFunc(math.MaxInt64, o.pushLate)
	o.timer.Stop() // a running timer keeps the journal in memory
	o.wake = make(chan struct{}, 1)
	o.changed = make(chan struct{})
	o.due = make(chan struct{}, 1)
}

// Append adds sections to the order, to be stored together. It takes ownership of them, and never waits for the disk.
// The order of calls is the order in the log. The versions of each mailbox must follow those of the log and of earlier
// appends. Otherwise the journal fails, since it could not replay the sections.
//
// While the journal is failed or closed, Append returns a position that is lost.
func (o *order) Append(sections ...events.Section) Position {
	return o.AppendSince(o.Failures(), sections...)
}

// errStale is the error of sections that were decided before a failure and appended after it.
var errStale = parley.Refuse(parley.ReadOnly, "the journal failed meanwhile").WithHint("try again")

// AppendSince is Append for sections that were decided when Failures returned a number. If the journal has failed
// since, the sections are lost: they may depend on lost events.
func (o *order) AppendSince(failures uint64, sections ...events.Section) Position {
	a := appended{sections: sections}
	for i := range sections {
		a.size += len(sections[i].Body) + sectionBytes
	}
	o.mu.Lock()
	o.next++
	pos := o.next
	if o.failure != nil {
		o.mu.Unlock()
		return pos
	}
	if failures != o.times {
		a = appended{}
		o.spans = append(o.spans, span{pos, pos, errStale})
	}
	o.queued = append(o.queued, a)
	o.waits.Store(true)
	o.backlog += a.size
	o.mu.Unlock()
	if !o.busy() {
		o.Push()
	} else if !o.timed.Swap(true) {
		o.timer.Reset(o.linger)
	}
	return pos
}

// Push starts the commit of what was appended while Options.Busy returned true. The owner calls it when that ends.
//
// Without it, the commit begins after Options.Linger. Nothing polls meanwhile: on two processors that would delay the
// very work that is awaited.
func (o *order) Push() {
	if o.waits.Load() {
		signal(o.wake)
	}
}

// pushLate is Push after the time to linger.
func (o *order) pushLate() {
	o.timed.Store(false)
	o.Push()
}

// MaxAppend returns the largest size of one Append: all bodies, and sectionBytes for each section. A larger one
// fails the journal.
func (j *Journal) MaxAppend() int {
	return int(j.connection().conn.MaxPayload()) - frameOverhead
}

// sectionBytes bounds the size of a section in a frame without its body.
const sectionBytes = 64

// take returns the appends of the next commit: at least one, and as many as fit. It returns nil if there are none.
func (o *order) take(room int) []appended {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failure != nil || len(o.queued) == 0 {
		return nil
	}
	n, size := 1, o.queued[0].size
	for n < len(o.queued) && size+o.queued[n].size <= room {
		size += o.queued[n].size
		n++
	}
	batch := o.queued[:n:n]
	if o.queued = o.queued[n:]; len(o.queued) == 0 {
		o.queued = nil
		o.waits.Store(false)
	}
	o.taken = n
	return batch
}

// stored settles the commit that was sent.
func (o *order) stored(batch []appended) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failure != nil {
		return // they were reported as lost
	}
	for i := range batch {
		o.backlog -= batch[i].size
	}
	o.settled += Position(len(batch))
	o.taken = 0
	o.settledSome()
}

// settledSome wakes the waiters of settled positions. The lock is held.
func (o *order) settledSome() {
	if len(o.waiting) > 0 {
		if first, _ := o.state(o.waiting[0].pos); first != pending {
			signal(o.due)
		}
	}
	done := (o.settled == o.next || o.failure != nil) && len(o.waiting) == 0 && !o.releasing
	if done && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
}

// waiter is a callback for a position.
type waiter struct {
	pos Position
	fn  func(error)
}

// Release calls fn(nil) when pos and all positions before it are durable. It calls fn with READ_ONLY or CORRUPT_LOG
// when pos is lost. Each fn is called once, in order of position, on a goroutine of the journal, and must not block.
// If pos is settled already and there is no waiter for an earlier one, Release calls fn itself.
func (o *order) Release(pos Position, fn func(error)) {
	o.mu.Lock()
	state, err := o.state(pos)
	if state != pending && !o.releasing && (len(o.waiting) == 0 || o.waiting[0].pos > pos) {
		o.mu.Unlock()
		fn(err)
		return
	}
	at := len(o.waiting)
	for at > 0 && o.waiting[at-1].pos > pos { // nearly always in order
		at--
	}
	o.waiting = slices.Insert(o.waiting, at, waiter{pos, fn})
	if state != pending {
		signal(o.due)
	}
	o.mu.Unlock()
}

// Durable reports whether pos, and every position before it that was not lost, is on disk.
func (o *order) Durable(pos Position) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, _ := o.state(pos)
	return s == durable
}

// Lost reports whether pos is lost.
func (o *order) Lost(pos Position) bool {
	if !o.failed.Load() {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s, _ := o.state(pos)
	return s == gone
}

type state int

const (
	pending state = iota
	durable
	gone
)

// state returns the state of pos, and the reason if it is lost. The lock is held.
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

// AfterRelease calls fn once, after all callbacks that are released together with the present one. If none are under
// way, it calls fn now. Fn must not block.
func (o *order) AfterRelease(fn func()) {
	o.mu.Lock()
	if o.releasing {
		o.after = append(o.after, fn)
		o.mu.Unlock()
		return
	}
	o.mu.Unlock()
	fn()
}

// releaser calls the waiters of settled positions, until ctx ends.
func (o *order) releaser(ctx context.Context) {
	var ready []waiter
	var errs []error
	var after []func()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.due:
		}
		for {
			ready, errs, after = o.ready(ready[:0], errs[:0], after[:0])
			for _, fn := range after {
				fn()
			}
			clear(after)
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

// ready moves the waiters of settled positions to ready, and what comes after the last ones to after. Release and
// AfterRelease call nothing themselves while there are any waiters.
func (o *order) ready(ready []waiter, errs []error, after []func()) ([]waiter, []error, []func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
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
	after = append(after, o.after...)
	clear(o.after)
	o.after = o.after[:0]
	o.settledSome()
	return ready, errs, after
}

// Backlog returns the bytes of appends that are not settled. It is cheap.
func (o *order) Backlog() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.backlog
}

// drain blocks until all appends are settled and all waiters are released.
func (o *order) drain(ctx context.Context) error {
	o.mu.Lock()
	if o.empty == nil {
		o.empty = make(chan struct{})
	}
	empty := o.empty
	o.settledSome()
	o.mu.Unlock()
	o.Push()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
