package persistence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"parley"
)

// restoring marks, in the stream's metadata, a journal whose restore is not finished.
const restoring = "parley-restore"

// lookTimeout is for one look at the stream on an external server: one that reaches no leader has no answer.
const lookTimeout = 2 * time.Second

func streamConfig(o *Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        o.streamName(),
		Subjects:    []string{o.subject()},
		Description: "a Parley node's journal: one message per commit",
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxMsgs:     -1,
		MaxBytes:    -1,
		MaxMsgSize:  -1,
		Replicas:    o.Replicas,
		Duplicates:  100 * time.Millisecond, // the default makes recovery slow, and nothing here needs it
		DenyDelete:  true,
		DenyPurge:   true,
		AllowDirect: true,
	}
}

// openStream finds the stream, and makes it where there is none and mark says that there never was.
func (l *link) openStream(ctx context.Context, mark mark) (jetstream.StreamState, error) {
	state, found, err := l.findStream(ctx)
	if err != nil || found {
		return state, err
	}
	if err := l.mayCreate(mark); err != nil {
		return state, err
	}
	if _, err := l.js.CreateStream(ctx, streamConfig(l.o)); err != nil {
		return state, fmt.Errorf("create the journal: %w", unreachable(err))
	}
	state, _, err = l.findStream(ctx)
	return state, err
}

// findStream looks at the stream, if it is there, and refuses one that cannot be a whole journal.
func (l *link) findStream(ctx context.Context) (state jetstream.StreamState, found bool, err error) {
	if l.server == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookTimeout)
		defer cancel()
	}
	s, err := l.js.Stream(ctx, l.o.streamName())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return state, false, nil
	}
	if err != nil {
		return state, false, unreachable(err)
	}
	in := s.CachedInfo()
	if err := checkConfig(l.o, &in.Config); err != nil {
		return state, true, err
	}
	if in.State.LastSeq > 0 && in.State.Msgs != in.State.LastSeq {
		if with, err := s.Info(ctx, jetstream.WithDeletedDetails(true)); err == nil {
			in = with
		}
	}
	return in.State, true, checkState(in.State)
}

func (l *link) mayCreate(mark mark) error {
	if mark.number > 0 {
		return parley.Refuse(parley.CorruptLog, "commit 1: is missing, and so is the whole journal to commit %d", mark.number).
			WithHint("put the journal back, or restore a backup into a new folder")
	}
	if l.server == nil {
		return nil
	}
	if holdsCommits(blockFolder(l.o)) {
		return parley.Refuse(parley.CorruptLog, "commit 1: cannot be read, nor those after it: the journal has lost its description").
			WithHint("its blocks are still there; put the journal folder back from a copy, or restore a backup into a new folder")
	}
	return nil
}

// holdsCommits reports whether a folder has blocks with something in them. One that is empty is of a stream that was being
// made when its process was killed.
func holdsCommits(folder string) bool {
	blocks, _ := filepath.Glob(filepath.Join(folder, "*.blk")) // the pattern is a good one
	for _, b := range blocks {
		if info, err := os.Stat(b); err != nil || info.Size() > 0 {
			return true
		}
	}
	return false
}

func checkConfig(o *Options, c *jetstream.StreamConfig) error {
	switch {
	case c.Metadata[restoring] != "":
		return parley.Refuse(parley.CorruptLog, "the journal's restore was not finished").
			WithHint("restore the backup again, into a new folder")
	case len(c.Subjects) != 1 || c.Subjects[0] != o.subject() || c.Storage != jetstream.FileStorage ||
		c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxAge > 0 || c.MaxMsgsPerSubject > 0 || c.Retention != jetstream.LimitsPolicy:
		return parley.Refuse(parley.InvalidArgument, "stream %s is set up as no journal may be: it can forget", c.Name)
	}
	return nil
}

// checkState finds what the server itself admits to have lost.
func checkState(s jetstream.StreamState) error {
	switch {
	case s.LastSeq == 0:
		return nil
	case s.FirstSeq != 1:
		return lost(1, "is missing: the journal begins with commit %d", s.FirstSeq)
	case len(s.Deleted) > 0:
		return lost(s.Deleted[0], "is missing, one of %d that are", len(s.Deleted))
	case s.Msgs != s.LastSeq:
		return lost(s.LastSeq, "or one before it is missing: there are %d", s.Msgs)
	}
	return nil
}

// lost is CORRUPT_LOG for a commit.
func lost(number uint64, format string, args ...any) *parley.Error {
	e := parley.Refuse(parley.CorruptLog, "commit %d: %s", number, fmt.Sprintf(format, args...))
	return e.WithHint("stop the node, keep a copy of its folder, and restore a backup into a new one; parley verify says what is whole")
}
