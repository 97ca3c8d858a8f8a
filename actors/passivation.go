package actors

import (
	"container/heap"
	"time"

	"parley/persistence"
)

// passivate stops the actors of mailboxes that have empty queues, were not used since a time, and whose appends are all
// durable. It stops none while the journal has failed, because each has to recover lost appends first. It looks only at
// mailboxes that were not used since that time when it last looked at them.
//
// The scheduler calls it. The actor library's receive timeout is not used: its timer changes the actor's context without
// a lock, and cannot see whether a message is on its way to the queue.
func (r *registry) passivate(before time.Time) {
	if r.node.journal.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var later []idleSince
	for len(r.idle) > 0 && r.idle[0].used <= before.UnixNano() {
		s := heap.Pop(&r.idle).(idleSince).reg
		if used := s.used.Load(); used > before.UnixNano() || s.queued.Load() != 0 || s.acks.any() || !r.settled(s) {
			later = append(later, idleSince{s, used})
			continue
		}
		delete(r.registrations, s.id)
		r.tree.stop(s.pid)
	}
	for _, s := range later {
		heap.Push(&r.idle, s)
	}
}

// settled reports whether all appends of a mailbox are durable, and its state equals the log.
func (r *registry) settled(s *registration) bool {
	return !s.doubtful.Load() && r.node.journal.Durable(persistence.Position(s.last.Load()))
}

// idleSince is a registration with the time of its last use, as it was when the registry last looked.
type idleSince struct {
	reg  *registration
	used int64 // in unix nanoseconds
}

// idleHeap has the registration that was not used for the longest on top.
type idleHeap []idleSince

func (h idleHeap) Len() int           { return len(h) }
func (h idleHeap) Less(i, j int) bool { return h[i].used < h[j].used }
func (h idleHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *idleHeap) Push(x any)        { *h = append(*h, x.(idleSince)) }
func (h *idleHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = idleSince{}
	*h = old[:len(old)-1]
	return last
}
