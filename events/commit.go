package events

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"
	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
	"parley/internal/pack"
)

// Hash is the SHA-256 of a commit's frame. The first commit's Prev is zero.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return fmt.Sprintf("%x", h[:]) }

// MarshalJSON encodes the hash as its hexadecimal digits.
func (h Hash) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "\"%x\"", h[:]), nil }

// UnmarshalJSON decodes the result of MarshalJSON.
func (h *Hash) UnmarshalJSON(text []byte) error {
	var b []byte
	if n, err := fmt.Sscanf(string(text), "\"%x\"", &b); n != 1 || err != nil || len(b) != len(h) {
		return fmt.Errorf("%.100s is no hash", text)
	}
	copy(h[:], b)
	return nil
}

// Mark names a commit of a log by its number and the hash of its frame. The zero Mark is before the first commit.
type Mark struct {
	Number uint64 `json:"number"`
	Hash   Hash   `json:"hash"`
}

// String returns the number, a colon, and the hash in hexadecimal digits. It is "" for the zero Mark.
func (m Mark) String() string {
	if m == (Mark{}) {
		return ""
	}
	return fmt.Sprintf("%d:%s", m.Number, m.Hash)
}

// Summary describes a mailbox after a section, for readers that do not decode its events.
type Summary struct {
	Open     uint32            // open forms that it asked
	Waiting  uint32            // open forms that wait for its answer
	Outbox   uint32            // items of its outbox, and runs that are pending or under way
	Deadline capabilities.Time // the earliest deadline of its open forms; zero if none
}

// Section holds events of one mailbox that were appended together.
type Section struct {
	Mailbox capabilities.ID
	First   uint64 // the mailbox's version after the first of the events: 1 for the first ever
	Count   uint32
	Summary Summary
	Body    []byte // the events, as Append encodes them

	// Note is what listings show of the mailbox after the events, in an encoding of the caller's. "" keeps the note before,
	// so that few sections have one.
	Note string
}

// Events decodes the section's events.
func (s Section) Events() ([]Recorded, error) { return Decode(s.Body, int(s.Count)) }

// Commit is one durable step of a node. A mailbox may have several sections in a commit, in the order in which they
// were appended.
type Commit struct {
	Number   uint64 // 1 for the first
	Prev     Hash   // hash of the commit before
	At       capabilities.Time
	Node     capabilities.NodeID
	Sections []Section
}

// layoutFormat is raised by a thousand with each change of frames that this or an earlier program cannot read.
const layoutFormat = 1000

// frameFormat is the number of the log's format. Each frame has it, so that an earlier program refuses the log at its
// start, by the newest commit. It grows with each kind of event and each version of one by itself.
var frameFormat = func() uint64 {
	n := uint64(layoutFormat)
	for _, s := range schemas {
		n += uint64(s.version)
	}
	return n
}()

const (
	frameMagic    = "PLY\x01"
	sectionCells  = 9
	maxSections   = 1 << 20
	minFrameBytes = len(frameMagic) + sha256.Size
)

// ErrDamaged reports a frame that is incomplete or was changed.
var ErrDamaged = errors.New("damaged frame")

// Encode encodes the commit as a frame, and returns the frame and its hash. A frame is a magic number, the msgpack
// sequence that follows, and the hash of both. The sequence is format, number, previous hash, time, node, table of
// contents and bodies. The frame overwrites room, if that is large enough.
func (c *Commit) Encode(room []byte) ([]byte, Hash, error) {
	if len(c.Sections) > maxSections {
		return nil, Hash{}, fmt.Errorf("encode commit %d: %d sections", c.Number, len(c.Sections))
	}
	size := 256
	for _, s := range c.Sections {
		size += len(s.Body) + len(s.Note) + 64
	}
	if cap(room) < size {
		room = make([]byte, 0, size)
	}
	b := append(room[:0], frameMagic...)
	b = pack.AppendUint(pack.AppendUint(b, frameFormat), c.Number)
	b = c.At.AppendMsgpack(pack.AppendBytes(b, c.Prev[:]))
	b = pack.AppendBytes(b, c.Node.Bytes())
	b = appendTable(b, c.Sections)
	for i := range c.Sections {
		b = append(b, c.Sections[i].Body...)
	}
	h := Hash(sha256.Sum256(b))
	return append(b, h[:]...), h, nil
}

func appendTable(b []byte, sections []Section) []byte {
	b = pack.AppendArray(b, len(sections)*sectionCells)
	for i := range sections {
		s := &sections[i]
		b = pack.AppendBytes(b, s.Mailbox.ULID[:])
		for _, n := range [...]uint64{
			s.First, uint64(s.Count), uint64(len(s.Body)), uint64(s.Summary.Open), uint64(s.Summary.Waiting), uint64(s.Summary.Outbox),
			uint64(s.Summary.Deadline),
		} {
			b = pack.AppendUint(b, n)
		}
		b = pack.AppendBytes(b, []byte(s.Note))
	}
	return b
}

// DecodeCommit decodes a frame, checks its hash and returns both. The sections' bodies are slices of the frame. It
// fails with ErrDamaged for a damaged frame, and with an *UnknownError for a newer format.
func DecodeCommit(frame []byte) (*Commit, Hash, error) {
	c, h, rd, err := decodeHead(frame)
	if err != nil {
		return nil, Hash{}, err
	}
	sizes, err := c.decodeTable(msgpack.NewDecoder(rd))
	if err != nil {
		return nil, Hash{}, fmt.Errorf("%w: table of contents: %w", ErrDamaged, err)
	}
	end := len(frame) - sha256.Size
	rest := frame[end-rd.Len() : end]
	for i, n := range sizes {
		if n < 0 || n > len(rest) {
			return nil, Hash{}, fmt.Errorf("%w: bodies cut short", ErrDamaged)
		}
		c.Sections[i].Body, rest = rest[:n:n], rest[n:]
	}
	if len(rest) != 0 {
		return nil, Hash{}, fmt.Errorf("%w: %d bytes too many", ErrDamaged, len(rest))
	}
	return c, h, nil
}

// DecodeHead is DecodeCommit without the sections, for readers that follow the chain. It takes a third of the time.
func DecodeHead(frame []byte) (*Commit, Hash, error) {
	c, h, _, err := decodeHead(frame)
	return c, h, err
}

// decodeHead checks the hash of a frame, and decodes everything before the table of contents. It returns a reader of the
// rest of the frame.
func decodeHead(frame []byte) (*Commit, Hash, *bytes.Reader, error) {
	if len(frame) < minFrameBytes || string(frame[:len(frameMagic)]) != frameMagic {
		return nil, Hash{}, nil, fmt.Errorf("%w: not a frame", ErrDamaged)
	}
	end := len(frame) - sha256.Size
	h := Hash(frame[end:])
	if Hash(sha256.Sum256(frame[:end])) != h {
		return nil, Hash{}, nil, fmt.Errorf("%w: its hash is another", ErrDamaged)
	}
	rd := bytes.NewReader(frame[len(frameMagic):end])
	dec := msgpack.NewDecoder(rd)
	format, err := dec.DecodeUint64()
	if err != nil {
		return nil, Hash{}, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if format > frameFormat || format < layoutFormat {
		return nil, Hash{}, nil, &UnknownError{Version: format}
	}
	var (
		c          Commit
		prev, node []byte
	)
	if err := dec.DecodeMulti(&c.Number, &prev, &c.At, &node); err != nil {
		return nil, Hash{}, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(prev) != len(c.Prev) || len(node) != capabilities.NodeKeySize {
		return nil, Hash{}, nil, fmt.Errorf("%w: header", ErrDamaged)
	}
	copy(c.Prev[:], prev)
	c.Node = capabilities.NodeOf([capabilities.NodeKeySize]byte(node))
	return &c, h, rd, nil
}

func (c *Commit) decodeTable(dec *msgpack.Decoder) (sizes []int, err error) {
	cells, err := dec.DecodeArrayLen()
	if err != nil {
		return nil, err
	}
	if cells < 0 || cells%sectionCells != 0 || cells/sectionCells > maxSections {
		return nil, fmt.Errorf("%d cells", cells)
	}
	n := cells / sectionCells
	c.Sections = make([]Section, 0, min(n, 1024))
	sizes = make([]int, 0, min(n, 1024))
	for range n {
		var (
			s        Section
			who      []byte
			note     []byte
			size     int
			deadline int64
		)
		err := dec.DecodeMulti(&who, &s.First, &s.Count, &size, &s.Summary.Open, &s.Summary.Waiting, &s.Summary.Outbox, &deadline, &note)
		if err != nil {
			return nil, err
		}
		if len(who) != len(ulid.ULID{}) {
			return nil, fmt.Errorf("mailbox of %d bytes", len(who))
		}
		s.Mailbox = capabilities.ID{ULID: ulid.ULID(who), Node: c.Node}
		s.Summary.Deadline = capabilities.Time(deadline)
		s.Note = string(note)
		c.Sections = append(c.Sections, s)
		sizes = append(sizes, size)
	}
	return sizes, nil
}
