package events

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/capabilities"
	"parley/internal/pack"
)

// Hash is a SHA-256. That of a commit is made of its head and the hashes of its sections. The first commit's Prev is zero.
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

// Mark names a commit of a log by its number and its hash. The zero Mark is before the first commit.
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
	Blind    Blind
	Sections []Section
}

// Blind are random bytes of a commit, which go into the hash of each section. Without them nobody can find out by trying what a
// section of few possible contents holds, from its hash alone.
type Blind [16]byte

// of returns what goes before the content of a section into its hash. It tells nothing of the others', nor of the Blind.
func (b Blind) of(section int) [sha256.Size]byte {
	var text [len(b) + 8]byte
	binary.BigEndian.PutUint64(text[copy(text[:], b[:]):], uint64(section))
	return sha256.Sum256(text[:])
}

// layoutFormat is raised by a thousand with each change of heads and sections that this or an earlier program cannot read. Before the
// first release it is raised in place of an event's version too, where members of one have changed: the log of an earlier build is
// refused by its format then, and not as damage.
const layoutFormat = 3000

// longerEvents is how many kinds of events have got a longer encoding beside the first: MessagePosted has one with AuthorSaid.
const longerEvents = 1

// frameFormat is the number of the log's format. Each frame has it, so that an earlier program refuses the log at its
// start, by the newest commit. It grows with each kind of event and each version of one by itself.
var frameFormat = func() uint64 {
	n := uint64(layoutFormat + longerEvents)
	for _, s := range schemas {
		n += uint64(s.version)
	}
	return n
}()

// A frame is a magic number, a head, the blind, the sections, and the commit's hash. The head is binary data of at most 255
// bytes in msgpack, and each section is binary data of the 32-bit form. They are, by example:
//
//	PLY\x01
//	bin8  format, number, hash of the commit before, time, node
//	16 random bytes
//	bin32 mailbox, first, count, open, waiting, outbox, deadline, note, and then the events
//	bin32 the same of another mailbox
//	the hash: 32 bytes
//
// The mask of section n is the SHA-256 of the random bytes and n in 8 bytes, the first being 0. The hash of a section is that
// of its mask and its content. The hash of the commit is that of the frame up to the end of the head, followed by the
// SHA-256 of the random bytes and the hashes of the sections. So who has a section with its mask, the head and the other
// hashes can check that the section is of the commit, and learns nothing else of the other mailboxes. A head starts like no
// section, so neither can pass for the other.
//
// All formats keep this: a program has to find a frame of a later format whole before it says that it is newer.
const (
	frameMagic    = "PLY\x01"
	headStart     = len(frameMagic) + 2
	sectionStart  = 5 // bytes before a section's content
	maxSections   = 1 << 20
	minFrameBytes = headStart + len(Blind{}) + sha256.Size
)

// ErrDamaged reports a frame that is incomplete or was changed.
var ErrDamaged = errors.New("damaged frame")

// Encode encodes the commit as a frame, and returns the frame and its hash. The frame overwrites room, if that is large
// enough.
func (c *Commit) Encode(room []byte) ([]byte, Hash, error) {
	if len(c.Sections) > maxSections {
		return nil, Hash{}, fmt.Errorf("encode commit %d: %d sections", c.Number, len(c.Sections))
	}
	size := 256
	for i := range c.Sections {
		size += len(c.Sections[i].Body) + len(c.Sections[i].Note) + 64
	}
	if cap(room) < size {
		room = make([]byte, 0, size)
	}
	b := append(append(room[:0], frameMagic...), msgpcode.Bin8, 0)
	b = pack.AppendUint(pack.AppendUint(b, frameFormat), c.Number)
	b = c.At.AppendMsgpack(pack.AppendBytes(b, c.Prev[:]))
	b = pack.AppendBytes(b, c.Node.Bytes())
	b[headStart-1] = byte(len(b) - headStart) // some 90 bytes
	chained := newChained(b, c.Blind, len(c.Sections))
	b = append(b, c.Blind[:]...)
	for i := range c.Sections {
		b = append(b, msgpcode.Bin32, 0, 0, 0, 0)
		start := len(b)
		b = c.Sections[i].append(b)
		if uint64(len(b)-start) >= 1<<32 {
			return nil, Hash{}, fmt.Errorf("encode commit %d: a section of %d bytes", c.Number, len(b)-start)
		}
		binary.BigEndian.PutUint32(b[start-4:], uint32(len(b)-start))
		chained = chained.add(c.Blind, i, b[start:])
	}
	h := chained.hash()
	return append(b, h[:]...), h, nil
}

// append appends the section's content.
func (s *Section) append(b []byte) []byte {
	b = pack.AppendBytes(b, s.Mailbox.ULID[:])
	for _, n := range [...]uint64{
		s.First, uint64(s.Count), uint64(s.Summary.Open), uint64(s.Summary.Waiting), uint64(s.Summary.Outbox), uint64(s.Summary.Deadline),
	} {
		b = pack.AppendUint(b, n)
	}
	return append(pack.AppendBytes(b, []byte(s.Note)), s.Body...)
}

// chained is what the hash of a commit is made of: its magic and head, and the hashes of its blind and its sections.
type chained []byte

func newChained(head []byte, blind Blind, sections int) chained {
	room := make(chained, 0, 512) // on the stack, and enough for most commits
	if size := len(head) + (1+sections)*sha256.Size; size > cap(room) {
		room = make(chained, 0, size)
	}
	h := sha256.Sum256(blind[:])
	return append(append(room, head...), h[:]...)
}

func (c chained) add(blind Blind, nth int, section []byte) chained {
	var h [sha256.Size]byte
	mask := blind.of(nth)
	d := sha256.New()
	d.Write(mask[:])
	d.Write(section)
	return append(c, d.Sum(h[:0])...)
}

func (c chained) hash() Hash { return sha256.Sum256(c) }

// nextSection takes the content of the next section off the sections of a frame.
func nextSection(sections []byte) (content, rest []byte, ok bool) {
	if len(sections) < sectionStart || sections[0] != msgpcode.Bin32 {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(sections[1:]))
	if n > uint64(len(sections)-sectionStart) {
		return nil, nil, false
	}
	end := sectionStart + int(n)
	return sections[sectionStart:end:end], sections[end:], true
}

// split splits a frame without its hash into its magic and head, its blind, and its sections. It returns the number of
// sections and the hash.
func split(unsealed []byte) (head []byte, blind Blind, sections []byte, n int, h Hash, err error) {
	if len(unsealed) < headStart || string(unsealed[:len(frameMagic)]) != frameMagic || unsealed[headStart-2] != msgpcode.Bin8 {
		return nil, blind, nil, 0, h, fmt.Errorf("%w: not a frame", ErrDamaged)
	}
	end := headStart + int(unsealed[headStart-1])
	if end+len(blind) > len(unsealed) {
		return nil, blind, nil, 0, h, fmt.Errorf("%w: its head is cut short", ErrDamaged)
	}
	head, sections = unsealed[:end], unsealed[end+copy(blind[:], unsealed[end:]):]
	for rest, ok := sections, true; len(rest) > 0; n++ {
		if _, rest, ok = nextSection(rest); !ok || n == maxSections {
			return nil, blind, nil, 0, h, fmt.Errorf("%w: section %d is cut short, or none", ErrDamaged, n)
		}
	}
	chained := newChained(head, blind, n)
	rest := sections
	for i := range n {
		var content []byte
		content, rest, _ = nextSection(rest)
		chained = chained.add(blind, i, content)
	}
	return head, blind, sections, n, chained.hash(), nil
}

// checked splits a frame, and checks its hash.
func checked(frame []byte) (head []byte, blind Blind, sections []byte, n int, h Hash, err error) {
	if len(frame) < minFrameBytes {
		return nil, blind, nil, 0, h, fmt.Errorf("%w: not a frame", ErrDamaged)
	}
	end := len(frame) - sha256.Size
	head, blind, sections, n, h, err = split(frame[:end])
	if err == nil && h != Hash(frame[end:]) {
		err = fmt.Errorf("%w: its hash is another", ErrDamaged)
	}
	return head, blind, sections, n, h, err
}

// DecodeCommit decodes a frame, checks its hash and returns both. The sections' bodies are slices of the frame. It
// fails with ErrDamaged for a damaged frame, and with an *UnknownError for a newer format.
func DecodeCommit(frame []byte) (*Commit, Hash, error) {
	head, blind, sections, n, h, err := checked(frame)
	if err != nil {
		return nil, Hash{}, err
	}
	c, err := decodeHead(head)
	if err != nil {
		return nil, Hash{}, err
	}
	c.Blind = blind
	c.Sections = make([]Section, 0, min(n, 1024))
	rd := bytes.NewReader(nil)
	dec := msgpack.NewDecoder(rd)
	for i := range n {
		var s Section
		content, rest, _ := nextSection(sections)
		rd.Reset(content)
		if err := s.decode(dec, c.Node); err != nil {
			return nil, Hash{}, fmt.Errorf("%w: section %d: %w", ErrDamaged, i, err)
		}
		s.Body = content[len(content)-rd.Len():]
		c.Sections, sections = append(c.Sections, s), rest
	}
	return c, h, nil
}

// DecodeHead is DecodeCommit without the sections, for readers that follow the chain. It takes a third of the time.
func DecodeHead(frame []byte) (*Commit, Hash, error) {
	head, blind, _, _, h, err := checked(frame)
	if err != nil {
		return nil, Hash{}, err
	}
	c, err := decodeHead(head)
	if err != nil {
		return nil, Hash{}, err
	}
	c.Blind = blind
	return c, h, nil
}

// Seal appends the hash to a frame that lacks it, and decodes the frame as DecodeHead does.
func Seal(unsealed []byte) (frame []byte, c *Commit, h Hash, err error) {
	head, _, _, _, h, err := split(unsealed)
	if err != nil {
		return nil, nil, Hash{}, err
	}
	c, err = decodeHead(head)
	return append(unsealed, h[:]...), c, h, err
}

// decodeHead decodes the magic and head of a frame.
func decodeHead(head []byte) (*Commit, error) {
	rd := bytes.NewReader(head[headStart:])
	dec := msgpack.NewDecoder(rd)
	format, err := dec.DecodeUint64()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if format > frameFormat || format < layoutFormat {
		return nil, &UnknownError{Version: format}
	}
	var (
		c          Commit
		prev, node []byte
	)
	if err := dec.DecodeMulti(&c.Number, &prev, &c.At, &node); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(prev) != len(c.Prev) || len(node) != capabilities.NodeKeySize || rd.Len() != 0 {
		return nil, fmt.Errorf("%w: head", ErrDamaged)
	}
	copy(c.Prev[:], prev)
	c.Node = capabilities.NodeOf([capabilities.NodeKeySize]byte(node))
	return &c, nil
}

// decode decodes what is before the events.
func (s *Section) decode(dec *msgpack.Decoder, node capabilities.NodeID) error {
	n, err := dec.DecodeBytesLen()
	if err == nil && n != len(s.Mailbox.ULID) {
		err = fmt.Errorf("mailbox of %d bytes", n)
	}
	if err == nil {
		s.Mailbox.Node = node
		err = dec.ReadFull(s.Mailbox.ULID[:])
	}
	if err == nil {
		s.First, err = dec.DecodeUint64()
	}
	for _, to := range [...]*uint32{&s.Count, &s.Summary.Open, &s.Summary.Waiting, &s.Summary.Outbox} {
		if err == nil {
			*to, err = dec.DecodeUint32()
		}
	}
	var deadline int64
	if err == nil {
		deadline, err = dec.DecodeInt64()
		s.Summary.Deadline = capabilities.Time(deadline)
	}
	if err == nil {
		s.Note, err = dec.DecodeString()
	}
	return err
}
