package sim

import (
	"slices"

	"parley"
	"parley/events"
)

// position is a place in the order of a journal's appends, from 1. It is valid until its node crashes.
type position uint64

// errFull is the error of a journal that cannot write.
var errFull = parley.Refuse(parley.ReadOnly, "the disk is full")

// errCrashed is the error of a message that crashed its mailbox.
var errCrashed = parley.Refuse(parley.Internal, "the mailbox crashed")

// appended is one append: the section of a mailbox.
type appended struct {
	mailbox *mailboxActor
	section events.Section
}

// journal is the log of a node in memory. Appends wait until begin takes some of them as a commit, and end stores it.
// What was stored before a crash is in the mailboxes' logs; everything else is gone. The rules are those of
// persistence.Journal: a failure loses all appends that are not settled. A commit whose result was unknown may appear
// when the journal is opened again.
type journal struct {
	next    position    // the last of all appends
	settled position    // all to here are durable or lost
	spans   [][2]uint64 // lost positions among the settled, first and last
	failure error
	times   uint64 // number of failures
	queued  []appended
	taken   []appended // the commit under way
	doubt   []appended // a commit that was stored although the journal failed
	waiting []waiter   // by position
}

type waiter struct {
	pos position
	fn  func(error)
}

// append adds a section that was decided when the journal had failed so many times.
func (j *journal) append(failures uint64, a appended) position {
	j.next++
	switch {
	case j.failure != nil:
		return j.next
	case failures != j.times:
		j.spans = append(j.spans, [2]uint64{uint64(j.next), uint64(j.next)})
		a = appended{}
	}
	j.queued = append(j.queued, a)
	return j.next
}

// release calls fn when everything up to pos is settled, with an error if pos is lost.
func (j *journal) release(pos position, fn func(error)) {
	at := len(j.waiting)
	for at > 0 && j.waiting[at-1].pos > pos {
		at--
	}
	j.waiting = slices.Insert(j.waiting, at, waiter{pos, fn})
}

// settle calls the waiters of settled positions, in their order, and reports whether there were any.
func (j *journal) settle() bool {
	n := 0
	for n < len(j.waiting) && !j.pending(j.waiting[n].pos) {
		n++
	}
	ready := slices.Clone(j.waiting[:n])
	j.waiting = slices.Delete(j.waiting, 0, n)
	for _, w := range ready {
		var err error
		if j.lost(w.pos) {
			err = errFull
		}
		w.fn(err)
	}
	return n > 0
}

func (j *journal) pending(pos position) bool { return pos > j.settled && j.failure == nil }

// lost reports whether pos is lost.
func (j *journal) lost(pos position) bool {
	for _, s := range j.spans {
		if s[0] <= uint64(pos) && uint64(pos) <= s[1] {
			return true
		}
	}
	return pos > j.settled && j.failure != nil
}

// begin takes some appends as the next commit. It reports whether there were any.
func (j *journal) begin(most int) bool {
	if j.failure != nil || len(j.taken) > 0 || len(j.queued) == 0 {
		return false
	}
	n := min(len(j.queued), most)
	j.taken, j.queued = j.queued[:n:n], j.queued[n:]
	return true
}

// end settles the commit under way, which store writes down.
func (j *journal) end(store func([]appended)) {
	store(j.taken)
	j.settled += position(len(j.taken))
	j.taken = nil
}

// fail loses everything that is not settled. With stored, the commit under way is on disk all the same.
func (j *journal) fail(stored bool) {
	if j.failure != nil {
		return
	}
	j.times++
	j.failure = errFull
	if stored {
		j.doubt = j.taken
	}
	j.queued, j.taken = nil, nil
}

// reopen accepts appends again. Store gets a commit that was stored although the journal had failed.
func (j *journal) reopen(store func([]appended)) {
	if len(j.doubt) > 0 {
		store(j.doubt)
		j.doubt = nil
	}
	if j.next > j.settled {
		j.spans = append(j.spans, [2]uint64{uint64(j.settled) + 1, uint64(j.next)})
		j.settled = j.next
	}
	j.failure = nil
}

// crash returns the commit that may be on disk although nobody was told.
func (j *journal) crash() []appended {
	if j.failure != nil {
		return j.doubt
	}
	return j.taken
}
