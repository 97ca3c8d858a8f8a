package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/capabilities"
	"parley/events"
)

// Mark names a commit by its number and the hash of its frame.
type Mark = events.Mark

// Segment describes a segment, as the record of an archive has it.
type Segment struct {
	First, Last uint64            // the numbers of its first and last commit
	After       Mark              // the commit before the first; zero before the first ever
	End         Mark              // the last commit
	From, To    capabilities.Time // the times of its first and last commit
	Bytes       int64             // of the file
	Digest      events.Hash       // of the footer, which has the digests of the blocks
}

// Record returns the segment as an event of the journal has it.
func (s Segment) Record() events.ArchivedSegment {
	return events.ArchivedSegment{Last: s.End, From: s.From, To: s.To, Bytes: s.Bytes, Digest: s.Digest}
}

// SegmentOf returns the segment of a record that follows a mark.
func SegmentOf(after Mark, e events.ArchivedSegment) Segment {
	return Segment{
		First: after.Number + 1, Last: e.Last.Number, After: after, End: e.Last,
		From: e.From, To: e.To, Bytes: e.Bytes, Digest: e.Digest,
	}
}

// MaxBytes is the size at which a writer begins another segment. A file may be larger by one frame and its footer.
const MaxBytes = 64 << 20

// ErrDamaged reports a segment that is not whole, or is another than the one that was expected.
var ErrDamaged = errors.New("damaged segment")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// ErrFormat reports a file in a format that this program does not know. Another version has written it.
var ErrFormat = errors.New("written by another version of the program")

// CheckFormat fails with ErrFormat if a file begins as one of a later format than the known one. A magic number has a name,
// the number of the format as a byte, and maybe more.
func CheckFormat(begins []byte, known string) error {
	at := strings.IndexFunc(known, func(r rune) bool { return r < ' ' })
	if len(begins) <= at || string(begins[:at]) != known[:at] || begins[at] <= known[at] {
		return nil
	}
	return fmt.Errorf("%w: its format is %d, and this program knows formats up to %d", ErrFormat, begins[at], known[at])
}

// suffix ends the names of segments.
const suffix = ".segment"

// Name returns the file name of a segment: the numbers of its first and last commit, so that names sort as segments do.
func (s Segment) Name() string { return fmt.Sprintf("%020d-%020d%s", s.First, s.Last, suffix) }

// ParseName returns the numbers of the first and last commit in the file name of a segment.
func ParseName(name string) (first, last uint64, ok bool) {
	var rest string
	n, err := fmt.Sscanf(name, "%020d-%020d%s", &first, &last, &rest)
	s := Segment{First: first, Last: last}
	return first, last, err == nil && n == 3 && strings.HasSuffix(name, suffix) && s.Name() == name
}

// A segment is a magic, the blocks, the footer, and a tail: the digest of the footer, its length, and the magic again.
// The footer is the node's key, and the mark and time before the blocks. The numbers, sizes, last hash and digest of
// each block follow. All numbers are big-endian.
const (
	magic      = "PLYSEG\x01\n"
	headerSize = 32 + 8 + 32 + 8 + 8
	entrySize  = 4 + 4 + 4 + 32 + 32
	tailSize   = 32 + 4 + len(magic)

	blockBytes = 256 << 10 // frames of a block at least, if there are more
	maxFrame   = 8 << 20
	maxRaw     = blockBytes + maxFrame + 16
	maxBlocks  = 1 << 16
	maxFile    = MaxBytes + 2*maxFrame + headerSize + maxBlocks*entrySize
)

// minStored is the least size of a stored frame: its magic, and its head without the hash before, and its length.
const minStored = 32

// block is the footer's entry of a block.
type block struct {
	first  uint64 // the number of its first commit
	offset int64
	count  uint32
	size   uint32 // compressed
	raw    uint32
	end    events.Hash // of its last commit
	digest events.Hash // of its compressed bytes
}

// footer is the table of contents of a segment.
type footer struct {
	node     capabilities.NodeID
	after    Mark
	from, to capabilities.Time
	blocks   []block
}

func (f *footer) last() uint64 {
	b := f.blocks[len(f.blocks)-1]
	return b.first + uint64(b.count) - 1
}

// segment returns the description of the segment with the footer, in a file of a size.
func (f *footer) segment(bytes int64, digest events.Hash) Segment {
	end := Mark{Number: f.last(), Hash: f.blocks[len(f.blocks)-1].end}
	return Segment{First: f.after.Number + 1, Last: end.Number, After: f.after, End: end, From: f.from, To: f.to, Bytes: bytes, Digest: digest}
}

// encode returns the footer and the tail behind it.
func (f *footer) encode() (bytes []byte, digest events.Hash) {
	be := binary.BigEndian
	b := make([]byte, 0, headerSize+len(f.blocks)*entrySize+tailSize)
	b = append(b, f.node.Bytes()...)
	b = be.AppendUint64(b, f.after.Number)
	b = append(b, f.after.Hash[:]...)
	b = be.AppendUint64(b, uint64(f.from))
	b = be.AppendUint64(b, uint64(f.to))
	for _, e := range f.blocks {
		b = be.AppendUint32(b, e.count)
		b = be.AppendUint32(b, e.size)
		b = be.AppendUint32(b, e.raw)
		b = append(b, e.end[:]...)
		b = append(b, e.digest[:]...)
	}
	digest = sha256.Sum256(b)
	size := uint32(len(b))
	b = append(b, digest[:]...)
	b = be.AppendUint32(b, size)
	return append(b, magic...), digest
}

// footerSize returns the size of the footer of a file, from the file's size and its tail.
func footerSize(file int64, tail []byte) (int64, error) {
	if string(tail[tailSize-len(magic):]) != magic {
		return 0, damaged("it has no end")
	}
	size := int64(binary.BigEndian.Uint32(tail[32:]))
	entries := size - headerSize
	if entries < entrySize || entries%entrySize != 0 || entries/entrySize > maxBlocks || size > file-int64(len(magic)+tailSize) {
		return 0, damaged("a footer of %d bytes", size)
	}
	return size, nil
}

// decodeFooter decodes the footer of a file of a size. The length is one that footerSize has returned.
func decodeFooter(b []byte, digest events.Hash, file int64) (*footer, error) {
	if events.Hash(sha256.Sum256(b)) != digest {
		return nil, damaged("the digest of its footer is another")
	}
	be := binary.BigEndian
	f := &footer{
		node:  capabilities.NodeOf([32]byte(b[:32])),
		after: Mark{Number: be.Uint64(b[32:]), Hash: events.Hash(b[40:72])},
		from:  capabilities.Time(be.Uint64(b[72:])),
		to:    capabilities.Time(be.Uint64(b[80:])),
	}
	if (f.after.Number == 0) != (f.after.Hash == events.Hash{}) || f.from > f.to {
		return nil, damaged("its beginning is no place in a log")
	}
	offset, first := int64(len(magic)), f.after.Number+1
	for e := b[headerSize:]; len(e) > 0; e = e[entrySize:] {
		n := block{
			first: first, offset: offset,
			count: be.Uint32(e), size: be.Uint32(e[4:]), raw: be.Uint32(e[8:]),
			end: events.Hash(e[12:44]), digest: events.Hash(e[44:76]),
		}
		room := file - offset
		switch {
		case n.count == 0 || n.raw > maxRaw || uint64(n.count)*minStored > uint64(n.raw) || int64(n.size) > room:
			return nil, damaged("block %d of its footer", len(f.blocks)+1)
		case first == 0 || uint64(n.count) > math.MaxUint64-first:
			return nil, damaged("its numbers end")
		}
		offset += int64(n.size)
		first += uint64(n.count)
		f.blocks = append(f.blocks, n)
	}
	if offset+int64(len(b)+tailSize) != file {
		return nil, damaged("its blocks end at byte %d of %d", offset, file)
	}
	return f, nil
}

// find returns the place of the block with a commit.
func (f *footer) find(number uint64) (int, bool) {
	if number <= f.after.Number || number > f.last() {
		return 0, false
	}
	i, exact := slices.BinarySearchFunc(f.blocks, number, func(b block, n uint64) int {
		switch {
		case b.first < n:
			return -1
		case b.first > n:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	return i, true
}

// before returns the hash of the commit before a block.
func (f *footer) before(i int) events.Hash {
	if i == 0 {
		return f.after.Hash
	}
	return f.blocks[i-1].end
}
