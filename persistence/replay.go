package persistence

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/persistence/archive"
)

// Bounds of the part of the log that is checked before a journal opens. They hold even if the index snapshot covers it. After
// a regular stop, the files with that part are compared with what they were, and only commits in no group are read.
const (
	freshBytes   = 32 << 20
	defaultFresh = 50_000 // commits
)

// replay builds the index and checks the newest part of the log.
func (j *Journal) replay(ctx context.Context) error {
	l := j.connection()
	state, err := l.openStream(ctx, j.high.last)
	if err != nil {
		return err
	}
	if state, err = l.awaitEnd(ctx, state, j.high.last.Number); err != nil {
		return err
	}
	if err := j.archived.open(ctx, l, state); err != nil {
		return err
	}
	if err := l.begin(state, j.archived); err != nil {
		return err
	}
	j.bytes.Store(state.Bytes)
	last := state.LastSeq
	if j.verifier.unmarked = l.server != nil && j.high.last.Number == 0 && last > 0; j.verifier.unmarked {
		j.log.Warn("the high-water mark is missing, and is made again: whether the log had more commits cannot be known", "commits", last)
	}
	if mark := j.high.last; mark.Number > last {
		return lostBehind(j.wholeUpTo(ctx, l, last), mark.Number)
	}
	begin := l.first.Load()
	archiveEnd := j.archived.end()
	if archiveEnd.Number > last {
		return lostFrom(last+1, archiveEnd.Number, "missing or damaged", "archived")
	}
	if k := j.o.known; k != nil && k.at.Number == last && (last == 0 || l.is(ctx, k.at.Mark) == nil) {
		j.grouped.takeOver(k.newest, j.grouped.open(last))
		j.unchecked, j.o.known = k.unchecked, nil
		j.directory.reset(k.index, k.at)
		j.listSnapshots(ctx)
		return nil
	}
	x, seen, err := j.indexes.loadIndex(ctx, last)
	if err != nil {
		return err
	}
	fresh, ungrouped := freshFrom(j.o.freshCommits, state.Bytes, begin, last), j.grouped.open(last)+1
	if l.server != nil && j.o.known == nil && j.o.original == "" { // stopped in order: the newest files are as they were
		fresh = max(fresh, min(ungrouped, last))
	}
	first := max(begin, min(seen+1, fresh))
	f := folding{
		x: x, seen: seen, grouped: j.grouped, ungrouped: ungrouped,
		chain: j.archived.chainFrom(first), marks: []Mark{j.high.last, archiveEnd},
	}
	err = l.each(ctx, first, last, func(number uint64, bytes []byte) error {
		j.reader.garbage.took(len(bytes))
		return f.fold(number, bytes)
	})
	if err != nil {
		return fmt.Errorf("replay the journal: %w", err)
	}
	if err := j.checkMark(ctx, l, first); err != nil {
		return err
	}
	j.unchecked = first - 1
	j.directory.reset(x, f.at)
	j.listSnapshots(ctx)
	return nil
}

// wholeUpTo returns the last commit up to which the log can be read and is whole, for a log that lacks those behind last. It is asked
// once the journal is refused, and so may read all of the log.
func (j *Journal) wholeUpTo(ctx context.Context, l *link, last uint64) uint64 {
	whole := j.archived.end().Number
	first := max(l.first.Load(), whole+1)
	c := j.archived.chainFrom(first)
	_ = l.each(ctx, first, last, func(number uint64, bytes []byte) error { // its error is that of the commit behind whole
		_, err := c.follow(number, bytes)
		if err == nil {
			whole = number
		}
		return err
	})
	return whole
}

// folding folds the log into an index that has its beginning.
type folding struct {
	x         *index
	seen      uint64 // the last commit that the index has
	grouped   *grouped
	ungrouped uint64 // the first commit that is in no group
	chain     *chain
	marks     []Mark // commits that the log has to have
	at        head   // the last commit
}

func (f *folding) fold(number uint64, bytes []byte) error {
	follow := f.chain.follow
	switch {
	case number >= f.ungrouped:
		bytes = slices.Clone(bytes) // the commit stays in memory
	case number <= f.seen:
		follow = f.chain.followHead
	}
	commit, err := follow(number, bytes)
	if err != nil {
		return err
	}
	f.at = head{f.chain.last, commit.At}
	for _, m := range f.marks {
		if err := f.chain.confirm(m); err != nil {
			return err
		}
	}
	if number >= f.ungrouped {
		f.grouped.add(commit, len(bytes), f.chain.last.Hash)
	}
	if number <= f.seen {
		return nil
	}
	if err := f.x.add(commit); err != nil {
		return lost(number, "%v", err)
	}
	return nil
}

// freshFrom returns the first of the newest commits, which are always checked: most at most. The stream has bytes of the
// commits from begin to last.
func freshFrom(most, bytes, begin, last uint64) uint64 {
	if last < begin {
		return begin
	}
	n := min(most, freshBytes/max(bytes/(last-begin+1), 1)+1)
	if n > last-begin {
		return begin
	}
	return last - n + 1
}

// checkMark checks the marked commit if the replay began after it.
func (j *Journal) checkMark(ctx context.Context, l *link, first uint64) error {
	mark := j.high.last
	if mark.Number < l.first.Load() || mark.Number >= first {
		return nil
	}
	bytes, err := l.fetchSurely(ctx, mark.Number)
	if err != nil {
		return err
	}
	var hash events.Hash
	if _, hash, err = decode(mark.Number, bytes); err != nil {
		return err
	}
	if hash != mark.Hash {
		return lost(mark.Number, "is not the one that was durable")
	}
	return nil
}

// chain checks a sequence of frames: each has the next number, the node's ID, and the hash of the frame before.
type chain struct {
	node capabilities.NodeID
	last Mark
	open bool // the hash before the next frame is unknown, and any is accepted
}

// chainFrom returns the chain of the log from a commit on. The hash before it is only known for the first commit.
func chainFrom(node capabilities.NodeID, first uint64) *chain {
	return &chain{node: node, last: Mark{Number: first - 1}, open: first > 1}
}

// follow checks the next frame and returns its commit.
func (c *chain) follow(number uint64, bytes []byte) (*events.Commit, error) {
	return c.next(number, bytes, events.DecodeCommit)
}

// followHead is follow without the sections of the commit.
func (c *chain) followHead(number uint64, bytes []byte) (*events.Commit, error) {
	return c.next(number, bytes, events.DecodeHead)
}

// frameDecoder decodes a frame as DecodeCommit does.
type frameDecoder func(frame []byte) (*events.Commit, events.Hash, error)

func (c *chain) next(number uint64, bytes []byte, from frameDecoder) (*events.Commit, error) {
	want := c.last.Number + 1
	if number != want {
		return nil, lost(want, "is missing")
	}
	commit, hash, err := decodeAs(number, bytes, from)
	if err != nil {
		return nil, err
	}
	switch {
	case commit.Node != c.node:
		return nil, lost(number, "is of node %s", commit.Node)
	case commit.Prev != c.last.Hash && !c.open:
		return nil, lost(number, "does not follow the one before it: one of the two is not what was written")
	}
	c.last, c.open = Mark{Number: number, Hash: hash}, false
	return commit, nil
}

// newer returns NEWER_LOG for what another version of the program has written.
func newer(what string, err error) *parley.Error {
	return parley.Refuse(parley.NewerLog, "%s: %v", what, err).WithHint("start the version that wrote it, or a newer one (parley --version shows this one's); nothing was changed")
}

// decode decodes the frame that is stored under a number.
func decode(number uint64, bytes []byte) (*events.Commit, events.Hash, error) {
	return decodeAs(number, bytes, events.DecodeCommit)
}

func decodeAs(number uint64, bytes []byte, from frameDecoder) (*events.Commit, events.Hash, error) {
	commit, hash, err := from(bytes)
	if unknown, ok := errors.AsType[*events.UnknownError](err); ok {
		return nil, hash, newer(fmt.Sprintf("commit %d", number), fmt.Errorf("%w: %w", archive.ErrFormat, unknown))
	}
	if err != nil {
		return nil, hash, lost(number, "is damaged: %v", err)
	}
	if commit.Number != number {
		return nil, hash, lost(number, "is stored where commit %d should be", commit.Number)
	}
	return commit, hash, nil
}

// confirm checks a mark when the chain has reached its commit.
func (c *chain) confirm(m Mark) error {
	if c.last.Number == m.Number && c.last.Hash != m.Hash {
		return lost(m.Number, "is not the one that was durable")
	}
	return nil
}
