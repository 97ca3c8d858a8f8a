package persistence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley"
	"parley/events"
)

// restoreWindow bounds the commits that are sent and not acknowledged while restoring.
const restoreWindow = 256

// Restore writes a backup into a folder that never had a journal; it refuses any other with INVALID_ARGUMENT. The
// journal is marked as unfinished, and does not open, until all of it is on disk and checked. A failed restore removes
// its journal if it can.
func Restore(ctx context.Context, o Options, r io.Reader) (err error) {
	o, err = o.withDefaults()
	if err != nil {
		return err
	}
	high, err := openHighWater(o.Folder, o.Node)
	if err != nil {
		return fmt.Errorf("restore the journal: %w", err)
	}
	defer func() { err = errors.Join(err, high.close()) }()
	if high.last.number > 0 {
		return notEmpty(high.last.number)
	}
	end, err := load(ctx, &o, r)
	if err != nil {
		return fmt.Errorf("restore the journal: %w", err)
	}
	l, err := connect(&o)
	if err != nil {
		return fmt.Errorf("restore the journal: %w", err)
	}
	defer l.close()
	if err := l.finish(ctx, end, high); err != nil {
		return errors.Join(fmt.Errorf("restore the journal: %w", err), l.discard(ctx))
	}
	return nil
}

func notEmpty(commits uint64) error {
	return parley.Refuse(parley.InvalidArgument, "there is a journal of %d commits already", commits).
		WithHint("restore into a new folder, or an empty stream")
}

// load stores the commits of a backup, and flushes them together at the end.
func load(ctx context.Context, o *Options, r io.Reader) (mark, error) {
	l, err := connect(o)
	if err != nil {
		return mark{}, err
	}
	defer l.close()
	if err := l.createUnfinished(ctx); err != nil {
		return mark{}, err
	}
	end, err := l.storeAll(ctx, r)
	if err != nil {
		return mark{}, errors.Join(err, l.discard(ctx))
	}
	if l.server == nil {
		return end, nil
	}
	l.close()
	return end, flushTree(journalFolder(o.Folder))
}

func (l *link) createUnfinished(ctx context.Context) error {
	s, err := l.js.Stream(ctx, l.o.streamName())
	if err == nil {
		return notEmpty(s.CachedInfo().State.LastSeq)
	}
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return unreachable(err)
	}
	if err := l.mayCreate(mark{}); err != nil {
		return err
	}
	config := streamConfig(l.o)
	config.Metadata = map[string]string{restoring: "unfinished"}
	if _, err := l.js.CreateStream(ctx, config); err != nil {
		return unreachable(err)
	}
	return nil
}

// storeAll stores the frames of a backup, restoreWindow at a time.
func (l *link) storeAll(ctx context.Context, r io.Reader) (mark, error) {
	js, err := jetstream.New(l.conn, jetstream.WithPublishAsyncMaxPending(restoreWindow))
	if err != nil {
		return mark{}, unreachable(err)
	}
	var last jetstream.PubAckFuture
	end, err := readBackup(r, l.o.Node, func(m mark, bytes []byte) error {
		msg := nats.NewMsg(l.o.subject())
		msg.Header.Set(nats.ExpectedLastSeqHdr, strconv.FormatUint(m.number-1, 10))
		msg.Data = bytes
		if last, err = js.PublishMsgAsync(msg); err != nil {
			return unreachable(err)
		}
		return ctx.Err()
	})
	if err != nil || last == nil {
		return end, err
	}
	select { // each fails if the one before did, so the last result is that of all
	case a := <-last.Ok():
		if a.Sequence != end.number {
			return end, lost(end.number, "was stored as message %d", a.Sequence)
		}
	case err := <-last.Err():
		return end, unreachable(err)
	case <-ctx.Done():
		return end, context.Cause(ctx)
	}
	return end, nil
}

// finish reads and checks the stored log, and removes the mark of an unfinished restore.
func (l *link) finish(ctx context.Context, end mark, high *highWater) error {
	c := chainFrom(l.o.Node, 1)
	x := newIndex(l.o.Node)
	err := l.each(ctx, 1, end.number, func(number uint64, bytes []byte) error {
		var commit *events.Commit
		commit, err := c.follow(number, bytes)
		if err == nil {
			err = c.confirm(end)
		}
		if err == nil {
			err = x.add(commit)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := high.write(end); err != nil {
		return readOnly("the high-water mark cannot be written", err)
	}
	if _, err := l.js.UpdateStream(ctx, streamConfig(l.o)); err != nil {
		return unreachable(err)
	}
	return l.o.flushBeside()
}

// discard removes an unfinished journal and closes the link. It stops the embedded server first, which would remove
// files in the background, even those of the next server in that folder.
func (l *link) discard(ctx context.Context) error {
	var err error
	if l.server != nil {
		l.close()
		err = os.RemoveAll(filepath.Dir(blockFolder(l.o)))
	} else {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		err = l.js.DeleteStream(ctx, l.o.streamName())
	}
	if err != nil {
		return fmt.Errorf("remove the unfinished journal: %w", err)
	}
	return nil
}

// flushTree flushes every file and folder under root.
func flushTree(root string) error {
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
	if err != nil {
		return readOnly("the journal's files cannot be flushed", err)
	}
	return nil
}
