package persistence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"parley/capabilities"
	"parley/events"
)

const (
	indexEvery  = 50_000 // commits between snapshots of the index
	indexObject = "index"
	indexMagic  = "PLYINDX\x01"
)

// indexer stores snapshots of the index, until ctx ends.
func (j *Journal) indexer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.pages:
		}
		if err := j.saveIndex(ctx); err != nil && ctx.Err() == nil {
			j.log.Warn("the index snapshot cannot be stored", "error", err)
		}
	}
}

func (j *Journal) saveIndex(ctx context.Context) error {
	at, x := j.copyIndex()
	if at.number == 0 {
		return nil
	}
	return j.o.step(StepIndex, func() error {
		return j.connection().putObject(ctx, jetstream.ObjectMeta{Name: indexObject}, x.encode(at.mark))
	})
}

// encode returns the snapshot of the index after a commit.
func (x *index) encode(at mark) []byte {
	size := 128
	for _, e := range x.entries {
		size += 64 + len(e.steps)
	}
	b := make([]byte, 0, size)
	b = append(b, indexMagic...)
	b = binary.BigEndian.AppendUint64(b, at.number)
	b = append(b, at.hash[:]...)
	b = append(b, x.node[:]...)
	for _, n := range []uint64{x.events, x.sections, uint64(len(x.entries))} {
		b = binary.AppendUvarint(b, n)
	}
	for who, e := range x.entries {
		b = append(b, who[:]...)
		for _, n := range []uint64{e.Version, uint64(e.Summary.Open), uint64(e.Summary.Outbox),
			uint64(e.Summary.Deadline), e.last, uint64(len(e.steps))} {
			b = binary.AppendUvarint(b, n)
		}
		b = append(b, e.steps...)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

var errIndexDamaged = errors.New("the index snapshot is damaged")

// decodeIndex reads the result of encode.
func decodeIndex(node capabilities.NodeID, b []byte) (*index, mark, error) {
	const header = 8 + 8 + 32 + 32
	end := len(b) - sha256.Size
	if end < header || string(b[:8]) != indexMagic || sha256.Sum256(b[:end]) != [32]byte(b[end:]) ||
		capabilities.NodeID(b[48:header]) != node {
		return nil, mark{}, errIndexDamaged
	}
	at := mark{number: binary.BigEndian.Uint64(b[8:]), hash: events.Hash(b[16:48])}
	x := newIndex(node)
	r := bytes.NewReader(b[header:end])
	var n uint64
	if err := readVarints(r, &x.events, &x.sections, &n); err != nil {
		return nil, mark{}, err
	}
	for range n {
		if err := x.decodeEntry(r); err != nil {
			return nil, mark{}, err
		}
	}
	return x, at, nil
}

func (x *index) decodeEntry(r *bytes.Reader) error {
	var (
		who                             ulid.ULID
		e                               entry
		open, outbox, deadline, stepped uint64
	)
	if _, err := io.ReadFull(r, who[:]); err != nil {
		return errIndexDamaged
	}
	if err := readVarints(r, &e.Version, &open, &outbox, &deadline, &e.last, &stepped); err != nil {
		return err
	}
	if stepped > uint64(r.Len()) {
		return errIndexDamaged
	}
	e.Summary = events.Summary{Open: uint32(open), Outbox: uint32(outbox), Deadline: capabilities.Time(deadline)}
	e.steps = make([]byte, stepped)
	if _, err := io.ReadFull(r, e.steps); err != nil {
		return errIndexDamaged
	}
	x.entries[who] = &e
	return nil
}

func readVarints(r *bytes.Reader, into ...*uint64) (err error) {
	for _, n := range into {
		if *n, err = binary.ReadUvarint(r); err != nil {
			return errIndexDamaged
		}
	}
	return nil
}

// loadIndex reads the index snapshot, and returns it with the number of its commit. If the snapshot cannot be used, it
// returns an empty index and 0.
func (j *Journal) loadIndex(ctx context.Context, last uint64) (*index, uint64) {
	none := newIndex(j.o.Node)
	l := j.connection()
	if last == 0 {
		return none, 0
	}
	if _, err := l.js.ObjectStore(ctx, j.o.bucketName()); err != nil {
		return none, 0
	}
	b, err := l.getObject(ctx, indexObject)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return none, 0
	}
	var x *index
	var at mark
	if err == nil {
		x, at, err = decodeIndex(j.o.Node, b)
	}
	if err == nil {
		err = l.isFrom(ctx, at, last)
	}
	if err != nil {
		j.discarded.Add(1)
		j.log.Warn("the index snapshot cannot be used; reading the whole journal", "error", err)
		return none, 0
	}
	return x, at.number
}

// isFrom checks that a snapshot that was made after a commit was made from this log.
func (l *link) isFrom(ctx context.Context, at mark, last uint64) error {
	if at.number == 0 || at.number > last {
		return errors.New("it is newer than the log")
	}
	b, err := l.fetchSurely(ctx, at.number)
	if err != nil {
		return err
	}
	_, hash, err := decode(at.number, b)
	if err == nil && hash != at.hash {
		err = errors.New("it was made from another log")
	}
	return err
}
