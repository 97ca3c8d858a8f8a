package persistence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/events"
)

// Report describes a log that Verify found whole.
type Report struct {
	Commits   uint64
	Events    uint64
	Mailboxes int
}

// Verify reads the log up to its last commit at the time of the call. It checks each frame, its place in the chain and
// its events, and compares the index. It fails with CORRUPT_LOG, naming the first wrong commit. The journal keeps
// working.
func (j *Journal) Verify(ctx context.Context) (Report, error) {
	x := newIndex(j.o.Node)
	end := j.lastCommit()
	err := j.follow(ctx, end.mark, func(c *events.Commit, _ []byte) error {
		if err := x.add(c); err != nil {
			return lost(c.Number, "%v", err)
		}
		for i := range c.Sections {
			if _, err := c.Sections[i].Events(); err != nil {
				return cannotRead(c.Number, &c.Sections[i], err)
			}
		}
		return nil
	})
	if _, bad := errors.AsType[*unreadable](err); !bad && parley.CodeOf(err) == parley.CorruptLog {
		j.fail(err)
	}
	r := Report{Commits: end.number, Events: x.events, Mailboxes: len(x.order)}
	if err != nil {
		return Report{}, fmt.Errorf("verify the journal: %w", err)
	}
	return r, nil
}

// follow reads the log from the first commit to end, and checks that end is in it.
func (j *Journal) follow(ctx context.Context, end mark, fn func(c *events.Commit, bytes []byte) error) error {
	return j.followAfter(ctx, mark{}, end, fn)
}

// followAfter is follow for the commits behind a mark.
func (j *Journal) followAfter(ctx context.Context, after, end mark, fn func(c *events.Commit, bytes []byte) error) error {
	c := &chain{node: j.o.Node, last: after}
	return j.connection().each(ctx, after.number+1, end.number, func(number uint64, bytes []byte) error {
		commit, err := c.follow(number, bytes)
		if err == nil {
			err = c.confirm(end)
		}
		if err != nil {
			return err
		}
		return fn(commit, bytes)
	})
}

// The pace of the background check.
const (
	scrubChunk = 2_000 // commits
	scrubPause = 50 * time.Millisecond
)

// scrub checks, in the background, the commits up to last that the start did not check. Damage fails the journal.
func (j *Journal) scrub(ctx context.Context, last uint64) {
	c := chainFrom(j.o.Node, 1)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for c.last.number < last {
		first := c.last.number + 1
		err := j.connection().each(ctx, first, min(last, first+scrubChunk-1), func(number uint64, bytes []byte) error {
			_, err := c.followHead(number, bytes)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case parley.CodeOf(err) == parley.CorruptLog:
			j.fail(err)
			return
		case err != nil:
			j.log.Debug("the background check waits", "error", err)
		}
		pause.Reset(scrubPause)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
	if last > 0 {
		j.log.Debug("the older part of the journal is whole", "commits", last)
	}
}
