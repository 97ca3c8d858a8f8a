package persistence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
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

// segmentFile is an open segment.
type segmentFile struct {
	*archive.Reader
	uses int
	gone bool // it is closed after the last use
}

// openSegments is the number of segments that stay open without a use.
const openSegments = 4

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

// archiveDamage is CORRUPT_LOG of a file of the archive. The journal goes on without it.
type archiveDamage struct{ why *parley.Error }

func (d *archiveDamage) Error() string { return d.why.Error() }
func (d *archiveDamage) Unwrap() error { return d.why }

// segmentError returns ARCHIVED for a segment that is not here, and CORRUPT_LOG for a damaged one.
func segmentError(s archive.Segment, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return parley.Refuse(parley.Archived, "commits %d to %d are in segment %s of the archive, which is not here", s.First, s.Last, s.Name()).
			WithHint("parley archive --fetch %d --from PLACE brings it back", s.First)
	case errors.Is(err, archive.ErrDamaged):
		return &archiveDamage{parley.Refuse(parley.CorruptLog, "commits %d to %d: %v", s.First, s.Last, err).
			WithHint("put the segment back from a copy: parley archive --fetch %d --from PLACE", s.First)}
	}
	return err
}

// segment opens the segment with a commit. The caller releases it.
func (a *archived) segment(number uint64) (*segmentFile, archive.Segment, func(), error) {
	var s archive.Segment
	if m := a.current(); m != nil {
		if i, ok := m.Segment(number); ok {
			s = m.Segments[i]
		}
	}
	if s.Last == 0 {
		return nil, s, nil, lost(number, "is not in the archive")
	}
	a.files.Lock()
	defer a.files.Unlock()
	f := a.readers[s.First]
	if f == nil {
		r, err := archive.Open(a.path(s.Name()), s)
		if err != nil {
			return nil, s, nil, segmentError(s, err)
		}
		f = &segmentFile{Reader: r}
		a.readers[s.First] = f
	}
	f.uses++
	return f, s, func() { a.release(s.First, f) }, nil
}

func (a *archived) release(first uint64, f *segmentFile) {
	a.files.Lock()
	defer a.files.Unlock()
	if f.uses--; f.uses > 0 || !f.gone && len(a.readers) <= openSegments {
		return
	}
	if a.readers[first] == f {
		delete(a.readers, first)
	}
	_ = f.Close() // it was only read
}

// forget has the reader of a segment closed.
func (a *archived) forget(first uint64) {
	a.files.Lock()
	defer a.files.Unlock()
	f := a.readers[first]
	if f == nil {
		return
	}
	delete(a.readers, first)
	if f.gone = true; f.uses == 0 {
		_ = f.Close() // it was only read
	}
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
		return nil, segmentError(s, err)
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
			return segmentError(s, err)
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

// listed returns a segment of the present archive.
func (a *archived) listed(s archive.Segment) error {
	m := a.current()
	if m != nil {
		if i, ok := m.Segment(s.First); ok && m.Segments[i] == s {
			return nil
		}
	}
	return parley.Refuse(parley.InvalidArgument, "%s is no segment of the archive", s.Name())
}

// HasSegment reports whether the file of a segment is here.
func (j *Journal) HasSegment(s archive.Segment) bool {
	_, err := os.Stat(j.archived.path(s.Name()))
	return err == nil
}

// OpenSegment opens the file of a segment, to copy it. It fails with ARCHIVED if the file is not here.
func (j *Journal) OpenSegment(s archive.Segment) (*os.File, error) {
	if err := j.archived.listed(s); err != nil {
		return nil, err
	}
	f, err := os.Open(j.archived.path(s.Name()))
	if err != nil {
		return nil, segmentError(s, err)
	}
	return f, nil
}

// Attach stores the file of a segment of the archive, in place of one that is here. It refuses any other file with
// CORRUPT_LOG.
func (j *Journal) Attach(ctx context.Context, s archive.Segment, from io.Reader) error {
	if err := j.archived.listed(s); err != nil {
		return err
	}
	if err := j.archived.store(ctx, s, from); err != nil {
		return fmt.Errorf("attach segment %s: %w", s.Name(), err)
	}
	j.archived.forget(s.First)
	return nil
}

// incoming is the name of a segment that is being stored, until it is checked.
const incoming = "incoming.tmp"

// store writes the file of a segment, checks it, and gives it its name.
func (a *archived) store(ctx context.Context, s archive.Segment, from io.Reader) (err error) {
	f, err := os.CreateTemp(a.folder, "*."+incoming)
	if err != nil {
		return readOnly("the archive cannot be written", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has been renamed on success
	_, err = io.Copy(f, io.LimitReader(from, s.Bytes+1))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return readOnly("the segment cannot be copied", err)
	}
	r, err := archive.Open(f.Name(), s)
	if err == nil {
		err = errors.Join(r.Verify(ctx), r.Close())
	}
	if err != nil {
		return segmentError(s, err)
	}
	if err = os.Rename(f.Name(), a.path(s.Name())); err == nil {
		err = SyncFolder(a.folder)
	}
	if err != nil {
		return readOnly("the archive cannot be written", err)
	}
	return nil
}

// Detach removes the file of a segment whose commits have left the stream. The caller has another copy, which it has
// checked. A segment that is not here is no error.
func (j *Journal) Detach(_ context.Context, s archive.Segment) error {
	if err := j.archived.listed(s); err != nil {
		return err
	}
	if s.Last >= j.begin() {
		return parley.Refuse(parley.InvalidArgument, "the commits of segment %s have not left the journal yet", s.Name())
	}
	err := os.Remove(j.archived.path(s.Name()))
	if err == nil {
		err = SyncFolder(j.archived.folder)
	}
	j.archived.forget(s.First)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return readOnly("the segment cannot be removed", err)
	}
	return nil
}
