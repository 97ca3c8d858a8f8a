package persistence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/events"
	"parley/persistence/archive"
)

// Report describes a log that Verify found whole.
type Report struct {
	Commits   uint64
	Events    uint64
	Mailboxes int

	Archived  uint64            // the last commit in the archive; 0 if there is none
	Elsewhere []archive.Segment // segments of the archive that are not here, and were not read
}

// Verify reads the log up to its last commit at the time of the call, from the archive and from the journal. It checks
// each frame, its place in the chain and its events, compares the index, the checkpoint of the archive and its record.
// It fails with CORRUPT_LOG, naming the first wrong commit. The journal keeps working.
func (j *Journal) Verify(ctx context.Context) (Report, error) {
	r, err := j.verify(ctx)
	_, archived := errors.AsType[*archiveDamage](err)
	if _, bad := errors.AsType[*unreadable](err); !bad && !archived && parley.CodeOf(err) == parley.CorruptLog {
		j.fail(err)
	}
	if err != nil {
		return Report{}, fmt.Errorf("verify the journal: %w", err)
	}
	return r, nil
}

func (j *Journal) verify(ctx context.Context) (r Report, err error) {
	j.archiving.Lock() // the files of the archive stay
	m := j.archived.current()
	x := newIndex(j.o.Node)
	if m != nil {
		r.Archived = m.End.Number
		j.archived.keepManifest(m)
		x, r.Elsewhere, err = j.verifyArchive(ctx, m)
	}
	begin := j.begin()
	j.archiving.Unlock()
	if err != nil {
		return r, err
	}
	if m != nil && begin <= m.End.Number { // the archived commits that are still in the journal
		if err := j.verifyHeads(ctx, begin, m.End.Number); err != nil {
			return r, err
		}
	}
	end := j.lastCommit()
	recorded := m == nil || !m.Recorded
	err = j.followAfter(ctx, j.archived.end(), end.Mark, func(c *events.Commit, _ []byte) error {
		if err := x.add(c); err != nil {
			return lost(c.Number, "%v", err)
		}
		found, err := readSections(c)
		if found != nil && m != nil && found.Last == m.End && found.Checkpoint == m.Checkpoint {
			recorded = true // a later one is of a node from whose backup this one was restored
		}
		return err
	})
	if err == nil && !recorded {
		err = parley.Refuse(parley.CorruptLog, "the record of the archive up to commit %d is not in the journal", m.End.Number).
			WithHint("put the folder archive back from a copy that is as old as the journal")
	}
	r.Commits, r.Events, r.Mailboxes = end.Number, x.events, len(x.order)
	return r, err
}

// readSections decodes the events of a commit. It returns the last record of an archive among them.
func readSections(c *events.Commit) (record *events.JournalArchived, err error) {
	for i := range c.Sections {
		evs, err := c.Sections[i].Events()
		if err != nil {
			return nil, cannotRead(c.Number, &c.Sections[i], err)
		}
		for _, e := range evs {
			if r, ok := e.Event.(*events.JournalArchived); ok {
				record = r
			}
		}
	}
	return record, nil
}

// verifyArchive checks the checkpoint, and all segments that are here. It returns the index after the archive, and the
// segments that are not here.
func (j *Journal) verifyArchive(ctx context.Context, m *archive.Manifest) (x *index, elsewhere []archive.Segment, err error) {
	c, err := archive.OpenCheckpoint(j.archived.path(archive.CheckpointName(m.End.Number)), m.Checkpoint)
	if err == nil {
		x, err = indexFrom(j.o.Node, c)
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		return nil, nil, &archiveDamage{parley.Refuse(parley.CorruptLog, "the archive's checkpoint after commit %d: %v", m.End.Number, err).
			WithHint("the next archiving makes it again from the segments, if they are here")}
	}
	y := newIndex(j.o.Node)
	for _, s := range m.Segments {
		if !j.HasSegment(s) {
			elsewhere = append(elsewhere, s)
			continue
		}
		chain := &chain{node: j.o.Node, last: s.After}
		err := j.archived.each(ctx, s.First, s.Last, func(number uint64, bytes []byte) error {
			c, err := chain.follow(number, bytes)
			if err == nil {
				_, err = readSections(c)
			}
			if err == nil && len(elsewhere) == 0 {
				err = y.add(c)
			}
			return err
		})
		if e, ok := errors.AsType[*parley.Error](err); ok && e.Code == parley.CorruptLog {
			err = &archiveDamage{e}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if len(elsewhere) == 0 && !x.equal(y) {
		return nil, nil, &archiveDamage{parley.Refuse(parley.CorruptLog, "the archive's checkpoint after commit %d is not of its segments", m.End.Number).
			WithHint("restore a backup into a new folder")}
	}
	return x, elsewhere, nil
}

// verifyHeads checks the chain of archived commits that have not left the journal.
func (j *Journal) verifyHeads(ctx context.Context, first, last uint64) error {
	c := j.archived.chainFrom(first)
	return j.each(ctx, first, last, func(number uint64, bytes []byte) error {
		_, err := c.followHead(number, bytes)
		if err == nil {
			err = c.confirm(j.archived.end())
		}
		return err
	})
}

// followAfter reads the log behind a mark up to end, and checks that end is in it.
func (j *Journal) followAfter(ctx context.Context, after, end Mark, fn func(c *events.Commit, bytes []byte) error) error {
	c := &chain{node: j.o.Node, last: after}
	return j.each(ctx, after.Number+1, end.Number, func(number uint64, bytes []byte) error {
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

// scrub checks, in the background, the commits of the stream up to last that the start did not check. Damage fails the
// journal.
func (j *Journal) scrub(ctx context.Context, last uint64) {
	c := j.archived.chainFrom(j.begin())
	pause := time.NewTimer(0)
	defer pause.Stop()
	for c.last.Number < last {
		first := c.last.Number + 1
		if begin := j.begin(); first < begin { // these have left the stream
			c, first = j.archived.chainFrom(begin), begin
		}
		err := j.scrubBlock(c, last)
		if err == nil && c.last.Number < first {
			err = j.each(ctx, first, min(last, first+scrubChunk-1), func(number uint64, bytes []byte) error {
				_, err := c.followHead(number, bytes)
				return err
			})
		}
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

// scrubBlock checks the next commits up to last as far as they are in one block, without the server. The server takes
// several times as long, and the messages on their way from it are memory. It stops at a record that is not whole or not
// the next, and leaves it to the server.
func (j *Journal) scrubBlock(c *chain, last uint64) error {
	l, release := j.hold()
	defer release()
	if l.old == nil || c.last.Number+1 < l.first.Load() {
		return nil
	}
	i := l.old.blockWith(c.last.Number + 1)
	if i < 0 {
		return nil
	}
	_, err := l.old.eachFrame(i, j.o.streamName(), func(r record) error {
		switch next := c.last.Number + 1; {
		case r.number < next:
			return nil
		case r.number > next || next > last:
			return errEnd
		}
		_, err := c.followHead(r.number, r.frame)
		return err
	})
	if parley.CodeOf(err) == parley.CorruptLog {
		return err
	}
	return nil
}
