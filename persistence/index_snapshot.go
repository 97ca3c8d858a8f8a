package persistence

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
)

// The index snapshot is a file in the state folder of a node with an embedded server. On an external server it is an
// object in the node's bucket, so that another process finds it.
const (
	indexFile   = "index"
	indexObject = "index"
	indexMagic  = "PLYINDX\x03"
	indexHeader = 8 + 8 + 32 + 32
)

// indexEvery is the least number of bytes of the journal between two snapshots of the index. A large index is stored
// only after as many bytes as it has itself.
const indexEvery = 64 << 20

// indexPatience bounds the wait for an external server that has no leader for the bucket. Without the index the whole log is
// read.
const indexPatience = 5 * time.Second

// indexes stores the index of the log, so that a start reads only the commits after it.
type indexes struct {
	o         *Options
	log       *slog.Logger
	line      func() *link
	directory *directory
	archived  *archived
	snapshots *snapshots

	unindexed  atomic.Int64  // bytes of commits since the last snapshot
	indexBytes atomic.Int64  // size of that snapshot
	due        chan struct{} // the snapshot is behind
}

// indexer removes what is left over in the store of snapshots. Then it stores snapshots of the index, until ctx ends.
func (s *indexes) indexer(ctx context.Context) {
	s.snapshots.sweepObjects(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.due:
		}
		if err := s.saveIndex(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("the index snapshot cannot be stored", "error", err)
		}
	}
}

// grown counts the bytes of a commit, and has the indexer store a snapshot when one is due.
func (s *indexes) grown(bytes int) {
	if n := s.unindexed.Add(int64(bytes)); n >= max(indexEvery, s.indexBytes.Load()) {
		s.unindexed.Add(-n)
		signal(s.due)
	}
}

func (s *indexes) saveIndex(ctx context.Context) error {
	at, x := s.directory.copyIndex()
	if at.Number == 0 {
		return nil
	}
	return s.o.step(StepIndex, func() error {
		if s.o.URL == "" {
			return s.writeIndex(x, at.Mark)
		}
		var b bytes.Buffer
		if err := x.write(&b, at.Mark); err != nil {
			return err
		}
		s.indexBytes.Store(int64(b.Len()))
		return s.line().putObject(ctx, jetstream.ObjectMeta{Name: indexObject}, b.Bytes())
	})
}

// writeIndex replaces the file of the index.
func (s *indexes) writeIndex(x *indexCopy, at Mark) error {
	path := filepath.Join(s.o.Folder, indexFile)
	f, err := regular.Create(path + ".new")
	if err != nil {
		return err
	}
	err = x.write(f, at)
	if size, sizeErr := f.Seek(0, io.SeekCurrent); sizeErr == nil {
		s.indexBytes.Store(size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// readIndex reads the stored snapshot of a log that ends with a commit. It fails with jetstream.ErrObjectNotFound if there is
// none. If the log is long, an external server that does not answer is asked again for a while.
func (s *indexes) readIndex(ctx context.Context, last uint64) ([]byte, error) {
	if s.o.URL == "" {
		b, err := regular.Read(filepath.Join(s.o.Folder, indexFile))
		if errors.Is(err, fs.ErrNotExist) {
			err = jetstream.ErrObjectNotFound
		}
		return b, err
	}
	l := s.line()
	end := time.Now()
	if last > s.o.freshCommits { // else all commits are read anyway
		end = end.Add(indexPatience)
	}
	for {
		_, err := l.js.ObjectStore(ctx, s.o.bucketName())
		if err != nil && !isUnanswered(err) {
			return nil, jetstream.ErrObjectNotFound
		}
		var b []byte
		if err == nil {
			b, err = l.getObject(ctx, indexObject)
		}
		if !isUnanswered(err) || time.Now().After(end) || ctx.Err() != nil {
			return b, err
		}
	}
}

// indexCopy is a copy of the entries of an index at one commit, by ID.
type indexCopy struct {
	node             capabilities.NodeID
	events, sections uint64
	entries          []entry
	trails           map[int][]milestone // of the long trails
}

// write writes the snapshot of the index after a commit: a header, the entries, the notes, the steps, and a checksum.
func (c *indexCopy) write(to io.Writer, at Mark) error {
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(to, sum), 256<<10)
	b := append(make([]byte, 0, 512), indexMagic...)
	b = binary.BigEndian.AppendUint64(b, at.Number)
	b = append(b, at.Hash[:]...)
	b = append(b, c.node.Bytes()...)
	notes, steps := 0, 0
	for i := range c.entries {
		notes, steps = notes+len(c.entries[i].note), steps+len(c.entries[i].steps)
	}
	b = appendVarints(b, c.events, c.sections, uint64(len(c.entries)), uint64(notes), uint64(steps))
	for i := range c.entries {
		e := &c.entries[i]
		b = append(b, e.id[:]...)
		b = appendVarints(b, e.version, uint64(e.summary.Open), uint64(e.summary.Waiting), uint64(e.summary.Outbox), uint64(e.summary.Deadline),
			e.last, uint64(len(e.note)), uint64(len(e.steps)), uint64(len(c.trails[i])))
		var last milestone
		for _, m := range c.trails[i] {
			b = appendVarints(b, uint64(m.at-last.at), m.commit-last.commit, m.first-last.first)
			last = m
			if len(b) > 4<<10 {
				_, _ = w.Write(b) // Flush returns its error
				b = b[:0]
			}
		}
		_, _ = w.Write(b)
		b = b[:0]
	}
	_, _ = w.Write(b)
	for i := range c.entries {
		_, _ = w.WriteString(c.entries[i].note)
	}
	for i := range c.entries {
		_, _ = w.Write(c.entries[i].steps)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := to.Write(sum.Sum(nil))
	return err
}

func appendVarints(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// The fewest bytes of an entry, an ID and nine numbers, and of a milestone, three numbers. They bound what is allocated.
const (
	minEntry     = 16 + 9
	minMilestone = 3
)

var errIndexDamaged = errors.New("the index snapshot is damaged")

// decodeIndex reads the result of write. It keeps no part of b.
func decodeIndex(node capabilities.NodeID, b []byte) (*index, Mark, error) {
	end := len(b) - sha256.Size
	if end < indexHeader || string(b[:8]) != indexMagic || sha256.Sum256(b[:end]) != [32]byte(b[end:]) ||
		capabilities.NodeOf([capabilities.NodeKeySize]byte(b[48:indexHeader])) != node {
		return nil, Mark{}, errIndexDamaged
	}
	at := Mark{Number: binary.BigEndian.Uint64(b[8:]), Hash: events.Hash(b[16:48])}
	r := indexReader{rest: b[indexHeader:end]}
	x := &index{node: node, events: r.varint(), sections: r.varint()}
	n, notes, steps := r.varint(), r.varint(), r.varint()
	if rest := uint64(len(r.rest)); notes > rest || steps > rest || notes+steps > rest || n > (rest-notes-steps)/minEntry {
		return nil, Mark{}, errIndexDamaged
	}
	entries := r.rest[:uint64(len(r.rest))-notes-steps]
	r.notes = string(r.rest[len(entries):][:notes])
	r.steps = slices.Clone(r.rest[uint64(len(entries))+notes:])
	r.rest = entries
	x.entries, x.order = sized(int(n)), make([]*entry, n)
	all := make([]entry, n)
	for i := range all {
		e := &all[i]
		r.entry(e)
		if i > 0 && all[i-1].id.Compare(e.id) >= 0 {
			r.bad = true
		}
		if r.bad {
			return nil, Mark{}, errIndexDamaged
		}
		x.entries.put(e)
		x.order[i] = e
		x.open += uint64(e.summary.Open)
	}
	return x, at, nil
}

// indexReader decodes the entries of a snapshot.
type indexReader struct {
	rest  []byte // entries
	notes string
	steps []byte
	bad   bool // something was missing
}

func (r *indexReader) varint() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *indexReader) entry(e *entry) {
	if len(r.rest) < len(e.id) {
		r.bad = true
		return
	}
	copy(e.id[:], r.rest)
	r.rest = r.rest[len(e.id):]
	e.version = r.varint()
	e.summary = events.Summary{
		Open: uint32(r.varint()), Waiting: uint32(r.varint()), Outbox: uint32(r.varint()), Deadline: capabilities.Time(r.varint()),
	}
	e.last = r.varint()
	note, steps, marks := r.varint(), r.varint(), r.varint()
	if note > uint64(len(r.notes)) || steps > uint64(len(r.steps)) || marks > uint64(len(r.rest))/minMilestone {
		r.bad = true
		return
	}
	e.note, r.notes = r.notes[:note], r.notes[note:]
	e.steps, r.steps = r.steps[:steps:steps], r.steps[steps:]
	if marks == 0 {
		return
	}
	all := make([]milestone, marks)
	var last milestone
	for i := range all {
		last = milestone{last.at + int(r.varint()), last.commit + r.varint(), last.first + r.varint()}
		if last.at < 0 || last.at > len(e.steps) {
			r.bad = true
			return
		}
		all[i] = last
	}
	e.marks = &all
}

// loadIndex reads the index snapshot, and returns it with the number of its commit. If the snapshot cannot be used, it
// returns the index of the archive, which is empty if there is none.
func (s *indexes) loadIndex(ctx context.Context, last uint64) (*index, uint64, error) {
	if last == 0 {
		return newIndex(s.o.Node), 0, nil
	}
	b, err := s.readIndex(ctx, last)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return s.archived.index(ctx, s.line().first.Load())
	}
	var x *index
	var at Mark
	if err == nil {
		x, at, err = decodeIndex(s.o.Node, b)
	}
	if err == nil {
		err = s.isFrom(ctx, at, last)
	}
	if err != nil {
		s.snapshots.discarded.Add(1)
		s.log.Warn("the index snapshot cannot be used; reading the whole journal", "error", err)
		return s.archived.index(ctx, s.line().first.Load())
	}
	s.indexBytes.Store(int64(len(b)))
	return x, at.Number, nil
}

// isFrom checks that a snapshot that was made after a commit was made from this log.
func (s *indexes) isFrom(ctx context.Context, at Mark, last uint64) error {
	if at.Number == 0 || at.Number > last {
		return errors.New("it is newer than the log")
	}
	l := s.line()
	if known, ok := s.archived.markOf(at.Number); ok && known != at {
		return errors.New("it was made from another log")
	} else if ok && at.Number+1 == l.first.Load() {
		return nil
	}
	if at.Number < l.first.Load() {
		return errors.New("it is older than what has left the log")
	}
	b, err := l.fetchSurely(ctx, at.Number)
	if err != nil {
		return err
	}
	_, hash, err := decodeAs(at.Number, b, events.DecodeHead)
	if err == nil && hash != at.Hash {
		err = errors.New("it was made from another log")
	}
	return err
}
