package persistence

import (
	"errors"

	"parley"
)

// errFenced is why a journal never writes again: another process does.
var errFenced = parley.Refuse(parley.ReadOnly, "another process writes as this node: this one never will again").
	WithHint("one node runs in one place at a time; stop the other, then start this one again")

// errClosed is why a closed journal takes nothing.
var errClosed = parley.Refuse(parley.ReadOnly, "the journal is closed")

// fail loses all that is not settled. The first failure stands, but for one that is permanent.
func (j *Journal) fail(err error) {
	o := &j.order
	o.Lock()
	defer o.Unlock()
	if o.failure != nil && !(permanent(err) && !permanent(o.failure)) {
		return
	}
	if o.failure == nil {
		o.times++
	}
	o.failure = err
	o.failed.Store(true)
	o.gathered, o.taken, o.backlog = nil, 0, 0
	o.waits.Store(0)
	close(o.changed)
	o.changed = make(chan struct{})
	o.settledSome()
	switch {
	case isExactly(err, errClosed):
	case permanent(err):
		j.log.Error("the journal has stopped for good", "error", err)
	default:
		j.log.Error("the journal is read-only", "error", err)
	}
}

// recovered takes appends again, unless the journal has stopped for good meanwhile. What was lost stays lost.
func (o *order) recovered() error {
	o.Lock()
	defer o.Unlock()
	if permanent(o.failure) {
		return o.failure
	}
	if o.next > o.settled {
		o.spans = append(o.spans, span{o.settled + 1, o.next, o.failure})
		o.settled = o.next
	}
	o.failure = nil
	close(o.changed)
	o.changed = make(chan struct{})
	o.settledSome()
	return nil
}

// permanent reports whether no Reopen helps.
func permanent(err error) bool {
	return isExactly(err, errFenced) || isExactly(err, errClosed) || parley.CodeOf(err) == parley.CorruptLog
}

// isExactly tells apart errors of one code, which errors.Is does not.
func isExactly(err error, want *parley.Error) bool {
	e, ok := errors.AsType[*parley.Error](err)
	return ok && e == want
}

// Err is nil while the journal works: READ_ONLY while it is failed, fenced or closed, CORRUPT_LOG once
// damage was found.
func (j *Journal) Err() error {
	if !j.order.failed.Load() {
		return nil
	}
	j.order.Lock()
	defer j.order.Unlock()
	return j.order.failure
}

// Failures returns how often the journal has failed. It grows with a failure, before anyone is told of it.
func (j *Journal) Failures() uint64 {
	if !j.order.failed.Load() {
		return 0
	}
	j.order.Lock()
	defer j.order.Unlock()
	return j.order.times
}

// Fenced reports whether another process has written as this node. It is permanent.
func (j *Journal) Fenced() bool { return isExactly(j.Err(), errFenced) }

// Changed gives a channel that is closed the next time that Err changes. Ask for it before Err.
func (j *Journal) Changed() <-chan struct{} {
	j.order.Lock()
	defer j.order.Unlock()
	return j.order.changed
}

// readOnly is the failure of a step.
func readOnly(doing string, err error) error {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e
	}
	return parley.Refuse(parley.ReadOnly, "%s: %v", doing, err).
		WithHint("the node takes mail again as soon as its journal can be written; ask again then to see what became of this")
}
