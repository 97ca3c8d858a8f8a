package persistence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	Unmarked  bool // there was no high-water mark when the journal was opened: a loss at the end would not be noticed

	Archived  uint64            // the last commit in the archive; 0 if there is none
	Elsewhere []archive.Segment // segments of the archive that are not here, and were not read

	Files   int     // that messages carry, and are whole
	Damaged []error // for each file that is damaged, FILE_DAMAGED; the log is whole nevertheless
}

// verifier reads the log, and says whether it is whole.
type verifier struct {
	o         *Options
	log       *slog.Logger
	reader    *reader
	directory *directory
	archived  *archived
	archiver  *archiver
	files     *files
	damaged   func(error) // fails the journal
	unmarked  bool
}

// Verify reads the log up to its last commit at the time of the call. It reads the archive and the journal. It checks
// each frame, its place in the chain and its events. It compares the index, the checkpoint of the archive and its
// record. It fails with CORRUPT_LOG, naming the first wrong commit. Then it reads the files. The journal keeps working.
func (v *verifier) Verify(ctx context.Context) (Report, error) {
	r, err := v.verify(ctx)
	if err == nil {
		r.Files, r.Damaged, err = v.files.CheckFiles(ctx)
	}
	_, archived := errors.AsType[*archiveDamage](err)
	if _, bad := errors.AsType[*unreadable](err); !bad && !archived && isUnusable(err) {
		v.damaged(err)
	}
	if err != nil {
		return Report{}, fmt.Errorf("verify the journal: %w", v.o.slow.named(err))
	}
	return r, nil
}

func (v *verifier) verify(ctx context.Context) (r Report, err error) {
	r.Unmarked = v.unmarked
	v.archiver.archiving.Lock() // the files of the archive stay
	m := v.archived.current()
	x := newIndex(v.o.Node)
	if m != nil {
		r.Archived = m.End.Number
		x, r.Elsewhere, err = v.verifyArchive(ctx, m)
	}
	begin := v.reader.begin()
	v.archiver.archiving.Unlock()
	if err != nil {
		return r, err
	}
	if m != nil && begin <= m.End.Number { // the archived commits that are still in the journal
		if err := v.verifyHeads(ctx, begin, m.End.Number); err != nil {
			return r, err
		}
	}
	end := v.directory.lastCommit()
	recorded := m == nil || !m.Recorded
	err = v.followAfter(ctx, v.archived.end(), end.Mark, events.DecodeCommit, func(c *events.Commit, _ []byte) error {
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
func (v *verifier) verifyArchive(ctx context.Context, m *archive.Manifest) (x *index, elsewhere []archive.Segment, err error) {
	c, err := archive.OpenCheckpoint(v.archived.path(archive.CheckpointName(m.End.Number)), m.Checkpoint)
	if err == nil {
		x, err = indexFrom(v.o.Node, c)
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		return nil, nil, &archiveDamage{parley.Refuse(parley.CorruptLog, "the archive's checkpoint after commit %d: %v", m.End.Number, err).
			WithHint("the next archiving makes it again from the segments, if they are here")}
	}
	y, p := newIndex(v.o.Node), newPace(v.directory)
	for _, s := range m.Segments {
		if !v.archiver.HasSegment(s) {
			elsewhere = append(elsewhere, s)
			continue
		}
		chain := &chain{node: v.o.Node, last: s.After}
		err := v.archived.each(ctx, s.First, s.Last, p.each(ctx, func(number uint64, bytes []byte) error {
			c, err := chain.follow(number, bytes)
			if err == nil {
				_, err = readSections(c)
			}
			if err == nil && len(elsewhere) == 0 {
				err = y.add(c)
			}
			return err
		}))
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
func (v *verifier) verifyHeads(ctx context.Context, first, last uint64) error {
	c := v.archived.chainFrom(first)
	return v.reader.each(ctx, first, last, func(number uint64, bytes []byte) error {
		_, err := c.followHead(number, bytes)
		if err == nil {
			err = c.confirm(v.archived.end())
		}
		return err
	})
}

// followAfter reads the log behind a mark up to end, decodes each frame, and checks that it is in its place and that end is in
// the log.
func (v *verifier) followAfter(ctx context.Context, after, end Mark, from frameDecoder, fn func(c *events.Commit, bytes []byte) error) error {
	c := &chain{node: v.o.Node, last: after}
	return v.reader.each(ctx, after.Number+1, end.Number, newPace(v.directory).each(ctx, func(number uint64, bytes []byte) error {
		commit, err := c.next(number, bytes, from)
		if err == nil {
			err = c.confirm(end)
		}
		if err != nil {
			return err
		}
		return fn(commit, bytes)
	}))
}

// The pace of the background check.
const (
	scrubChunk = 2_000 // commits
	scrubPause = 50 * time.Millisecond
)

// scrub checks, in the background, the commits of the stream up to last that the start did not check. Damage fails the
// journal.
func (v *verifier) scrub(ctx context.Context, last uint64) {
	c := v.archived.chainFrom(v.reader.begin())
	pause := time.NewTimer(0)
	defer pause.Stop()
	for c.last.Number < last {
		first := c.last.Number + 1
		if begin := v.reader.begin(); first < begin { // these have left the stream
			c, first = v.archived.chainFrom(begin), begin
		}
		err := v.reader.each(ctx, first, min(last, first+scrubChunk-1), func(number uint64, bytes []byte) error {
			_, err := c.followHead(number, bytes)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case isUnusable(err):
			v.damaged(err)
			return
		case err != nil:
			v.log.Debug("the background check waits", "error", err)
		}
		pause.Reset(scrubPause)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
	if last > 0 {
		v.log.Debug("the older part of the journal is whole", "commits", last)
	}
}
