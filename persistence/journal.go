package persistence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Journal is the log of a node's events, in one order. It is safe for concurrent use.
type Journal struct {
	o   Options
	log *slog.Logger

	order     // appends, up to the settled ones
	directory // the durable part of the log, as readers see it
	outputs   // the output of programs
	files     // files, by their content
	snapshots // stored states of mailboxes
	archiver  // moves the beginning of the log out of the stream
	verifier  // says whether the log is whole
	indexes   indexes
	reader    reader

	line struct { // the connection to the stream; Reopen replaces it
		sync.RWMutex
		*link
	}

	archived *archived // the beginning of the log that has left the stream
	grouped  *grouped  // the newest part of the log, by mailbox

	busy    sync.Mutex // held by a commit on its way, by Reopen, and by Close
	inDoubt []*frame   // commits that were sent and may be stored; guarded by busy
	buffer  []byte     // reused for the next frame; guarded by busy

	unchecked uint64 // the last commit that the start has not checked; 0 if it has checked all

	bytes atomic.Uint64 // of the stream, when the server last said, and of the commits since

	high    *highWater
	marking sync.Mutex // held while high is written

	marks  chan struct{} // the high-water mark is behind
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	closed sync.Once
	ended  error // the result of Close
}

// head is the last durable commit.
type head struct {
	Mark
	at capabilities.Time
}

// frame is an encoded commit.
type frame struct {
	events.Commit
	hash  events.Hash
	bytes []byte
}

// Open opens the node's journal, and creates it if there never was one. It returns after it has built the index and
// checked the newest part of the log. It refuses with ALREADY_RUNNING if another process has the folder, and with
// CORRUPT_LOG if the log was changed or damaged. It refuses with NEWER_LOG a log of a newer program, and with READ_ONLY
// if the server cannot be reached. A refusal leaves the files of an embedded server as they were.
func Open(ctx context.Context, o Options) (*Journal, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	high, err := openHighWater(o.Folder, o.Node)
	if err != nil {
		return nil, err
	}
	if o.known, err = lookFirst(ctx, o, high.last); err != nil {
		return nil, errors.Join(err, high.close())
	}
	j := &Journal{
		o: o, log: o.Log, high: high, directory: directory{node: o.Node},
		marks: make(chan struct{}, 1),
	}
	j.order.init(&j.o)
	j.archived = newArchived(&j.o, &j.snapshots.discarded)
	j.grouped = newGrouped(&j.o)
	j.outputs = outputs{line: j.connection, log: o.Log}
	j.files = files{o: &j.o, log: o.Log, line: j.connection}
	j.reader = reader{line: j.connection, archived: j.archived, damaged: j.fail, grouped: j.grouped}
	j.snapshots = snapshots{o: &j.o, log: o.Log, line: j.connection, directory: &j.directory, reader: &j.reader, archived: j.archived}
	j.archiver = archiver{
		o: &j.o, log: o.Log, archived: j.archived, reader: &j.reader, directory: &j.directory, line: j.connection, err: j.Err, damaged: j.fail, cut: j.cut,
	}
	j.verifier = verifier{
		o: &j.o, log: o.Log, reader: &j.reader, directory: &j.directory, archived: j.archived, archiver: &j.archiver, files: &j.files, damaged: j.fail,
	}
	j.indexes = indexes{
		o: &j.o, log: o.Log, line: j.connection, directory: &j.directory, archived: j.archived, snapshots: &j.snapshots, due: make(chan struct{}, 1),
	}
	if err := j.start(ctx); err != nil {
		if j.line.link != nil {
			err = j.line.denied.explain(err)
			j.line.close()
		}
		j.archived.close()
		j.grouped.close()
		_ = high.close() // read only so far
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	return j, nil
}

func (j *Journal) start(ctx context.Context) error {
	if j.o.known != nil { // a killed process has not flushed all that can be read
		for _, stream := range []string{j.o.streamName(), j.o.outputName(), j.o.filesName()} {
			if err := flushTree(filepath.Dir(blockFolderOf(&j.o, stream))); err != nil {
				return err
			}
		}
	}
	l, err := connect(&j.o)
	if err != nil {
		return err
	}
	j.line.link = l
	if err := j.replayAndFence(ctx); err != nil {
		return err
	}
	j.outputs.index.open(j.o.Folder)
	if err := j.outputs.fill(ctx); err != nil {
		j.log.Warn("the store of output cannot be looked at", "error", err)
	}
	if j.o.original == "" {
		if err := j.o.flushBeside(); err != nil {
			return err
		}
		if err := prepareToWrite(ctx, j); err != nil {
			return err
		}
	}
	signal(j.marks) // the log may have been ahead of it
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	j.cancel = cancel
	j.tasks.Go(func() { j.committer(background) })
	j.tasks.Go(func() { j.releaser(background) })
	j.tasks.Go(func() { j.marker(background) })
	j.tasks.Go(func() { j.outputs.save(background) })
	j.tasks.Go(func() { j.indexes.indexer(background) })
	j.tasks.Go(func() { j.grouped.grouper(background) })
	j.tasks.Go(func() { j.scrub(background, j.unchecked) })
	return nil
}

// prepareToWrite prepares to write to a log that was found whole. It writes the archive's manifest again where that is needed, and
// finishes a cut that was interrupted.
func prepareToWrite(ctx context.Context, j *Journal) error {
	if err := claim(j.connection()); err != nil {
		return err
	}
	if err := j.archived.keepManifest(); err != nil {
		return err
	}
	if l := j.connection(); l.blocks != nil {
		defer l.blocks.look() // the server may have put the files in order before
	}
	if m := j.archived.current(); m != nil && m.Recorded && j.archived.follows {
		return j.cut(ctx, m.End.Number)
	}
	return nil
}

// replayAndFence replays the log. On an external server it then stores an empty commit, which fences an earlier writer. If that
// writer has stored a commit meanwhile, replayAndFence replays again. It also retries while the servers elect a leader.
func (j *Journal) replayAndFence(ctx context.Context) error {
	said := ""
	for end := time.Now().Add(serverStart); ; {
		err := j.replay(ctx)
		if j.o.URL == "" {
			return err
		}
		if err == nil {
			j.inDoubt = nil // of an earlier attempt: the replay has read the stored ones
			_, err = j.probe(ctx)
		}
		if parley.CodeOf(err) != parley.ReadOnly || time.Now().After(end) {
			return err
		}
		if why := err.Error(); why != said {
			j.log.Warn("the journal does not open yet", "error", err)
			said = why
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// connection returns the present link.
func (j *Journal) connection() *link {
	j.line.RLock()
	defer j.line.RUnlock()
	return j.line.link
}

// signal wakes the receiver of a channel with room for one value.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Close makes all appends durable within ctx and releases all waiters. Then it writes the high-water mark and a
// snapshot of the index, and stops the server. Appends made after its start are lost. It returns the reason for any
// loss that was not known before.
func (j *Journal) Close(ctx context.Context) error {
	j.closed.Do(func() { j.ended = j.close(ctx) })
	return j.ended
}

func (j *Journal) close(ctx context.Context) error {
	var errs []error
	before := j.Err()
	if err := j.drain(ctx); err != nil {
		errs = append(errs, err)
	}
	after := j.Err()
	if after != nil && before == nil {
		errs = append(errs, after)
	}
	j.fail(errClosed)
	if err := j.drain(context.WithoutCancel(ctx)); err != nil { // all are released now
		errs = append(errs, err)
	}
	j.cancel()
	j.tasks.Wait()
	j.busy.Lock()
	defer j.busy.Unlock()
	if after == nil && j.o.original == "" {
		if err := j.indexes.saveIndex(ctx); err != nil {
			j.log.Warn("the index snapshot cannot be stored", "error", err)
		}
	}
	if err := j.writeMark(); err != nil {
		j.log.Warn("the high-water mark is behind", "error", err)
	}
	j.connection().close()
	j.archived.close()
	j.grouped.close()
	return errors.Join(append(errs, j.high.close())...)
}

// Stats has the figures of a journal.
type Stats struct {
	Commits    uint64
	Sections   uint64
	Events     uint64
	Mailboxes  int
	Open       uint64 // open forms of all mailboxes, as their summaries have them
	LastCommit uint64
	Bytes      uint64 // of the stream, when the server last answered, and of the commits since
	Backlog    int    // bytes appended and not yet durable

	Flushing time.Duration // duration of the write and flush under way, of a commit or of an archive or file; 0 if there is none
}

// Position returns the number of the last durable commit. It is cheap.
func (j *Journal) Position() uint64 {
	j.directory.mu.RLock()
	defer j.directory.mu.RUnlock()
	return j.directory.head.Number
}

// Stats returns the present figures of the journal.
func (j *Journal) Stats() Stats {
	j.directory.mu.RLock()
	x := j.directory.index
	n := j.directory.head.Number
	s := Stats{Commits: n, LastCommit: n, Sections: x.sections, Events: x.events, Mailboxes: len(x.order), Open: x.open}
	j.directory.mu.RUnlock()
	s.Backlog = j.Backlog()
	s.Bytes = j.bytes.Load()
	if s.Flushing = j.o.slow.hanging(); s.Flushing > 0 {
		return s // the server would answer after the disk
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if st, err := j.connection().js.Stream(ctx, j.o.streamName()); err == nil {
		s.Bytes = st.CachedInfo().State.Bytes
		j.bytes.Store(s.Bytes)
	}
	return s
}
