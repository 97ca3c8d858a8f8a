package persistence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	"os"
	"sort"
	"strings"
	"sync"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/persistence/archive"
)

// Checkpointer returns the encoded state of a mailbox after the events of all batches, oldest first. It begins with the
// state before them, which is nil if there is none. The same events give the same bytes. It fails with the error of a
// batch.
type Checkpointer func(ctx context.Context, mailbox capabilities.ID, before []byte, batches iter.Seq2[[]Entry, error]) (state []byte, err error)

// archiver moves the beginning of the log out of the stream.
type archiver struct {
	o         *Options
	log       *slog.Logger
	archived  *archived
	reader    *reader
	directory *directory

	line    func() *link
	err     func() error                                // why the journal has failed
	damaged func(error)                                 // fails the journal
	cut     func(ctx context.Context, end uint64) error // removes the commits up to one from the stream

	archiving sync.Mutex // held while an archive is made and cut
	task      *besides   // the archive that is made, for who waits for the disk; guarded by archiving
}

// Archive returns the present archive. It may be one that PrepareArchive has written and that is not recorded yet.
func (a *archiver) Archive() Archive { return archiveOf(a.archived.current()) }

// foldAtOnce is the number of events of a batch of a Checkpointer, if there are so many.
const foldAtOnce = 4096

// PrepareArchive writes the segments and the checkpoint of the commits before a time: some at a time, and never the newest.
// Nothing leaves the journal yet: the caller records the result in the journal, calls FinishArchive, and then calls
// PrepareArchive again. It returns the zero Archive if there is nothing more to archive. After an error, or if the process
// ends, the journal is as it was.
func (a *archiver) PrepareArchive(ctx context.Context, before capabilities.Time, state Checkpointer) (made Archive, err error) {
	a.archiving.Lock()
	defer a.archiving.Unlock()
	defer a.watch(&err)()
	m := a.archived.current()
	if m != nil && m.Recorded {
		if err := a.leave(ctx, m.End.Number); err != nil { // an earlier one may have failed
			return Archive{}, err
		}
	}
	end, _, err := a.archivable(ctx, before, a.o.archiveAtOnce)
	if err != nil {
		return Archive{}, err
	}
	switch {
	case m != nil && end <= m.End.Number && !m.Recorded:
		return archiveOf(m), nil
	case end == 0 || m != nil && end <= m.End.Number:
		return Archive{}, nil
	}
	if err := MakeFolder(a.archived.folder); err != nil {
		return Archive{}, readOnly("the archive cannot be written", err)
	}
	a.sweepUnfinished(m)
	next, err := a.writeArchive(ctx, m, end, state)
	if err != nil {
		a.sweepUnfinished(m)
		return Archive{}, fmt.Errorf("archive the journal: %w", err)
	}
	a.archived.use(next)
	return archiveOf(next), nil
}

// leave cuts the journal.
func (a *archiver) leave(ctx context.Context, end uint64) error {
	a.task.step()
	if a.line().server == nil { // what hangs is no disk of this node
		a.task.rest()
	}
	return a.cut(ctx, end)
}

// watch has whoever waits for a task on the archive know of a disk that hangs. It returns the function that ends this, and names that disk
// in place of what a step made of it. The caller holds archiving.
func (a *archiver) watch(err *error) (end func()) {
	task, ended := a.o.slow.beside()
	a.task = task
	return func() {
		*err = a.o.slow.named(*err)
		ended()
	}
}

// Archivable returns the bytes of the journal that can be archived.
func (a *archiver) Archivable(ctx context.Context, before capabilities.Time) (int64, error) {
	_, bytes, err := a.archivable(ctx, before, math.MaxInt64)
	return bytes, err
}

// archivable returns the last commit before a time that can be archived, 0 if there is none. It also returns about how many
// bytes the journal has up to it, and returns no commit behind most bytes. The newest commits stay, and less than
// archiveLeast is not worth an archive.
func (a *archiver) archivable(ctx context.Context, before capabilities.Time, most int64) (end uint64, bytes int64, err error) {
	if err := a.err(); err != nil {
		return 0, 0, err
	}
	begin, last := a.reader.begin(), a.directory.lastCommit().Number
	if last < begin {
		return 0, 0, nil
	}
	s, err := a.line().js.Stream(ctx, a.o.streamName())
	if err != nil {
		return 0, 0, unreachable(err)
	}
	state := s.CachedInfo().State
	each := max(1, int64(state.Bytes/max(1, state.Msgs))) // of a commit
	least, newest := int(a.o.archiveLeast/each)+1, int(a.o.archiveLeast/8/each)+1
	older := sort.Search(max(0, int(last-begin)+1-newest), func(i int) bool { // of the commits that can go, the first that is newer
		if err != nil {
			return true
		}
		var c *events.Commit
		c, _, err = a.reader.commit(ctx, begin+uint64(i))
		return err == nil && c.At >= before
	})
	if err != nil || older < least {
		return 0, 0, err
	}
	older = int(min(int64(older), max(most/each, int64(least))))
	return begin + uint64(older) - 1, int64(older) * each, nil
}

// writeArchive writes the files of an archive that continues another one, up to a commit. m is nil if it is the first.
func (a *archiver) writeArchive(ctx context.Context, m *archive.Manifest, end uint64, state Checkpointer) (*archive.Manifest, error) {
	next := &archive.Manifest{Node: a.o.Node}
	if m != nil {
		next.After, next.End = m.After, m.End
		next.Segments, next.Places = append(next.Segments, m.Segments...), m.Places
		if m.Recorded {
			next.After = m.End
		}
	}
	spill, err := archive.CreateSpill(a.archived.path(spilled))
	if err != nil {
		return nil, readOnly("the archive cannot be written", err)
	}
	defer spill.Close() //nolint:errcheck // the next archiving removes what is left
	x, err := a.writeSegments(ctx, next, end, spill)
	if err != nil {
		return nil, err
	}
	if err := a.o.step(StepCheckpoint, func() error { return a.writeCheckpoint(ctx, next, x, spill, state) }); err != nil {
		return nil, err
	}
	err = a.o.step(StepManifest, func() error { return archive.WriteManifest(a.archived.folder, next) })
	if err != nil {
		return nil, readOnly("the archive cannot be written", err)
	}
	return next, nil
}

// Names of files that are being written: a segment, whose own name has the number of its last commit, and a spill.
const (
	unnamed = "unfinished"
	spilled = unnamed + ".spill"
)

// writeSegments writes segments behind the end of a manifest, up to a commit, and adds them to the manifest. It adds the
// commits to a spill, and returns the index after the last one.
func (a *archiver) writeSegments(ctx context.Context, next *archive.Manifest, end uint64, spill *archive.Spill) (x *index, err error) {
	x, c := newIndex(a.o.Node), &chain{node: a.o.Node, last: next.End}
	if next.End.Number > 0 {
		if x, err = a.indexAtArchive(ctx); err != nil {
			return nil, err
		}
	}
	var w *archive.Writer
	defer func() {
		if w != nil {
			w.Discard()
		}
	}()
	path := a.archived.path(unnamed)
	seal := func() error {
		return a.o.step(StepSegment, func() error {
			s, err := w.Close()
			if w = nil; err != nil {
				return readOnly("the archive cannot be written", err)
			}
			if err = os.Rename(path, a.archived.path(s.Name())); err == nil {
				err = SyncFolder(a.archived.folder)
			}
			if err != nil {
				return readOnly("the archive cannot be written", err)
			}
			next.Segments, next.End = append(next.Segments, s), s.End
			return nil
		})
	}
	err = a.reader.each(ctx, c.last.Number+1, end, newPace(a.directory).each(ctx, func(number uint64, bytes []byte) error {
		a.task.step()
		commit, err := c.follow(number, bytes)
		if err == nil {
			err = x.add(commit)
		}
		if err != nil {
			return err
		}
		if w == nil {
			if w, err = archive.Create(path, a.o.Node, next.End); err != nil {
				return readOnly("the archive cannot be written", err)
			}
		}
		if err = errors.Join(w.Add(number, bytes), spill.Add(commit)); err != nil {
			return readOnly("the archive cannot be written", err)
		}
		if w.Size() >= archive.MaxBytes {
			a.task.step()
			return seal()
		}
		return nil
	}))
	if err == nil && w != nil {
		a.task.step()
		err = seal()
	}
	if err != nil {
		if parley.CodeOf(err) == parley.CorruptLog {
			a.damaged(err)
		}
		return nil, err
	}
	return x, nil
}

// indexAtArchive returns the index after the last commit of the present archive.
func (a *archiver) indexAtArchive(ctx context.Context) (x *index, err error) {
	err = a.archived.useCheckpoint(func(c *archive.Checkpoint) (err error) {
		if c != nil {
			x, err = indexFrom(a.o.Node, c)
		}
		return err
	})
	if err == nil && x != nil {
		return x, nil
	}
	x = newIndex(a.o.Node)
	c := chainFrom(a.o.Node, 1)
	return x, a.reader.each(ctx, 1, a.archived.end().Number, func(number uint64, bytes []byte) error {
		commit, err := c.follow(number, bytes)
		if err == nil {
			err = x.add(commit)
		}
		return err
	})
}

// writeCheckpoint writes the states of the mailboxes of an index, which is as of the manifest's end.
func (a *archiver) writeCheckpoint(ctx context.Context, next *archive.Manifest, x *index, spill *archive.Spill, state Checkpointer) error {
	path := a.archived.path(archive.CheckpointName(next.End.Number))
	w, err := archive.CreateCheckpoint(path, a.o.Node, next.End)
	if err != nil {
		return readOnly("the archive cannot be written", err)
	}
	for _, e := range x.order {
		m := archive.Mailbox{ID: e.id, Version: e.version, Last: e.last, Summary: e.summary, Note: e.note, Steps: e.steps}
		a.task.rest() // it reads and folds
		if m.State, err = a.stateAt(ctx, e, spill, state); err == nil {
			a.task.step()
			err = w.Add(m)
		}
		if err != nil {
			w.Discard()
			return readOnly("the archive cannot be written", err)
		}
	}
	a.task.step()
	next.Checkpoint, next.CheckpointBytes, err = w.Close(x.events, x.sections)
	if err != nil {
		return readOnly("the archive cannot be written", err)
	}
	return nil
}

// stateAt returns the state of a mailbox after the events of an index entry. It begins with the present checkpoint, and
// takes the later events from the spill. If the checkpoint is damaged, it reads all events from the log.
func (a *archiver) stateAt(ctx context.Context, e *entry, spill *archive.Spill, state Checkpointer) ([]byte, error) {
	id := capabilities.ID{ULID: e.id, Node: a.o.Node}
	var before []byte
	at, archived := uint64(0), e.trail().versionAt(a.archived.end().Number)
	if archived > 0 {
		before, at = a.archived.checkpointed(id, archived)
	}
	if at == e.version {
		return before, nil
	}
	batches := a.logBatches(ctx, e, at)
	if at == archived {
		batches = spillBatches(ctx, id, spill)
	}
	after, err := state(ctx, id, before, func(yield func([]Entry, error) bool) {
		for evs, err := range batches {
			if at++; err == nil && evs[0].Version != at {
				err = parley.Refuse(parley.Internal, "version %d comes where version %d should be", evs[0].Version, at)
			}
			if !yield(evs, err) || err != nil {
				return
			}
			at = evs[len(evs)-1].Version
		}
	})
	if err == nil && at != e.version {
		err = parley.Refuse(parley.Internal, "its events end with version %d in place of %d", at, e.version)
	}
	if err != nil {
		return nil, fmt.Errorf("state of mailbox %s: %w", e.id, err)
	}
	return after, nil
}

// logBatches yields the events of a mailbox after a version, read from the log.
func (a *archiver) logBatches(ctx context.Context, e *entry, after uint64) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		for id := (capabilities.ID{ULID: e.id, Node: a.o.Node}); after < e.version; {
			last := min(e.version, after+foldAtOnce)
			evs, err := a.reader.entries(ctx, id, e.trail(), after, last)
			if !yield(evs, err) || err != nil {
				return
			}
			after = last
		}
	}
}

// spillBatches yields the events of a mailbox in a spill.
func spillBatches(ctx context.Context, id capabilities.ID, spill *archive.Spill) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		var evs []Entry
		errEnough := errors.New("no more is read")
		err := spill.Each(id, func(number uint64, s events.Section) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			recorded, err := s.Events()
			if err != nil {
				return cannotRead(number, &s, err)
			}
			for i, event := range recorded {
				evs = append(evs, Entry{Commit: number, Version: s.First + uint64(i), Recorded: event})
			}
			if len(evs) < foldAtOnce {
				return nil
			}
			all := evs
			if evs = nil; !yield(all, nil) {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return
		}
		if err != nil {
			yield(nil, err)
		} else if len(evs) > 0 {
			yield(evs, nil)
		}
	}
}

// sweepUnfinished removes the files that an interrupted archiving has left behind the end of a manifest.
func (a *archiver) sweepUnfinished(m *archive.Manifest) {
	end := uint64(0)
	if m != nil {
		end = m.End.Number
	}
	a.sweep(func(name string) bool {
		first, _, segment := archive.ParseName(name)
		switch {
		case segment:
			return first > end
		case archive.IsCheckpoint(name):
			return name > archive.CheckpointName(end)
		}
		return strings.HasPrefix(name, unnamed) || strings.HasSuffix(name, ".tmp")
	})
}

// sweep removes files of the archive. One that cannot be removed is only reported.
func (a *archiver) sweep(isOld func(name string) bool) {
	files, err := os.ReadDir(a.archived.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("the archive's folder cannot be listed", "error", err)
	}
	for _, f := range files {
		if !f.Type().IsRegular() || !isOld(f.Name()) {
			continue
		}
		if err := os.Remove(a.archived.path(f.Name())); err != nil {
			a.log.Warn("an old file of the archive cannot be removed", "file", f.Name(), "error", err)
		}
	}
}

// FinishArchive removes the archived commits from the journal, after the record of the archive is durable. Appends and
// reads go on meanwhile. After an error it may be called again.
func (a *archiver) FinishArchive(ctx context.Context, done Archive) (err error) {
	a.archiving.Lock()
	defer a.archiving.Unlock()
	defer a.watch(&err)()
	m := a.archived.current()
	if m == nil || m.End != done.End || m.Checkpoint != done.Checkpoint {
		return parley.Refuse(parley.InvalidArgument, "the archive up to commit %d is not the present one", done.End.Number)
	}
	if !m.Recorded {
		recorded := *m
		recorded.Recorded = true
		err := a.o.step(StepRecorded, func() error { return archive.WriteManifest(a.archived.folder, &recorded) })
		if err != nil {
			return readOnly("the archive cannot be written", err)
		}
		a.archived.use(&recorded)
	}
	if err := a.leave(ctx, m.End.Number); err != nil {
		return fmt.Errorf("cut the journal: %w", err)
	}
	return a.o.step(StepSweep, func() error {
		a.task.step()
		present := archive.CheckpointName(m.End.Number)
		a.sweep(func(name string) bool { return archive.IsCheckpoint(name) && name != present })
		return nil
	})
}
