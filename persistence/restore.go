package persistence

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley"
	"parley/events"
	"parley/persistence/archive"
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
	if high.last.Number > 0 {
		return notEmpty(high.last.Number)
	}
	if _, err := os.Lstat(filepath.Join(o.Folder, archiveFolder)); err == nil {
		return parley.Refuse(parley.InvalidArgument, "there is an archive of a journal already").WithHint("restore into a new folder")
	}
	b, err := openBackup(r, o.Node)
	if err == nil && b.manifest == nil {
		err = restoreFrames(ctx, &o, b, nil, high)
	} else if err == nil {
		err = restoreArchived(ctx, &o, b, high)
	}
	if err != nil {
		return fmt.Errorf("restore the journal: %w", err)
	}
	return nil
}

// restoreArchived restores a backup with an archive. A failed restore removes the archive.
func restoreArchived(ctx context.Context, o *Options, b *backupReader, high *highWater) error {
	a := newArchived(o, nil)
	o.archived = b.manifest.End.Number
	err := b.storeArchive(ctx, a)
	if err == nil {
		err = restoreFrames(ctx, o, b, a, high)
	}
	a.close()
	if err != nil {
		return errors.Join(err, os.RemoveAll(a.folder))
	}
	return nil
}

// restoreFrames stores the frames of a backup behind its archive, which is nil if it has none.
func restoreFrames(ctx context.Context, o *Options, b *backupReader, a *archived, high *highWater) error {
	end, err := load(ctx, o, b)
	if err != nil {
		return err
	}
	l, err := connect(o)
	if err != nil {
		return err
	}
	defer l.close()
	if err := claim(l); err != nil {
		return err
	}
	if err := l.finish(ctx, a, end, high); err != nil {
		return errors.Join(err, l.discard(ctx))
	}
	return nil
}

func notEmpty(commits uint64) error {
	return parley.Refuse(parley.InvalidArgument, "there is a journal of %d commits already", commits).
		WithHint("restore into a new folder, or an empty stream")
}

// load stores the commits of a backup, and flushes them together at the end.
func load(ctx context.Context, o *Options, b *backupReader) (Mark, error) {
	fast := *o
	fast.unsynced = true
	l, err := connect(&fast)
	if err != nil {
		return Mark{}, err
	}
	defer l.close()
	if err := claim(l); err != nil {
		return Mark{}, err
	}
	if err := l.createUnfinished(ctx); err != nil {
		return Mark{}, err
	}
	end, err := l.storeAll(ctx, b)
	if err != nil {
		return Mark{}, errors.Join(err, l.discard(ctx))
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
	if err := l.mayCreate(Mark{}); err != nil {
		return err
	}
	config := streamConfig(l.o)
	config.Metadata = map[string]string{restoring: "unfinished"}
	if l.o.archived > 0 {
		config.FirstSeq = l.o.archived + 1
	}
	if _, err := l.js.CreateStream(ctx, config); err != nil {
		return unreachable(err)
	}
	return nil
}

// restoreStall is the longest time for which a restore waits for the disk to take the commits under way.
const restoreStall = 2 * time.Minute

// storeAll stores the frames of a backup, restoreWindow at a time.
func (l *link) storeAll(ctx context.Context, b *backupReader) (Mark, error) {
	js, err := jetstream.New(l.conn, jetstream.WithPublishAsyncMaxPending(restoreWindow))
	if err != nil {
		return Mark{}, unreachable(err)
	}
	var last jetstream.PubAckFuture
	end, err := b.readFrames(func(m Mark, frame []byte) error {
		msg := nats.NewMsg(l.o.subject())
		msg.Header.Set(nats.ExpectedLastSeqHdr, strconv.FormatUint(m.Number-1, 10))
		msg.Data = frame
		if last, err = js.PublishMsgAsync(msg, jetstream.WithStallWait(restoreStall)); err != nil {
			return unreachable(err)
		}
		return ctx.Err()
	}, func(digest FileDigest, content []byte) error {
		return storeFile(ctx, l, nil, digest, int64(len(content)), bytes.NewReader(content))
	})
	if err != nil || last == nil {
		return end, err
	}
	select { // each fails if the one before did, so the last result is that of all
	case a := <-last.Ok():
		if a.Sequence != end.Number {
			return end, lost(end.Number, "was stored as message %d", a.Sequence)
		}
	case err := <-last.Err():
		return end, unreachable(err)
	case <-ctx.Done():
		return end, context.Cause(ctx)
	}
	return end, nil
}

// finish reads and checks the stored log, and removes the mark of an unfinished restore.
func (l *link) finish(ctx context.Context, a *archived, end Mark, high *highWater) (err error) {
	c, x := chainFrom(l.o.Node, 1), newIndex(l.o.Node)
	if a != nil {
		c.last = a.end()
		if x, err = indexFrom(l.o.Node, a.checkpoint); err != nil {
			return err
		}
	}
	err = l.each(ctx, c.last.Number+1, end.Number, func(number uint64, bytes []byte) error {
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
	if a != nil {
		if err := a.keep(ctx, l, a.current()); err != nil {
			return err
		}
	}
	if err := high.write(end); err != nil {
		return readOnly("the high-water mark cannot be written", err)
	}
	if _, err := l.js.UpdateStream(ctx, streamConfig(l.o)); err != nil {
		return unreachable(err)
	}
	return l.o.flushBeside()
}

// discard removes an unfinished journal and closes the link. It stops the embedded server first. The server would
// remove files in the background, even those of the next server in that folder.
func (l *link) discard(ctx context.Context) error {
	var err error
	if l.server != nil {
		l.close()
		err = cmp.Or(os.RemoveAll(filepath.Dir(blockFolder(l.o))), os.RemoveAll(filepath.Dir(blockFolderOf(l.o, l.o.filesName()))))
	} else {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		if err = l.js.DeleteStream(ctx, l.o.filesName()); errors.Is(err, jetstream.ErrStreamNotFound) {
			err = nil
		}
		err = cmp.Or(l.js.DeleteStream(ctx, l.o.streamName()), err)
	}
	if err != nil {
		return fmt.Errorf("remove the unfinished journal: %w", err)
	}
	return nil
}

// flushTree flushes every file and folder under root.
func flushTree(root string) error {
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return nil
		}
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

func (b *backupReader) readManifest() error {
	var size [4]byte
	_, err := io.ReadFull(b.in, size[:])
	n := binary.BigEndian.Uint32(size[:])
	if err != nil || n > maxManifest {
		return notWhole(err, "the backup ends in the list of its archive")
	}
	text, err := readExactly(b.in, n)
	if err == nil {
		b.manifest, err = archive.DecodeManifest(text)
	}
	if errors.Is(err, archive.ErrFormat) {
		return newer("the list of the backup's archive", err)
	}
	if errors.Is(err, archive.ErrDamaged) || err == nil && (b.manifest.Node != b.node || !b.manifest.Recorded) {
		return notWhole(nil, "the list of the backup's archive is damaged or of another node: %v", err)
	}
	if err != nil {
		return notWhole(err, "the backup ends in the list of its archive")
	}
	return nil
}

// storeArchive writes the files of the backup's archive into an empty folder of an archive, and checks them.
func (b *backupReader) storeArchive(ctx context.Context, a *archived) error {
	m := b.manifest
	if err := MakeFolder(a.folder); err != nil {
		return readOnly("the archive cannot be written", err)
	}
	path := a.path(archive.CheckpointName(m.End.Number))
	size, err := b.readLength()
	if err != nil || size != m.CheckpointBytes {
		return notWhole(err, "the checkpoint of the backup's archive is not whole")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return readOnly("the archive cannot be written", err)
	}
	_, err = io.CopyN(f, b.in, size)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return notWhole(err, "the backup ends in the checkpoint of its archive")
	}
	for {
		var place [4]byte
		if _, err := io.ReadFull(b.in, place[:]); err != nil {
			return notWhole(err, "the backup ends in its archive")
		}
		i := binary.BigEndian.Uint32(place[:])
		if i == noSegment {
			break
		}
		size, err := b.readLength()
		if err != nil || uint64(i) >= uint64(len(m.Segments)) || size != m.Segments[i].Bytes {
			return notWhole(err, "the backup's archive has a segment that it does not list")
		}
		part := &io.LimitedReader{R: b.in, N: size}
		if err := a.store(ctx, m.Segments[i], part); err != nil {
			return fmt.Errorf("read the backup: %w", err)
		}
	}
	if a.use(m); a.checkpoint == nil {
		return notWhole(nil, "the checkpoint of the backup's archive is damaged")
	}
	if err := archive.WriteManifest(a.folder, m); err != nil {
		return readOnly("the archive cannot be written", err)
	}
	return nil
}

func (b *backupReader) readLength() (int64, error) {
	var size [8]byte
	_, err := io.ReadFull(b.in, size[:])
	return int64(binary.BigEndian.Uint64(size[:])), err
}
