package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/zstd"

	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
)

// Reader reads a segment. It is safe for concurrent use.
type Reader struct {
	name string
	file io.ReaderAt
	end  io.Closer
	zstd *zstd.Decoder
	foot *footer
	seg  Segment

	mu     sync.Mutex // holds recent
	recent [recentBlocks]frames
	turn   int
}

// recentBlocks is the number of blocks that a reader keeps.
const recentBlocks = 4

// frames are those of a block, from its first commit on.
type frames struct {
	block int
	list  [][]byte // nil: no block
}

// Open opens a segment, and checks that it is the one that is wanted. The zero Segment accepts any. It fails with
// ErrDamaged for any other file, and with fs.ErrNotExist if there is none.
func Open(path string, want Segment) (*Reader, error) {
	f, err := regular.Open(path, os.O_RDONLY)
	if errors.Is(err, regular.ErrNot) {
		err = damaged("%s is not a regular file", filepath.Base(path))
	}
	if err != nil {
		return nil, fmt.Errorf("open a segment: %w", err)
	}
	info, err := f.Stat()
	var r *Reader
	if err == nil {
		r, err = NewReader(f, info.Size(), want)
	}
	if err != nil {
		_ = f.Close() // it was only read
		return nil, fmt.Errorf("open segment %s: %w", filepath.Base(path), err)
	}
	r.name, r.end = filepath.Base(path), f
	return r, nil
}

// NewReader returns a reader of a segment of a size, and checks it as Open does. The file stays the caller's.
func NewReader(file io.ReaderAt, size int64, want Segment) (*Reader, error) {
	if size < int64(len(magic)+headerSize+entrySize+tailSize) || size > maxFile {
		return nil, damaged("it has %d bytes", size)
	}
	head, tail := make([]byte, len(magic)), make([]byte, tailSize)
	if err := readAt(file, head, 0); err != nil {
		return nil, err
	}
	if err := readAt(file, tail, size-int64(tailSize)); err != nil {
		return nil, err
	}
	if string(head) == string(tail[tailSize-len(magic):]) { // else one of them is damaged
		if err := CheckFormat(head, magic); err != nil {
			return nil, err
		}
	}
	if string(head) != magic {
		return nil, damaged("it begins in another way")
	}
	n, err := footerSize(size, tail)
	if err != nil {
		return nil, err
	}
	table := make([]byte, n)
	if err := readAt(file, table, size-int64(tailSize)-n); err != nil {
		return nil, err
	}
	digest := events.Hash(tail)
	if want != (Segment{}) && want.Digest != digest {
		return nil, damaged("its digest is not the recorded one")
	}
	foot, err := decodeFooter(table, digest, size)
	if err != nil {
		return nil, err
	}
	seg := foot.segment(size, digest)
	if want != (Segment{}) && want != seg {
		return nil, damaged("it is not the recorded one")
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxRaw), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("open a segment: %w", err)
	}
	return &Reader{file: file, foot: foot, seg: seg, zstd: dec}, nil
}

func readAt(file io.ReaderAt, b []byte, at int64) error {
	switch n, err := file.ReadAt(b, at); {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return damaged("it is cut")
	default:
		return fmt.Errorf("read a segment: %w", err)
	}
}

// Segment returns the description of the segment.
func (r *Reader) Segment() Segment { return r.seg }

// Node returns the node whose commits the segment has.
func (r *Reader) Node() capabilities.NodeID { return r.foot.node }

// Close closes the file. Later reads fail.
func (r *Reader) Close() error {
	if r.end == nil {
		return nil
	}
	return r.end.Close()
}

// Frame returns the frame of a commit. It is not to be changed. ErrDamaged reports damage of its block.
func (r *Reader) Frame(number uint64) ([]byte, error) {
	i, ok := r.foot.find(number)
	if !ok {
		return nil, fmt.Errorf("segment %s: commit %d is not in it", r.name, number)
	}
	list, err := r.block(i)
	if err != nil {
		return nil, err
	}
	return list[number-r.foot.blocks[i].first], nil
}

// block returns the frames of a block, which it keeps for a while.
func (r *Reader) block(i int) ([][]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.recent {
		if f.list != nil && f.block == i {
			return f.list, nil
		}
	}
	list, err := r.read(i)
	if err != nil {
		return nil, err
	}
	r.recent[r.turn] = frames{block: i, list: list}
	r.turn = (r.turn + 1) % recentBlocks
	return list, nil
}

// read reads the frames of a block and checks all of it.
func (r *Reader) read(i int) ([][]byte, error) {
	b := &r.foot.blocks[i]
	wrong := func(format string, args ...any) error {
		last := b.first + uint64(b.count) - 1
		return fmt.Errorf("segment %s, block %d with commits %d to %d: %w", r.name, i+1, b.first, last, damaged(format, args...))
	}
	packed := make([]byte, b.size)
	if err := readAt(r.file, packed, b.offset); err != nil {
		return nil, fmt.Errorf("segment %s, block %d: %w", r.name, i+1, err)
	}
	if events.Hash(sha256.Sum256(packed)) != b.digest {
		return nil, wrong("its digest is another")
	}
	raw, err := r.zstd.DecodeAll(packed, make([]byte, 0, b.raw))
	if err != nil || len(raw) != int(b.raw) {
		return nil, wrong("it cannot be unpacked: %v", err)
	}
	list := make([][]byte, 0, b.count)
	room := make([]byte, 0, len(raw)+int(b.count)*2*hashSize)
	hash := r.foot.before(i)
	for number := b.first; len(list) < int(b.count); number++ {
		unsealed, rest, ok := takeStored(room, raw, hash)
		if !ok {
			return nil, wrong("commit %d is cut", number)
		}
		frame, c, end, err := events.Seal(unsealed)
		unknown, newer := errors.AsType[*events.UnknownError](err)
		switch {
		case newer:
			return nil, fmt.Errorf("%w: commit %d: %w", ErrFormat, number, unknown)
		case err != nil:
			return nil, wrong("commit %d: %v", number, err)
		case c.Number != number || c.Node != r.foot.node:
			return nil, wrong("commit %d is another", number)
		case number == r.seg.First && c.At != r.seg.From || number == r.seg.Last && c.At != r.seg.To:
			return nil, wrong("commit %d is of another time", number)
		}
		list, room, raw, hash = append(list, frame[:len(frame):len(frame)]), frame[len(frame):], rest, end
	}
	if len(raw) != 0 || hash != b.end {
		return nil, wrong("its commits are others")
	}
	return list, nil
}

// Each calls fn with the frames from first to last that the segment has, in order. It stops at an error and returns it.
// Frames are not to be changed.
func (r *Reader) Each(ctx context.Context, first, last uint64, fn func(number uint64, frame []byte) error) error {
	first, last = max(first, r.seg.First), min(last, r.seg.Last)
	for number := first; number <= last; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		i, _ := r.foot.find(number)
		list, err := r.read(i)
		if err != nil {
			return err
		}
		for _, frame := range list[number-r.foot.blocks[i].first:] {
			if number > last {
				break
			}
			if err := fn(number, frame); err != nil {
				return err
			}
			number++
		}
	}
	return nil
}

// Verify reads the whole segment. Every byte of the file is checked against the digest in Segment.
func (r *Reader) Verify(ctx context.Context) error {
	return r.Each(ctx, r.seg.First, r.seg.Last, func(uint64, []byte) error { return nil })
}
