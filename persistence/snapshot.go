package persistence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"parley/capabilities"
)

// derivedTimeout bounds each use of the store of snapshots. The client can block for ever if the store is damaged.
const derivedTimeout = 10 * time.Second

func (l *link) bucket(ctx context.Context) (jetstream.ObjectStore, error) {
	b, err := l.js.ObjectStore(ctx, l.o.bucketName())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		if err := l.prepare(ctx, streamOf(l.o.bucketName())); err != nil {
			return nil, err
		}
		if l.server == nil {
			return l.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
				Bucket: l.o.bucketName(), Description: bucketDescription, Storage: jetstream.FileStorage, Replicas: l.o.Replicas,
			})
		}
		_, err = l.js.CreateStream(ctx, jetstream.StreamConfig{ // as the client makes it, but that nothing is flushed
			Name:        streamOf(l.o.bucketName()),
			Subjects:    []string{piecesIn(l.o.bucketName()) + ">", descriptionsIn(l.o.bucketName()) + ">"},
			Description: bucketDescription,
			Storage:     jetstream.FileStorage,
			Discard:     jetstream.DiscardNew,
			MaxBytes:    -1,
			AllowRollup: true,
			AllowDirect: true,
			PersistMode: jetstream.AsyncPersistMode,
		})
		if err == nil {
			b, err = l.js.ObjectStore(ctx, l.o.bucketName())
		}
	}
	return b, err
}

const bucketDescription = "snapshots of a Parley node: derived from its journal"

// snapshots are the stored states of mailboxes. They are derived from the log.
type snapshots struct {
	o         *Options
	log       *slog.Logger
	line      func() *link
	directory *directory
	reader    *reader
	archived  *archived

	discarded atomic.Int64 // states and indexes that could not be used since Open
	objects   *objects     // of the bucket, if more are there than are described; nil after the sweep
	silence   silence      // of an external server
}

// DiscardedSnapshots returns the number of snapshots that could not be used since Open.
func (s *snapshots) DiscardedSnapshots() int { return int(s.discarded.Load()) }

// SaveSnapshot stores the state of a mailbox at a durable version, so that Load reads only the events after it. After a
// failure, Load reads more events.
func (s *snapshots) SaveSnapshot(ctx context.Context, mailbox capabilities.ID, version uint64, state []byte) error {
	number, err := s.directory.commitOf(mailbox, version)
	if err != nil {
		return err
	}
	if number <= s.archived.end().Number {
		return nil // the checkpoint has a state that is as new
	}
	_, hash, err := s.reader.commit(ctx, number)
	if err != nil {
		return fmt.Errorf("snapshot of mailbox %s: %w", mailbox.ULID, err)
	}
	sealed := sealSnapshot(version, Mark{Number: number, Hash: hash}, state)
	if err := s.putObject(ctx, jetstream.ObjectMeta{Name: mailbox.ULID.String()}, sealed); err != nil {
		return readOnly(fmt.Sprintf("the snapshot of mailbox %s cannot be stored", mailbox.ULID), err)
	}
	s.directory.setSnapshot(mailbox.ULID, version)
	return nil
}

// SnapshotPart is a part of a mailbox's snapshot. It is stored under the SHA-256 digest of its bytes.
type SnapshotPart struct {
	Sum  [sha256.Size]byte
	Data []byte
}

// A part is one message of the embedded server's bucket, beside the pieces of objects. On an external server it is an
// object: a copy of the stream may lack a message that the leader has.
const (
	partsAtOnce = 32      // parts that are on their way to the server together
	maxPart     = 1 << 20 // a larger part is an object
)

// partName returns the name of the object with a part of a mailbox's snapshot.
func partName(mailbox ulid.ULID, sum [sha256.Size]byte) string {
	return mailbox.String() + "." + hex.EncodeToString(sum[:])
}

// partSubject returns the subject of the message with a part.
func partSubject(bucket string, mailbox ulid.ULID, sum [sha256.Size]byte) string {
	return piecesIn(bucket) + partName(mailbox, sum)
}

// SaveSnapshotParts stores parts of a mailbox's snapshot. The snapshot that refers to them is stored
// later.
func (s *snapshots) SaveSnapshotParts(ctx context.Context, mailbox capabilities.ID, parts []SnapshotPart) error {
	for some := range slices.Chunk(parts, partsAtOnce) {
		err := s.o.step(StepSnapshot, func() error {
			return s.line().putParts(ctx, mailbox.ULID, some)
		})
		if err != nil {
			return readOnly(fmt.Sprintf("a part of the snapshot of mailbox %s cannot be stored", mailbox.ULID), err)
		}
	}
	return nil
}

// putParts stores parts, and blocks until the server has acknowledged all.
func (l *link) putParts(ctx context.Context, mailbox ulid.ULID, parts []SnapshotPart) error {
	ctx, cancel := context.WithTimeout(ctx, derivedTimeout)
	defer cancel()
	if _, err := l.bucket(ctx); err != nil {
		return err
	}
	var sent []jetstream.PubAckFuture
	for _, p := range parts {
		if l.server == nil || len(p.Data) > maxPart {
			if err := l.putObject(ctx, jetstream.ObjectMeta{Name: partName(mailbox, p.Sum)}, p.Data); err != nil {
				return err
			}
			continue
		}
		ack, err := l.js.PublishAsync(partSubject(l.o.bucketName(), mailbox, p.Sum), p.Data)
		if err != nil {
			return err
		}
		sent = append(sent, ack)
	}
	for _, ack := range sent {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// SnapshotPart returns a part of a mailbox's snapshot. It fails if the part is missing or damaged, and
// with ErrSilent if an external server does not answer.
func (s *snapshots) SnapshotPart(ctx context.Context, mailbox capabilities.ID, sum [sha256.Size]byte) ([]byte, error) {
	part, err := s.silence.ask(ctx, s.o, func(ctx context.Context) ([]byte, error) { return s.line().getPart(ctx, mailbox.ULID, sum) })
	if errors.Is(err, ErrSilent) {
		return nil, err
	}
	if err == nil && sha256.Sum256(part) != sum {
		err = errors.New("it is damaged")
	}
	if err != nil {
		if !isClosed(err) && s.o.slow.err() == nil {
			s.discarded.Add(1)
		}
		return nil, fmt.Errorf("a part of the snapshot of mailbox %s: %w", mailbox.ULID, err)
	}
	return part, nil
}

// getPart reads a part, or an object with one.
func (l *link) getPart(ctx context.Context, mailbox ulid.ULID, sum [sha256.Size]byte) ([]byte, error) {
	if l.server != nil {
		ctx, cancel := context.WithTimeout(ctx, derivedTimeout)
		defer cancel()
		s, err := l.js.Stream(ctx, streamOf(l.o.bucketName()))
		if err != nil {
			return nil, err
		}
		m, err := s.GetLastMsgForSubject(ctx, partSubject(l.o.bucketName(), mailbox, sum))
		if err == nil {
			return m.Data, nil
		}
		if !errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, err
		}
	}
	return l.getObject(ctx, partName(mailbox, sum))
}

// RemoveSnapshotPart removes a part of a mailbox's snapshot to which no snapshot refers any more.
func (s *snapshots) RemoveSnapshotPart(ctx context.Context, mailbox capabilities.ID, sum [sha256.Size]byte) {
	l := s.line()
	if l.server != nil {
		l.purge(ctx, partSubject(l.o.bucketName(), mailbox.ULID, sum))
	}
	l.deleteObject(ctx, partName(mailbox.ULID, sum))
}

// FoundParts returns some of the parts of a mailbox's snapshots that were stored when the journal was opened. It
// returns no part twice. A caller that knows which of them are in use removes the others: parts are left over if the
// process ends between storing them and the snapshot. So are those of the snapshot before, if it ends before it has
// removed them.
func (s *snapshots) FoundParts(mailbox capabilities.ID, most int) [][sha256.Size]byte {
	s.directory.mu.Lock()
	defer s.directory.mu.Unlock()
	all := s.directory.parts[mailbox.ULID]
	if len(all) <= most {
		delete(s.directory.parts, mailbox.ULID)
		return all
	}
	s.directory.parts[mailbox.ULID] = all[most:]
	return all[:most:most]
}

// snapshot reads the snapshot of a mailbox. It returns none if the snapshot cannot be read, is newer than the log,
// or was made from another log.
func (s *snapshots) snapshot(ctx context.Context, mailbox capabilities.ID, newest uint64) ([]byte, uint64) {
	sealed, err := s.silence.ask(ctx, s.o, func(ctx context.Context) ([]byte, error) { return s.getObject(ctx, mailbox.ULID.String()) })
	if errors.Is(err, ErrSilent) {
		return nil, 0
	}
	if err != nil {
		s.discard(ctx, mailbox, "a snapshot cannot be read; replaying", err)
		return nil, 0
	}
	version, at, state, ok := openSnapshot(sealed)
	if !ok || version > newest {
		s.discarded.Add(1)
		s.log.Warn("a snapshot is damaged or newer than the log; replaying", "mailbox", mailbox.ULID)
		return nil, 0
	}
	number, err := s.directory.commitOf(mailbox, version)
	if err == nil && number == at.Number {
		hash, err := s.reader.hash(ctx, number)
		if err == nil && hash == at.Hash {
			s.directory.setSnapshot(mailbox.ULID, version)
			return state, version
		}
		if err != nil {
			s.discard(ctx, mailbox, "a snapshot cannot be compared with the log; replaying", err)
			return nil, 0
		}
	}
	s.discarded.Add(1)
	s.log.Warn("a snapshot was made from another log; replaying", "mailbox", mailbox.ULID)
	return nil, 0
}

// discard logs and counts a snapshot that cannot be used. It does neither for one that is not to blame: a read that was given up, a
// connection that is closed, a disk that hangs.
func (s *snapshots) discard(ctx context.Context, mailbox capabilities.ID, what string, err error) {
	if ctx.Err() != nil || isClosed(err) || s.o.slow.err() != nil {
		s.log.Info("a snapshot cannot be asked for now", "mailbox", mailbox.ULID, "error", err)
		return
	}
	s.discarded.Add(1)
	s.log.Warn(what, "mailbox", mailbox.ULID, "error", err)
}

// isClosed reports whether an error is of a connection that is closed, as it is while the journal is opened again.
func isClosed(err error) bool {
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining)
}

// putObject stores an object of the store of snapshots.
func (s *snapshots) putObject(ctx context.Context, meta jetstream.ObjectMeta, data []byte) error {
	return s.o.step(StepSnapshot, func() error {
		return s.line().putObject(ctx, meta, data)
	})
}

func (s *snapshots) getObject(ctx context.Context, name string) ([]byte, error) {
	return s.line().getObject(ctx, name)
}

func (l *link) putObject(ctx context.Context, meta jetstream.ObjectMeta, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, derivedTimeout)
	defer cancel()
	b, err := l.bucket(ctx)
	if err != nil {
		return err
	}
	_, err = b.Put(ctx, meta, bytes.NewReader(data))
	return err
}

// The stream of a bucket, and the subjects in it.
func streamOf(bucket string) string       { return "OBJ_" + bucket }
func descriptionsIn(bucket string) string { return "$O." + bucket + ".M." }
func piecesIn(bucket string) string       { return "$O." + bucket + ".C." }

func descriptionOf(bucket, name string) string {
	return descriptionsIn(bucket) + base64.URLEncoding.EncodeToString([]byte(name))
}

func piecesOf(bucket string, o *jetstream.ObjectInfo) string { return piecesIn(bucket) + o.NUID }

// describe returns the stream of the bucket, and the description of an object in it. The client may have removed that
// object.
func (l *link) describe(ctx context.Context, name string) (jetstream.Stream, *jetstream.ObjectInfo, error) {
	bucket := l.o.bucketName()
	s, err := l.js.Stream(ctx, streamOf(bucket))
	if err != nil {
		return nil, nil, err
	}
	m, err := s.GetLastMsgForSubject(ctx, descriptionOf(bucket, name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		err = jetstream.ErrObjectNotFound
	}
	if err != nil {
		return nil, nil, err
	}
	info := new(jetstream.ObjectInfo)
	if err := json.Unmarshal(m.Data, info); err != nil {
		return nil, nil, err
	}
	return s, info, nil
}

// getObject reads an object with one request for its description, and one for each piece. The client's own way makes a
// consumer, for which the server reads all blocks of the bucket.
func (l *link) getObject(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, derivedTimeout)
	defer cancel()
	if l.server == nil { // a copy of the stream may lack a piece that the leader has
		b, err := l.bucket(ctx)
		if err != nil {
			return nil, err
		}
		return getRemote(ctx, b, name)
	}
	s, info, err := l.describe(ctx, name)
	if err == nil && info.Deleted {
		err = jetstream.ErrObjectNotFound
	}
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, min(info.Size, embeddedPayload))
	for next := uint64(1); uint64(len(data)) < info.Size; {
		piece, err := s.GetMsg(ctx, next, jetstream.WithGetMsgSubject(piecesOf(l.o.bucketName(), info)))
		if err != nil {
			return nil, err
		}
		data, next = append(data, piece.Data...), piece.Sequence+1
	}
	if uint64(len(data)) != info.Size {
		return nil, jetstream.ErrDigestMismatch
	}
	return data, nil
}

// deleteObject removes an object that is of no use any more: its pieces, and then its description. The client's own way
// leaves a description of each object that was removed.
func (l *link) deleteObject(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, derivedTimeout)
	defer cancel()
	bucket := l.o.bucketName()
	s, info, err := l.describe(ctx, name)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(piecesOf(bucket, info)))
	}
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(descriptionOf(bucket, name)))
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		l.o.Log.Debug("an object cannot be removed", "object", name, "error", err)
	}
}

// purge removes the messages of a subject of the bucket.
func (l *link) purge(ctx context.Context, subject string) {
	ctx, cancel := context.WithTimeout(ctx, derivedTimeout)
	defer cancel()
	s, err := l.js.Stream(ctx, streamOf(l.o.bucketName()))
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		l.o.Log.Debug("a part of a snapshot cannot be removed", "subject", subject, "error", err)
	}
}

// listSnapshots notes which mailboxes have snapshots, before the journal is in use. It removes a store that cannot be
// listed, which is damaged. New snapshots are made later.
func (s *snapshots) listSnapshots(ctx context.Context) {
	l := s.line()
	bucket := s.o.bucketName()
	subjects, err := l.listSubjects(ctx, bucket)
	if s.o.URL != "" && isUnanswered(err) {
		s.log.Warn("the server lists no snapshots; mailboxes are read from the log", "error", err)
		return
	}
	if err != nil {
		s.discarded.Add(1)
		s.log.Warn("the snapshots cannot be listed and are thrown away; replaying", "error", err)
		ctx, cancel := context.WithTimeout(ctx, derivedTimeout)
		defer cancel()
		if err := l.js.DeleteObjectStore(ctx, bucket); err != nil {
			s.log.Warn("the store of snapshots cannot be removed", "error", err)
		}
	}
	var names, pieces []string
	for subject := range subjects {
		if name, ok := strings.CutPrefix(subject, piecesIn(bucket)); ok && !s.directory.foundObject(name) {
			pieces = append(pieces, subject)
		}
		encoded, ok := strings.CutPrefix(subject, descriptionsIn(bucket))
		if name, err := base64.URLEncoding.DecodeString(encoded); ok && err == nil {
			names = append(names, string(name))
			s.directory.foundObject(string(name))
		}
	}
	if s.objects = nil; len(pieces) > len(names) { // but for objects that the client has removed, which have no pieces
		s.objects = &objects{names, pieces}
	}
}

// listing bounds the time of listing the snapshots.
const listing = 5 * time.Second

// listSubjects returns the subjects of a bucket, which the server knows without reading messages. It returns nothing if
// there is no bucket.
func (l *link) listSubjects(ctx context.Context, bucket string) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.o.listWithin)
	defer cancel()
	s, err := l.js.Stream(ctx, streamOf(bucket))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	in, err := s.Info(ctx, jetstream.WithSubjectFilter("$O."+bucket+".>"))
	if err != nil {
		return nil, err
	}
	return in.State.Subjects, nil
}

// objects are those of the bucket when the journal was opened.
type objects struct {
	names  []string
	pieces []string // subjects of their pieces
}

// sweepObjects removes pieces without a description: the process ended between storing the one and the other. Or it
// ended before it had removed the pieces of an older object. It removes nothing if it cannot read all descriptions.
func (s *snapshots) sweepObjects(ctx context.Context) {
	if s.objects == nil {
		return
	}
	left := map[string]bool{}
	for _, subject := range s.objects.pieces {
		left[subject] = true
	}
	for _, name := range s.objects.names {
		l := s.line()
		_, o, err := l.describe(ctx, name)
		if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			s.log.Debug("an object cannot be described", "object", name, "error", err)
			return
		}
		if err == nil {
			delete(left, piecesOf(s.o.bucketName(), o))
		}
	}
	for subject := range left {
		l := s.line()
		l.purge(ctx, subject)
	}
	s.objects = nil
}
