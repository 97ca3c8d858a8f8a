package actors

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
	"parley/persistence"
	"parley/persistence/archive"
	"parley/persistence/archive/store"
)

// Archive has the beginning of the journal. One call at a time changes it.
type Archive struct {
	node *Node
	one  sync.Mutex // held by the call
	next time.Time  // when the scheduler looks again
}

const (
	retentionEvery = time.Hour
	minArchived    = 16 << 20 // bytes of the journal that retention archives at least
	timesState     = 4        // and so many times the size of the states before
)

var errArchiving = parley.Refuse(parley.AlreadyRunning, "the journal is being archived already").WithHint("try again when that is done")

// Archive returns the archive of the node's journal.
func (n *Node) Archive() *Archive { return n.archive }

// MoveBefore moves the commits before a time from the journal to the archive. It records the archive in the host's mailbox
// before anything leaves the journal. Mail goes on meanwhile. What is not worth an archive
// stays, and so do the newest commits.
func (a *Archive) MoveBefore(ctx context.Context, before capabilities.Time) (view.Archive, error) {
	if !a.one.TryLock() {
		return view.Archive{}, errArchiving
	}
	defer a.one.Unlock()
	archived := uint64(0)
	for {
		made, err := a.moveSome(ctx, before)
		if err != nil {
			return view.Archive{}, fmt.Errorf("archive: %w", err)
		}
		if made == 0 {
			break
		}
		archived += made
	}
	v := a.List()
	v.New = archived
	return v, nil
}

// moveSome archives some of the commits before a time, and returns their number. It is 0 if there are no more.
func (a *Archive) moveSome(ctx context.Context, before capabilities.Time) (uint64, error) {
	made, err := a.node.journal.PrepareArchive(ctx, before, a.stateAfter)
	if err != nil || made.End.Number == 0 {
		return 0, err
	}
	if err := a.node.Host().do(ctx, mailbox.RecordArchive(made.Record())); err != nil {
		return 0, err
	}
	if err := a.node.journal.FinishArchive(ctx, made); err != nil {
		return 0, err
	}
	a.node.log.Info("archived the beginning of the journal", "last", made.End.Number, "segments", len(made.Segments))
	return made.End.Number - made.After.Number, nil
}

// stateAfter implements persistence.Checkpointer.
func (a *Archive) stateAfter(ctx context.Context, id capabilities.ID, before []byte, batches iter.Seq2[[]persistence.Entry, error]) (state []byte, err error) {
	s := mailbox.New(id)
	if before != nil {
		if s, err = mailbox.Restore(id, before); err != nil {
			return nil, err
		}
	}
	for evs, err := range batches {
		if err == nil {
			err = a.node.fold(ctx, s, evs)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.Snapshot()
}

// List describes the archive.
func (a *Archive) List() view.Archive {
	all := a.node.journal.Archive()
	v := view.Archive{Last: all.End.Number, Checkpoint: all.CheckpointBytes, Segments: make([]view.ArchiveSegment, 0, len(all.Segments))}
	for _, s := range all.Segments {
		v.Bytes += s.Bytes
		v.Segments = append(v.Segments, view.ArchiveSegment{
			First: s.First, Last: s.Last, From: s.From, To: s.To, Bytes: s.Bytes, Digest: s.Digest.String(), Here: a.node.journal.HasSegment(s),
			Place: a.node.journal.PlaceOf(s),
		})
	}
	return v
}

// Move copies segments to a store, and removes them here once their copies were read back and are equal.
// Segments are named by their first commits; none means all that are here.
func (a *Archive) Move(ctx context.Context, to store.Store, first []uint64) (view.Archive, error) {
	return a.each(first, func(s archive.Segment) error {
		if !a.node.journal.HasSegment(s) {
			return nil
		}
		f, err := a.node.journal.OpenSegment(s)
		if err != nil {
			return err
		}
		err = store.Copy(ctx, to, a.segmentName(s), f, s.Bytes)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return a.node.journal.Detach(ctx, s, to.String())
	})
}

// Fetch brings segments back from a store, after a check against the record in the journal. A nil store means
// the places that they were moved to. Segments are named by their first commits; none means all that are not here.
func (a *Archive) Fetch(ctx context.Context, from store.Store, first []uint64) (view.Archive, error) {
	return a.each(first, func(s archive.Segment) error {
		if a.node.journal.HasSegment(s) {
			return nil
		}
		from, err := from, error(nil)
		if from == nil {
			if from, err = a.placeOf(s); err != nil {
				return err
			}
		}
		path := filepath.Join(a.node.o.Folder, "archive", "fetched.tmp")
		if err := store.Fetch(ctx, from, a.segmentName(s), path, s.Bytes); err != nil {
			return err
		}
		defer os.Remove(path) //nolint:errcheck // the next archiving removes it
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(a.node.journal.Attach(ctx, s, f), f.Close())
	})
}

// placeOf returns the store that a segment was moved to.
func (a *Archive) placeOf(s archive.Segment) (store.Store, error) {
	place := a.node.journal.PlaceOf(s)
	if place == "" {
		return nil, parley.Refuse(parley.InvalidArgument, "where the segment is was not recorded").
			WithHint("parley log archive --fetch %d --from PLACE", s.First)
	}
	return store.Open(place)
}

// segmentName returns the name of a segment in a store, which several nodes may share.
func (a *Archive) segmentName(s archive.Segment) string { return a.node.id.String() + "/" + s.Name() }

// each calls fn for segments by their first commits, or for all if there are none.
func (a *Archive) each(first []uint64, fn func(archive.Segment) error) (view.Archive, error) {
	if !a.one.TryLock() {
		return view.Archive{}, errArchiving
	}
	defer a.one.Unlock()
	all := a.node.journal.Archive().Segments
	for _, number := range first {
		if !slices.ContainsFunc(all, func(s archive.Segment) bool { return s.First == number }) {
			return view.Archive{}, parley.Refuse(parley.InvalidArgument, "the archive has no segment %d", number).
				WithHint("parley log archive --list shows the segments")
		}
	}
	for _, s := range all {
		if len(first) > 0 && !slices.Contains(first, s.First) {
			continue
		}
		if err := fn(s); err != nil {
			return view.Archive{}, fmt.Errorf("segment %d: %w", s.First, err)
		}
	}
	return a.List(), nil
}

// keepRetention archives what is older than the retention, now and then, if that frees enough.
func (a *Archive) keepRetention() {
	n := a.node
	if n.o.Retention <= 0 || n.o.Clock().Before(a.next) {
		return
	}
	a.next = n.o.Clock().Add(retentionEvery)
	n.run(func() {
		before := n.now().Add(-n.o.Retention)
		bytes, err := n.journal.Archivable(n.life, before)
		if err == nil && bytes >= max(minArchived, timesState*n.journal.Archive().CheckpointBytes) {
			_, err = a.MoveBefore(n.life, before)
		}
		if err != nil && n.life.Err() == nil {
			n.log.Warn("the journal was not archived", "error", err)
		}
	})
}
