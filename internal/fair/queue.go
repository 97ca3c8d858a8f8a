package fair

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Queue shares places among flows. Its methods may be called at the same time.
type Queue[K comparable] struct {
	places, each int

	mu      sync.Mutex
	free    int
	virtual time.Duration // the highest tag with which a flow has got a place
	flows   map[K]*flow   // that have a place, wait for one, or have a tag after the virtual time
	waiting []*flow
}

// flow is one flow of a Queue.
type flow struct {
	tag     time.Duration
	expects time.Duration // what its next piece of work costs, by those before
	taken   int           // places
	waiters []*waiter     // the one that came first is first
}

type waiter struct {
	admitted chan struct{} // closed when it has a place
	place    place
}

// place is a place that a flow has got.
type place struct {
	flow    *flow
	charged time.Duration // already
	since   time.Time
}

// Place is a place of a Queue. It is left once.
type Place[K comparable] struct {
	place
	queue *Queue[K]
}

// New returns a Queue of so many places, of which each flow gets so many at most. Both are positive.
func New[K comparable](places, each int) *Queue[K] {
	return &Queue[K]{places: places, each: each, free: places, flows: map[K]*flow{}}
}

// Try returns a place if there is one now.
func (q *Queue[K]) Try(k K) (Place[K], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := q.flow(k)
	if q.free == 0 || f.taken == q.each {
		q.forget(k, f)
		return Place[K]{}, false
	}
	return Place[K]{q.admit(f), q}, true
}

// Enter blocks until the flow has a place, or ctx ends. It then returns the cause.
func (q *Queue[K]) Enter(ctx context.Context, k K) (Place[K], error) {
	q.mu.Lock()
	f := q.flow(k)
	if q.free > 0 && f.taken < q.each {
		defer q.mu.Unlock()
		return Place[K]{q.admit(f), q}, nil
	}
	w := q.wait(f)
	q.mu.Unlock()
	select {
	case <-w.admitted:
		return Place[K]{w.place, q}, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(f.waiters, w); i >= 0 {
		q.drop(f, i)
		q.forget(k, f)
	} else { // it was admitted meanwhile
		q.leave(w.place, 0)
	}
	return Place[K]{}, context.Cause(ctx)
}

// Taken returns the time since the flow got the place.
func (p Place[K]) Taken() time.Duration { return time.Since(p.since) }

// Leave gives the place back, and charges its flow for the time since it got it.
func (p Place[K]) Leave() {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.queue.leave(p.place, time.Since(p.since))
}

// flow returns a flow. One that had no work starts at the virtual time.
func (q *Queue[K]) flow(k K) *flow {
	f := q.flows[k]
	if f == nil {
		f = &flow{}
		q.flows[k] = f
	}
	if f.taken == 0 && len(f.waiters) == 0 {
		f.tag = max(f.tag, q.virtual)
	}
	return f
}

// wait adds a waiter of a flow.
func (q *Queue[K]) wait(f *flow) *waiter {
	w := &waiter{admitted: make(chan struct{})}
	if f.waiters = append(f.waiters, w); len(f.waiters) == 1 {
		q.waiting = append(q.waiting, f)
	}
	return w
}

// forget drops a flow that has nothing to remember.
func (q *Queue[K]) forget(k K, f *flow) {
	if f.taken == 0 && len(f.waiters) == 0 && f.tag <= q.virtual {
		delete(q.flows, k)
	}
}

// admit gives a flow a place, and charges it for what the work will probably cost. Else a flow would get several
// places before its first piece of work is charged.
func (q *Queue[K]) admit(f *flow) place {
	q.virtual = max(q.virtual, f.tag)
	q.free--
	f.taken++
	f.tag += f.expects
	return place{f, f.expects, time.Now()}
}

func (q *Queue[K]) leave(p place, cost time.Duration) {
	p.flow.tag += cost - p.charged
	p.flow.expects += (cost - p.flow.expects) / 4
	p.flow.taken--
	q.free++
	for q.free > 0 {
		f := q.next()
		if f == nil {
			break
		}
		w := f.waiters[0]
		q.drop(f, 0)
		w.place = q.admit(f)
		close(w.admitted)
	}
	if q.free == q.places { // what comes next starts anew
		q.virtual = 0
		clear(q.flows)
	} else if len(q.flows) > 2*(q.places+len(q.waiting))+flowsKept {
		for k, f := range q.flows {
			q.forget(k, f)
		}
	}
}

// flowsKept is how many flows without work may be in memory before those with nothing to remember are dropped.
const flowsKept = 64

// next returns the flow that is to get a place, or nil.
func (q *Queue[K]) next() (first *flow) {
	for _, f := range q.waiting {
		if f.taken < q.each && (first == nil || f.tag < first.tag) {
			first = f
		}
	}
	return first
}

// drop removes a waiter of a flow.
func (q *Queue[K]) drop(f *flow, i int) {
	if f.waiters = slices.Delete(f.waiters, i, i+1); len(f.waiters) == 0 {
		q.waiting = slices.DeleteFunc(q.waiting, func(o *flow) bool { return o == f })
	}
}
