package persistence

import (
	"context"
	"time"
)

// Stats are a journal's figures.
type Stats struct {
	Commits    uint64
	Sections   uint64
	Events     uint64
	Mailboxes  int
	LastCommit uint64
	Bytes      uint64 // of the stream; 0 if the server cannot be asked
	Backlog    int    // bytes appended and not yet durable

	Flushing time.Duration // how long the disk has been at the flush on its way; 0 if there is none
}

// Stats gives the journal's figures as they are now.
func (j *Journal) Stats() Stats {
	j.durable.RLock()
	x := j.durable.index
	n := j.durable.head.number
	s := Stats{Commits: n, LastCommit: n, Sections: x.sections, Events: x.events, Mailboxes: len(x.entries)}
	j.durable.RUnlock()
	j.order.Lock()
	s.Backlog = j.order.backlog
	j.order.Unlock()
	s.Flushing = j.Flushing()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if st, err := j.way().js.Stream(ctx, j.o.streamName()); err == nil {
		s.Bytes = st.CachedInfo().State.Bytes
	}
	return s
}

// Flushing returns how long the disk has been at the flush of a commit that is on its way: 0 if there is none, or if the
// server is an external one. It is cheap.
func (j *Journal) Flushing() time.Duration {
	if blocks := j.way().blocks; blocks != nil {
		return blocks.since()
	}
	return 0
}

// Backlog is the bytes that were appended and are not yet settled. It is cheap.
func (j *Journal) Backlog() int {
	j.order.Lock()
	defer j.order.Unlock()
	return j.order.backlog
}
