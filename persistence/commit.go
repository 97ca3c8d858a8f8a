package persistence

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"

	"parley/capabilities"
	"parley/events"
)

// committer makes commits of what was appended, one after another, until ctx ends.
func (j *Journal) committer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.wake:
		}
		j.linger(j.o.Linger, math.MaxInt, j.o.Busy)
		for {
			if j.commitNext(ctx) == 0 {
				break
			}
		}
	}
}

// linger lets those append who are about to: after a pause whom the first append woke, after a commit whom
// it released, which is when no more than those are expected. A timer would be too coarse.
func (j *Journal) linger(atMost time.Duration, expected int, busy func() bool) {
	for end := time.Now().Add(atMost); int(j.order.waits.Load()) < expected && time.Now().Before(end); {
		if busy != nil && !busy() {
			return
		}
		runtime.Gosched()
	}
}

// commitNext stores what has gathered, as much as fits a frame, and gives the number of appends in it.
func (j *Journal) commitNext(ctx context.Context) int {
	j.busy.Lock()
	defer j.busy.Unlock()
	batch := j.order.take(j.o.MaxFrame)
	if batch == nil {
		return 0
	}
	if hasSections(batch) {
		f, err := j.encode(batch)
		if err == nil {
			err = j.store(ctx, f)
		}
		if err != nil {
			j.fail(err)
			return 0
		}
	}
	j.order.stored(batch)
	return len(batch)
}

// hasSections reports whether there is anything to store in a batch: not if all of it was lost when it was appended.
func hasSections(batch []appended) bool {
	return slices.ContainsFunc(batch, func(a appended) bool { return len(a.sections) > 0 })
}

// roomMost bounds the room that is kept for the next frame.
const roomMost = 1 << 20

// encode makes the next commit of a batch.
func (j *Journal) encode(batch []appended) (*frame, error) {
	head := j.lastCommit()
	f := &frame{Commit: events.Commit{
		Number: head.number + 1,
		Prev:   head.hash,
		At:     max(capabilities.At(j.o.Clock()), head.at),
		Node:   j.o.Node,
	}}
	n := 0
	for i := range batch {
		n += len(batch[i].sections)
	}
	f.Sections = make([]events.Section, 0, n)
	for i := range batch {
		f.Sections = append(f.Sections, batch[i].sections...)
	}
	if err := j.fits(&f.Commit); err != nil {
		return nil, err
	}
	room := j.room
	j.room = nil // until keep gives it back
	var err error
	if f.bytes, f.hash, err = f.Encode(room); err != nil {
		return nil, readOnly("the commit cannot be encoded", err)
	}
	return f, nil
}

// keep makes a stored commit part of what readers see. The caller has busy.
func (j *Journal) keep(f *frame) error {
	j.doubts = nil
	if j.room = f.bytes; cap(j.room) > roomMost {
		j.room = nil
	}
	j.durable.Lock()
	err := j.durable.index.add(&f.Commit)
	if err == nil {
		j.durable.head = head{mark{f.Number, f.hash}, f.At}
	}
	j.durable.Unlock()
	if err != nil {
		return err
	}
	j.frames.put(&f.Commit, len(f.bytes), f.hash)
	nudge(j.marks)
	if f.Number%indexEvery == 0 {
		nudge(j.pages)
	}
	return nil
}
