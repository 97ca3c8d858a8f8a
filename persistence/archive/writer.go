package archive

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
)

// temporary ends the name of a segment that is being written.
const temporary = ".tmp"

// Writer writes a segment. It is not safe for concurrent use.
type Writer struct {
	path string
	file *os.File
	zstd *zstd.Encoder
	foot footer
	last Mark
	size int64  // of the blocks that are written, with the magic
	raw  []byte // the block that is being filled
	room []byte // for a compressed block
	held uint32 // frames in raw
}

// Create begins a segment of a node's commits behind a mark. The file has a temporary name until Close. A file that was
// left under that name is overwritten.
func Create(path string, node capabilities.NodeID, after Mark) (*Writer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("create a segment: %w", err)
	}
	f, err := regular.Create(path + temporary)
	if err != nil {
		return nil, fmt.Errorf("create a segment: %w", err)
	}
	w := &Writer{path: path, file: f, zstd: enc, foot: footer{node: node, after: after}, last: after}
	if err := w.write([]byte(magic)); err != nil {
		w.Discard()
		return nil, err
	}
	return w, nil
}

func (w *Writer) write(b []byte) error {
	if _, err := w.file.Write(b); err != nil {
		return fmt.Errorf("write a segment: %w", err)
	}
	w.size += int64(len(b))
	return nil
}

// Add adds the frame of the next commit. It checks its hash, its node and its place in the chain. After an error the
// segment can only be discarded.
func (w *Writer) Add(number uint64, frame []byte) error {
	c, hash, err := events.DecodeHead(frame)
	switch {
	case err != nil:
		return fmt.Errorf("archive commit %d: %w", number, err)
	case number != w.last.Number+1 || c.Number != number || c.Prev != w.last.Hash:
		return fmt.Errorf("archive commit %d: it does not follow commit %d", number, w.last.Number)
	case c.Node != w.foot.node:
		return fmt.Errorf("archive commit %d: it is of node %s", number, c.Node)
	case len(frame) > maxFrame:
		return fmt.Errorf("archive commit %d: it has %d bytes", number, len(frame))
	}
	raw, ok := appendStored(w.raw, frame)
	if !ok {
		return fmt.Errorf("archive commit %d: its frame begins in another way", number)
	}
	if number == w.foot.after.Number+1 {
		w.foot.from = c.At
	}
	w.raw, w.last, w.foot.to = raw, Mark{Number: number, Hash: hash}, c.At
	w.held++
	if len(w.raw) < blockBytes {
		return nil
	}
	return w.endBlock()
}

// endBlock writes the block that was filled.
func (w *Writer) endBlock() error {
	if len(w.foot.blocks) == maxBlocks {
		return errors.New("archive: the segment has too many blocks")
	}
	w.room = w.zstd.EncodeAll(w.raw, w.room[:0])
	w.foot.blocks = append(w.foot.blocks, block{
		first: w.last.Number - uint64(w.held) + 1,
		count: w.held, size: uint32(len(w.room)), raw: uint32(len(w.raw)),
		end: w.last.Hash, digest: sha256.Sum256(w.room),
	})
	w.raw, w.held = w.raw[:0], 0
	return w.write(w.room)
}

// Size returns the size of the file so far. A caller begins another segment at MaxBytes.
func (w *Writer) Size() int64 { return w.size }

// Close seals the segment: it is on disk under its name. After an error it is discarded.
func (w *Writer) Close() (Segment, error) {
	s, err := w.seal()
	if err != nil {
		w.Discard()
		return Segment{}, err
	}
	return s, nil
}

func (w *Writer) seal() (Segment, error) {
	if w.held > 0 {
		if err := w.endBlock(); err != nil {
			return Segment{}, err
		}
	}
	if len(w.foot.blocks) == 0 {
		return Segment{}, errors.New("archive: the segment has no commits")
	}
	end, digest := w.foot.encode()
	if err := w.write(end); err != nil {
		return Segment{}, err
	}
	if err := w.file.Sync(); err != nil {
		return Segment{}, fmt.Errorf("write a segment: %w", err)
	}
	if err := w.file.Close(); err != nil {
		return Segment{}, fmt.Errorf("write a segment: %w", err)
	}
	if err := os.Rename(w.path+temporary, w.path); err != nil {
		return Segment{}, fmt.Errorf("write a segment: %w", err)
	}
	if err := SyncFolder(filepath.Dir(w.path)); err != nil {
		return Segment{}, fmt.Errorf("write a segment: %w", err)
	}
	return w.foot.segment(w.size, digest), nil
}

// Discard ends the writing of a segment that was not closed, and removes the file.
func (w *Writer) Discard() {
	_ = w.file.Close() // it is removed
	_ = os.Remove(w.path + temporary)
}

// SyncFolder flushes a folder. The name of a new file is on disk only after that. It has no effect on systems that
// cannot flush folders.
func SyncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = errors.Join(d.Sync(), d.Close())
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
