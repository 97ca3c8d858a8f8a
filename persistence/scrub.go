package persistence

import (
	"context"
	"time"

	"parley"
)

// The pace of the background check.
const (
	scrubChunk = 2_000 // commits
	scrubPause = 50 * time.Millisecond
)

// scrub checks the commits from the first to last, which the start did not look at, in the background.
// Damage fails the journal.
func (j *Journal) scrub(ctx context.Context, last uint64) {
	c := chainFrom(j.o.Node, 1)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for c.last.number < last {
		first := c.last.number + 1
		err := j.way().each(ctx, first, min(last, first+scrubChunk-1), func(number uint64, bytes []byte) error {
			_, err := c.follow(number, bytes)
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
