package persistence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/persistence/archive"
)

// Archive describes the archived beginning of a journal. The zero Archive is none.
type Archive struct {
	After           Mark              // the last commit of the archive before
	End             Mark              // the last archived commit
	Checkpoint      events.Hash       // digest of the states of all mailboxes at End
	CheckpointBytes int64             // of its file
	Segments        []archive.Segment // from the first commit to End, in order
}

// Record returns the event that records the archive in the journal. It has the segments behind After.
func (a Archive) Record() events.JournalArchived {
	r := events.JournalArchived{After: a.After, Last: a.End, Checkpoint: a.Checkpoint}
	for _, s := range a.Segments {
		if s.First > a.After.Number {
			r.Segments = append(r.Segments, s.Record())
		}
	}
	return r
}

func archiveOf(m *archive.Manifest) Archive {
	if m == nil {
		return Archive{}
	}
	return Archive{After: m.After, End: m.End, Checkpoint: m.Checkpoint, CheckpointBytes: m.CheckpointBytes, Segments: m.Segments}
}

// Archive returns the present archive. It may be one that PrepareArchive has written and that is not recorded yet.
func (j *Journal) Archive() Archive { return archiveOf(j.archived.current()) }

// archiveFolder is the name of the folder of the archive in the state folder.
const archiveFolder = "archive"

// archived reads the part of the log that has left the stream. It is safe for concurrent use.
type archived struct {
	o      *Options
	log    *slog.Logger
	folder string

	mu         sync.RWMutex
	manifest   *archive.Manifest   // nil is none; it is replaced and never changed
	checkpoint *archive.Checkpoint // nil if there is none, or if it is damaged

	files   sync.Mutex
	readers map[uint64]*segmentFile // by the first commit; guarded by files
}

func newArchived(o *Options) *archived {
	return &archived{o: o, log: o.Log, folder: filepath.Join(o.Folder, archiveFolder), readers: map[uint64]*segmentFile{}}
}

// open reads the manifest and opens the checkpoint. A damaged checkpoint is reported in the log only: the segments have
// the same events. It finishes a cut that was interrupted.
func (a *archived) open() error {
	m, err := archive.ReadManifest(a.folder)
	if err != nil {
		if !errors.Is(err, archive.ErrDamaged) {
			return readOnly("the archive cannot be read", err)
		}
		return parley.Refuse(parley.CorruptLog, "the journal's archive: %v", err).
			WithHint("put the folder archive back from a copy, or restore a backup into a new folder")
	}
	if m == nil {
		return nil
	}
	if m.Node != a.o.Node {
		return parley.Refuse(parley.CorruptLog, "the archive is of node %s", m.Node)
	}
	a.use(m)
	a.o.archived = m.End.Number
	if !m.Recorded {
		return nil
	}
	follows := false // the journal has the commit behind the archive
	c := a.chainFrom(m.End.Number + 1)
	err = readFrames(a.o, m.End.Number+1, m.End.Number+1, func(number uint64, bytes []byte) error {
		follows = true
		_, err := c.followHead(number, bytes)
		return err
	})
	if err == nil && follows {
		err = removeBlocks(a.o, m.End.Number)
	}
	return err
}

// use replaces the manifest, and opens its checkpoint.
func (a *archived) use(m *archive.Manifest) {
	c, err := archive.OpenCheckpoint(a.path(archive.CheckpointName(m.End.Number)), m.Checkpoint)
	if err == nil && (c.Node() != m.Node || c.End() != m.End) {
		err = errors.Join(fmt.Errorf("%w: it is of commit %d", archive.ErrDamaged, c.End().Number), c.Close())
		c = nil
	}
	if err != nil {
		a.log.Warn("the archive's checkpoint cannot be used; reading its segments", "error", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.checkpoint != nil {
		_ = a.checkpoint.Close() // it was only read
	}
	a.manifest, a.checkpoint = m, c
}

func (a *archived) path(name string) string { return filepath.Join(a.folder, name) }

func (a *archived) current() *archive.Manifest {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.manifest
}

// end returns the last archived commit. It is zero if there is none.
func (a *archived) end() Mark {
	if m := a.current(); m != nil {
		return m.End
	}
	return Mark{}
}

// markOf returns the mark of a commit if it is the last of a segment.
func (a *archived) markOf(number uint64) (Mark, bool) {
	m := a.current()
	if m == nil {
		return Mark{}, false
	}
	i, ok := m.Segment(number)
	if !ok || m.Segments[i].Last != number {
		return Mark{}, false
	}
	return m.Segments[i].End, true
}

// chainFrom returns the chain of the log from a commit on. The hash before it is known if a segment ends there.
func (a *archived) chainFrom(first uint64) *chain {
	if last, ok := a.markOf(first - 1); ok {
		return &chain{node: a.o.Node, last: last}
	}
	return chainFrom(a.o.Node, first)
}

// close closes all files.
func (a *archived) close() {
	if m := a.current(); m != nil {
		for _, s := range m.Segments {
			a.forget(s.First)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.checkpoint != nil {
		_ = a.checkpoint.Close() // it was only read
		a.checkpoint = nil
	}
}

// frame returns the frame of an archived commit.
func (a *archived) frame(number uint64) ([]byte, error) {
	f, s, release, err := a.segment(number)
	if err != nil {
		return nil, err
	}
	defer release()
	frame, err := f.Frame(number)
	if err != nil {
		return nil, a.segmentError(s, err)
	}
	return frame, nil
}

// each calls fn with the frames of archived commits, in order. It fails with fn's error.
func (a *archived) each(ctx context.Context, first, last uint64, fn func(number uint64, bytes []byte) error) error {
	for first <= last {
		f, s, release, err := a.segment(first)
		if err != nil {
			return err
		}
		err = f.Each(ctx, first, last, fn)
		release()
		if err != nil {
			return a.segmentError(s, err)
		}
		first = s.Last + 1
	}
	return nil
}

// useCheckpoint calls fn with the checkpoint, which is nil if there is none. It is not closed meanwhile.
func (a *archived) useCheckpoint(fn func(c *archive.Checkpoint) error) error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return fn(a.checkpoint)
}

// checkpointed returns the state of a mailbox in the checkpoint, which has it at a version. It returns none if the
// checkpoint cannot be read.
func (j *Journal) checkpointed(mailbox capabilities.ID, version uint64) (state []byte, at uint64) {
	var m archive.Mailbox
	err := j.archived.useCheckpoint(func(c *archive.Checkpoint) (err error) {
		if c != nil {
			m, _, err = c.Find(mailbox.ULID)
		}
		return err
	})
	switch {
	case err == nil && m.Version == version:
		return m.State, version
	case err == nil && m.Version > 0:
		err = fmt.Errorf("it has version %d, not %d", m.Version, version)
	}
	j.discarded.Add(1)
	j.log.Warn("the archive's state of a mailbox cannot be read; replaying", "mailbox", mailbox.ULID, "error", err)
	return nil, 0
}

// indexFrom returns the index after the last commit of a checkpoint.
func indexFrom(node capabilities.NodeID, c *archive.Checkpoint) (*index, error) {
	x := newIndex(node)
	err := c.Each(func(m archive.Mailbox) error {
		e := &entry{id: m.ID, summary: m.Summary}
		t := trail{steps: m.Steps}
		for s := range t.from(1) {
			e.addStep(s.commit, s.count)
		}
		if e.version != m.Version || e.last != m.Last {
			return fmt.Errorf("%w: mailbox %s has %d events in its commits, and version %d", archive.ErrDamaged, m.ID, e.version, m.Version)
		}
		x.open += uint64(e.summary.Open)
		x.insert(e)
		return nil
	})
	x.events, x.sections = c.Events(), c.Sections()
	return x, err
}

// archivedIndex returns the index after the last commit that has left the stream, and the number of that commit. It is
// read from the checkpoint or, if that is damaged, from the segments.
func (j *Journal) archivedIndex(ctx context.Context) (x *index, at uint64, err error) {
	begin := j.connection().first.Load()
	if begin <= 1 {
		return newIndex(j.o.Node), 0, nil
	}
	err = j.archived.useCheckpoint(func(c *archive.Checkpoint) (err error) {
		if c != nil {
			x, err = indexFrom(j.o.Node, c)
		}
		return err
	})
	if err == nil && x != nil {
		return x, j.archived.end().Number, nil
	}
	j.log.Warn("the archive's checkpoint is damaged; reading its segments", "error", err)
	x = newIndex(j.o.Node)
	c := chainFrom(j.o.Node, 1)
	err = j.archived.each(ctx, 1, begin-1, func(number uint64, bytes []byte) error {
		commit, err := c.follow(number, bytes)
		if err == nil {
			err = x.add(commit)
		}
		return err
	})
	if err != nil {
		return nil, 0, parley.Refuse(parley.CorruptLog, "the archive's checkpoint is damaged, and its segments cannot be read: %v", err).
			WithHint("put the files of the folder archive back from a copy")
	}
	return x, begin - 1, nil
}
