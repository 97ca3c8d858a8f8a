package persistence

import (
	"context"
	"fmt"

	"parley/events"
)

// What of the log is checked before a journal opens, though the index snapshot covers it.
const (
	freshBytes   = 32 << 20
	freshCommits = 50_000
)

// replay builds the index and checks the newest part of the log. It returns the last commit that it has
// not looked at: 0 if it has seen them all.
func (j *Journal) replay(ctx context.Context) (unchecked uint64, err error) {
	l := j.way()
	state, err := l.openStream(ctx, j.high.last)
	if err != nil {
		return 0, err
	}
	last := state.LastSeq
	if mark := j.high.last; mark.number > last {
		return 0, lost(last+1, "is missing, and so are those to %d, which were durable", mark.number)
	}
	x, seen := j.loadIndex(ctx, last)
	first := min(seen+1, freshFrom(state.Bytes, last))
	c := chainFrom(j.o.Node, first)
	var at head
	err = l.each(ctx, first, last, func(number uint64, bytes []byte) error {
		j.garbage.took(len(bytes))
		commit, err := c.follow(number, bytes)
		if err != nil {
			return err
		}
		at = head{c.last, commit.At}
		if err := c.confirm(j.high.last); err != nil {
			return err
		}
		if number <= seen {
			return nil
		}
		if err := x.add(commit); err != nil {
			return lost(number, "%v", err)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("replay the journal: %w", err)
	}
	if err := j.checkMark(ctx, l, first); err != nil {
		return 0, err
	}
	j.durable.index, j.durable.head = x, at
	j.listSnapshots(ctx)
	return first - 1, nil
}

// freshFrom gives the first of the newest commits that are always checked.
func freshFrom(bytes, last uint64) uint64 {
	if last == 0 {
		return 1
	}
	n := min(freshCommits, freshBytes/max(bytes/last, 1)+1)
	if n >= last {
		return 1
	}
	return last - n + 1
}

// checkMark looks at the marked commit if the replay began after it.
func (j *Journal) checkMark(ctx context.Context, l *link, first uint64) error {
	mark := j.high.last
	if mark.number == 0 || mark.number >= first {
		return nil
	}
	bytes, err := l.fetchSurely(ctx, mark.number)
	if err != nil {
		return err
	}
	var hash events.Hash
	if _, hash, err = decode(mark.number, bytes); err != nil {
		return err
	}
	if hash != mark.hash {
		return lost(mark.number, "is not the one that was durable")
	}
	return nil
}
