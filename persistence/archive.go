package persistence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
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

// archiveFolder is the name of the folder of the archive in the state folder.
const archiveFolder = "archive"

// archived reads the part of the log that has left the stream. It is safe for concurrent use.
type archived struct {
	o      *Options
	log    *slog.Logger
	folder string

	follows   bool          // the journal had the commit behind the archive when it was opened
	discarded *atomic.Int64 // states that could not be used

	mu         sync.RWMutex
	manifest   *archive.Manifest   // nil is none; it is replaced and never changed
	checkpoint *archive.Checkpoint // nil if there is none, or if it is damaged

	files   sync.Mutex
	readers map[uint64]*segmentFile // by the first commit; guarded by files
}

func newArchived(o *Options, discarded *atomic.Int64) *archived {
	return &archived{o: o, discarded: discarded, log: o.Log, folder: filepath.Join(cmp.Or(o.original, o.Folder), archiveFolder), readers: map[uint64]*segmentFile{}}
}

// open reads the manifest and opens the checkpoint. A damaged checkpoint is reported in the log only: the segments have
// the same events. A manifest that is lost or damaged is made again. It changes no file, but that it brings what an
// external server has.
func (a *archived) open(ctx context.Context, l *link, state jetstream.StreamState) error {
	if l.server == nil && state.FirstSeq > 1 {
		if err := a.fetchKept(ctx, l); err != nil {
			return err
		}
	}
	m, err := archive.ReadManifest(a.folder)
	if errors.Is(err, archive.ErrFormat) {
		return newer("the archive's manifest", err)
	}
	if err != nil && !errors.Is(err, archive.ErrDamaged) {
		return readOnly("the archive cannot be read", err)
	}
	if m == nil {
		if m, err = a.rebuild(ctx, l, state, err); err != nil {
			return err
		}
	}
	if m == nil {
		return nil
	}
	if m.Node != a.o.Node {
		return parley.Refuse(parley.CorruptLog, "the archive is of node %s", m.Node)
	}
	a.use(m)
	if !m.Recorded || state.LastSeq <= m.End.Number {
		return nil
	}
	bytes, err := l.fetch(ctx, m.End.Number+1)
	if errors.Is(err, errNotThere) {
		return nil // whoever reads the journal says so
	}
	if err == nil {
		_, err = a.chainFrom(m.End.Number+1).followHead(m.End.Number+1, bytes)
	}
	a.follows = err == nil
	return err
}

// left returns the last commit that readers do not look for in the stream: all up to it is archived for good. A purge that
// was interrupted may have left some of them there.
func (a *archived) left() uint64 {
	if m := a.current(); m != nil && m.Recorded {
		return m.End.Number
	}
	return 0
}

// The names of the objects with the manifest and the checkpoint of a journal on an external server. Another process that
// takes over finds them there, on another machine too. The segments are where they were made.
const (
	keptManifest   = "archive"
	keptCheckpoint = "archive.checkpoint"
)

// keep stores the manifest and the checkpoint of a journal on an external server there. What has left the journal is read
// with them.
func (a *archived) keep(ctx context.Context, l *link, m *archive.Manifest) error {
	if l.server != nil {
		return nil
	}
	checkpoint, err := regular.Read(a.path(archive.CheckpointName(m.End.Number)))
	if err == nil {
		err = l.putObject(ctx, jetstream.ObjectMeta{Name: keptCheckpoint}, checkpoint)
	}
	if err == nil {
		err = l.putObject(ctx, jetstream.ObjectMeta{Name: keptManifest}, m.Encode())
	}
	if err != nil {
		return readOnly("the archive's manifest cannot be stored", err)
	}
	return nil
}

// fetchKept writes the manifest and the checkpoint that an external server has to the folder. It does so if they are newer
// than those there.
func (a *archived) fetchKept(ctx context.Context, l *link) error {
	_, err := l.js.ObjectStore(ctx, a.o.bucketName())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil
	}
	var text []byte
	if err == nil {
		text, err = l.getObject(ctx, keptManifest)
	}
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	if err != nil {
		return unreachable(err)
	}
	m, err := archive.DecodeManifest(text)
	if err != nil {
		a.log.Warn("the manifest that the server has is damaged", "error", err)
		return nil
	}
	here, err := archive.ReadManifest(a.folder)
	if err == nil && here != nil && (here.End.Number > m.End.Number || here.End == m.End && (here.Recorded || !m.Recorded)) {
		return nil
	}
	checkpoint, err := l.getObject(ctx, keptCheckpoint)
	if err != nil {
		return unreachable(err)
	}
	if err = MakeFolder(a.folder); err == nil {
		err = archive.WriteWhole(a.path(archive.CheckpointName(m.End.Number)), checkpoint)
	}
	if err == nil {
		err = archive.WriteManifest(a.folder, m)
	}
	if err != nil {
		return readOnly("the archive cannot be written", err)
	}
	return nil
}

// rebuild makes a lost or damaged manifest again, from the records in the journal and in segments, and from segments. It
// returns nil if nothing has left the journal.
func (a *archived) rebuild(ctx context.Context, l *link, state jetstream.StreamState, damage error) (*archive.Manifest, error) {
	begin := state.FirstSeq
	if state.LastSeq == 0 || damage == nil && begin <= 1 {
		return nil, nil
	}
	if begin <= 1 {
		a.log.Warn("the archive's manifest is damaged, and nothing has left the journal", "error", damage)
		return nil, nil
	}
	r := records{folder: a.folder, by: map[Mark]*events.JournalArchived{}}
	if err := l.each(ctx, begin, state.LastSeq, r.read); err != nil {
		return nil, err
	}
	var m *archive.Manifest
	_, err := os.Stat(a.folder)
	if err == nil {
		m, err = r.manifest(ctx, a.o.Node, begin)
	}
	if err != nil {
		return nil, parley.Refuse(parley.CorruptLog, "the journal's archive has no manifest that is whole, and it cannot be made again: %v", err).
			WithHint("put the files of the folder archive back from a copy, or restore a backup into a new folder")
	}
	a.log.Warn("the archive's manifest was lost or damaged; it is made again from its records", "last", m.End.Number, "error", damage)
	return m, nil
}

// records are the records of archives, by their last commits. They are found in the journal and in segments.
type records struct {
	folder string
	by     map[Mark]*events.JournalArchived
}

// read adds the record in a frame, if there is one.
func (r *records) read(number uint64, frame []byte) error {
	c, _, err := decode(number, frame)
	if err != nil {
		return err
	}
	record, err := readSections(c)
	if record != nil {
		r.by[record.Last] = record
	}
	return err
}

// manifest returns the manifest of the archive that ends before a commit with which the journal begins. If the cut at
// its end was interrupted, the archive has later commits too. Its files have to be here then. The segments of an
// archive before it are those of its own record, which may be in a later segment. Otherwise they are in a file whose
// last commit is the one that follows.
func (r *records) manifest(ctx context.Context, node capabilities.NodeID, begin uint64) (*archive.Manifest, error) {
	var last *events.JournalArchived
	for _, record := range r.by {
		if record.Last.Number+1 >= begin && (last == nil || record.Last.Number < last.Last.Number) {
			last = record
		}
	}
	if last == nil {
		return nil, fmt.Errorf("the journal, which begins with commit %d, has no record of it", begin)
	}
	m := &archive.Manifest{Node: node, After: last.After, End: last.Last, Recorded: true, Checkpoint: last.Checkpoint, CheckpointBytes: 1}
	if info, err := os.Stat(filepath.Join(r.folder, archive.CheckpointName(m.End.Number))); err == nil {
		m.CheckpointBytes = max(info.Size(), 1)
	}
	var unread []archive.Segment // the newest first
	for after := m.End; after.Number > 0; {
		record := r.by[after]
		for record == nil && len(unread) > 0 {
			if err := r.scan(ctx, unread[0]); err != nil {
				return nil, err
			}
			record, unread = r.by[after], unread[1:]
		}
		var some []archive.Segment
		if record == nil {
			s, err := r.ending(ctx, after)
			if err != nil {
				return nil, err
			}
			some = []archive.Segment{s}
		} else {
			before := record.After
			for _, e := range record.Segments {
				some = append(some, archive.SegmentOf(before, e))
				before = e.Last
			}
		}
		if len(some) == 0 || some[0].After.Number >= after.Number {
			return nil, fmt.Errorf("the record of commit %d has no segments", after.Number)
		}
		after = some[0].After
		m.Segments = append(some, m.Segments...)
		slices.Reverse(some)
		unread = append(unread, some...)
	}
	for _, s := range m.Segments {
		if s.Last < begin {
			continue
		}
		f, err := archive.Open(filepath.Join(r.folder, s.Name()), s)
		if err == nil {
			err = errors.Join(f.Verify(ctx), f.Close())
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// scan adds the records in a segment, if that is here.
func (r *records) scan(ctx context.Context, s archive.Segment) error {
	f, err := archive.Open(filepath.Join(r.folder, s.Name()), s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Each(ctx, s.First, s.Last, r.read), f.Close())
}

// ending returns the segment whose last commit is a mark. It reads it: its commits are proven by the hash of the last.
func (r *records) ending(ctx context.Context, end Mark) (archive.Segment, error) {
	files, err := os.ReadDir(r.folder)
	for _, f := range files {
		if _, last, ok := archive.ParseName(f.Name()); !ok || last != end.Number {
			continue
		}
		s, err := archive.Open(filepath.Join(r.folder, f.Name()), archive.Segment{})
		if err != nil {
			return archive.Segment{}, err
		}
		err = s.Verify(ctx)
		if err = errors.Join(err, s.Close()); err == nil && s.Segment().End == end {
			return s.Segment(), nil
		}
	}
	return archive.Segment{}, errors.Join(err, fmt.Errorf("there is no segment that ends with commit %d", end.Number))
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
func (a *archived) checkpointed(mailbox capabilities.ID, version uint64) (state []byte, at uint64) {
	var m archive.Mailbox
	err := a.useCheckpoint(func(c *archive.Checkpoint) (err error) {
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
	a.discarded.Add(1)
	a.log.Warn("the archive's state of a mailbox cannot be read; replaying", "mailbox", mailbox.ULID, "error", err)
	return nil, 0
}

// indexFrom returns the index after the last commit of a checkpoint.
func indexFrom(node capabilities.NodeID, c *archive.Checkpoint) (*index, error) {
	x := newIndex(node)
	err := c.Each(func(m archive.Mailbox) error {
		e := &entry{id: m.ID, summary: m.Summary, note: m.Note}
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

// index returns the index after the last commit that has left the stream, and the number of that commit. The stream
// begins with the commit begin. The index is read from the checkpoint or, if that is damaged, from the segments.
func (a *archived) index(ctx context.Context, begin uint64) (x *index, at uint64, err error) {
	if begin <= 1 {
		return newIndex(a.o.Node), 0, nil
	}
	err = a.useCheckpoint(func(c *archive.Checkpoint) (err error) {
		if c != nil {
			x, err = indexFrom(a.o.Node, c)
		}
		return err
	})
	if err == nil && x != nil {
		return x, a.end().Number, nil
	}
	a.log.Warn("the archive's checkpoint is damaged; reading its segments", "error", err)
	x = newIndex(a.o.Node)
	c := chainFrom(a.o.Node, 1)
	err = a.each(ctx, 1, begin-1, func(number uint64, bytes []byte) error {
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
