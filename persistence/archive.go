package persistence

import (
	"context"
	"io"
	"os"

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

// Checkpointer returns the encoded state of a mailbox after the events that were loaded. The same events give the same
// bytes.
type Checkpointer func(ctx context.Context, mailbox capabilities.ID, from Loaded) (state []byte, err error)

var errNoArchive = parley.Refuse(parley.InvalidArgument, "this journal cannot be archived yet")

// PrepareArchive writes the segments and the checkpoint of the commits before a time. Nothing leaves the journal. The
// caller records the result in the journal, and then calls FinishArchive. It returns the zero Archive if there is
// nothing to archive.
func (j *Journal) PrepareArchive(ctx context.Context, before capabilities.Time, state Checkpointer) (Archive, error) {
	return Archive{}, errNoArchive
}

// FinishArchive removes the archived commits from the journal. The record of the archive is durable.
func (j *Journal) FinishArchive(ctx context.Context, a Archive) error { return errNoArchive }

// Archive returns the present archive.
func (j *Journal) Archive() Archive { return Archive{} }

// Archivable returns the bytes of the journal that PrepareArchive would archive.
func (j *Journal) Archivable(ctx context.Context, before capabilities.Time) (int64, error) {
	return 0, nil
}

// HasSegment reports whether the file of a segment is here.
func (j *Journal) HasSegment(s archive.Segment) bool { return false }

// OpenSegment opens the file of a segment, to copy it. It fails with ARCHIVED if the file is not here.
func (j *Journal) OpenSegment(s archive.Segment) (*os.File, error) { return nil, errNoArchive }

// Attach stores the file of a segment of the archive that is not here. It refuses any other file with CORRUPT_LOG.
func (j *Journal) Attach(ctx context.Context, s archive.Segment, from io.Reader) error {
	return errNoArchive
}

// Detach removes the file of a segment. The caller has another copy, which it has checked.
func (j *Journal) Detach(ctx context.Context, s archive.Segment) error { return errNoArchive }
