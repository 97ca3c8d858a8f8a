package capabilities

import (
	"bytes"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/nats-io/nkeys"
	"github.com/oklog/ulid/v2"
	"github.com/vmihailenco/msgpack/v5"

	"parley/internal/fault"
	"parley/internal/pack"
)

// NodeID identifies a node by its Ed25519 public key. Its text is the nkeys form: "N" and 55 letters of base 32 with a
// checksum. NodeIDs are comparable. The zero NodeID is no node.
//
// Memory has each key once, since a node holds many IDs and knows few keys.
type NodeID struct {
	key unique.Handle[[NodeKeySize]byte]
}

// NodeKeySize is the size of a node's public key, in bytes.
const NodeKeySize = 32

// NodeOf returns the NodeID of a public key. The zero key is that of the zero NodeID.
func NodeOf(key [NodeKeySize]byte) NodeID {
	if key == [NodeKeySize]byte{} {
		return NodeID{}
	}
	return NodeID{unique.Make(key)}
}

// Key returns the node's public key.
func (n NodeID) Key() [NodeKeySize]byte {
	if n == (NodeID{}) {
		return [NodeKeySize]byte{}
	}
	return n.key.Value()
}

// Bytes returns the node's public key as a new slice.
func (n NodeID) Bytes() []byte {
	key := n.Key()
	return key[:]
}

// Compare orders NodeIDs by their keys.
func (n NodeID) Compare(o NodeID) int {
	if n == o {
		return 0
	}
	a, b := n.Key(), o.Key()
	return bytes.Compare(a[:], b[:])
}

// ID identifies an agent, message, form, promise, resolver, grant or blob on any node. Its text is "{ULID}@{node}". IDs
// are comparable. The zero ID identifies nothing.
type ID struct {
	ULID ulid.ULID
	Node NodeID
}

const (
	idSize       = 16 + NodeKeySize
	nodeTextSize = 56
)

// IDTextSize is the size of an ID's text, in bytes.
const IDTextSize = ulid.EncodedSize + 1 + nodeTextSize

// ParseNodeID parses the nkeys text of a node's public key. It refuses with INVALID_ARGUMENT.
func ParseNodeID(s string) (NodeID, error) {
	var n NodeID
	if len(s) != nodeTextSize || s != strings.ToUpper(s) {
		return n, fault.Refuse(fault.InvalidArgument, "%.80q is not a node's key", s)
	}
	key, ok := decodeKey(s)
	if !ok {
		return n, fault.Refuse(fault.InvalidArgument, "%.80q is not a node's key", s)
	}
	return NodeOf(key), nil // 56 letters of base 32 are exactly 35 bytes, so a key has one spelling
}

// decodeKey is nkeys.Decode, which takes several times as long, for a text of nodeTextSize.
func decodeKey(s string) (key [NodeKeySize]byte, ok bool) {
	var raw [1 + NodeKeySize + 2]byte
	for i := 0; i < len(s); i += 8 { // 8 letters are 5 bytes
		var bits uint64
		for _, c := range []byte(s[i : i+8]) {
			switch {
			case c >= 'A' && c <= 'Z':
				c -= 'A'
			case c >= '2' && c <= '7':
				c -= '2' - 26
			default:
				return key, false
			}
			bits = bits<<5 | uint64(c)
		}
		for at := range 5 {
			raw[i/8*5+at] = byte(bits >> (32 - 8*at))
		}
	}
	sum := binary.LittleEndian.Uint16(raw[1+NodeKeySize:])
	return [NodeKeySize]byte(raw[1:]), raw[0] == byte(nkeys.PrefixByteServer) && sum == checksum(raw[:1+NodeKeySize])
}

// String returns the node's public key in its text form.
func (n NodeID) String() string { return string(n.appendText(make([]byte, 0, nodeTextSize))) }

// Short returns the end of the text form, for people: the whole is long, and programs have it as data.
func (n NodeID) Short() string {
	text := n.String()
	return "…" + text[len(text)-8:]
}

// appendText appends what nkeys.Encode returns, which takes several times as long.
func (n NodeID) appendText(b []byte) []byte {
	key := n.Key()
	raw := [1 + NodeKeySize + 2]byte{byte(nkeys.PrefixByteServer)}
	copy(raw[1:], key[:])
	binary.LittleEndian.PutUint16(raw[1+NodeKeySize:], checksum(raw[:1+NodeKeySize]))
	return base32.StdEncoding.AppendEncode(b, raw[:]) // 35 bytes need no padding
}

// checksum returns the CRC-16 of XMODEM.
func checksum(b []byte) (sum uint16) {
	for _, c := range b {
		sum = sum<<8 ^ checksums[byte(sum>>8)^c]
	}
	return sum
}

// checksums has the checksums of a byte.
var checksums = func() (all [256]uint16) {
	for i := range all {
		sum := uint16(i) << 8
		for range 8 {
			high := sum >> 15
			sum = sum<<1 ^ high*0x1021
		}
		all[i] = sum
	}
	return all
}()

// ParseID parses "{ULID}@{node}". It refuses with INVALID_ARGUMENT.
func ParseID(s string) (ID, error) {
	head, tail, ok := strings.Cut(s, "@")
	if !ok {
		return ID{}, fault.Refuse(fault.InvalidArgument, "%.120q is not an ID: want ULID@NODE", s)
	}
	u, err := parseULID(head)
	if err != nil {
		return ID{}, err
	}
	n, err := ParseNodeID(tail)
	if err != nil {
		return ID{}, err
	}
	return ID{ULID: u, Node: n}, nil
}

// ParseLocalID parses the part of an ID before the "@", for an ID of a known node.
func ParseLocalID(s string, node NodeID) (ID, error) {
	u, err := parseULID(s)
	return ID{ULID: u, Node: node}, err
}

func parseULID(s string) (ulid.ULID, error) {
	u, err := ulid.ParseStrict(s)
	if err != nil || u.String() != s {
		return ulid.ULID{}, fault.Refuse(fault.InvalidArgument, "%.80q is not a ULID", s)
	}
	return u, nil
}

// String returns ULID@NODE.
func (id ID) String() string { return string(id.Append(make([]byte, 0, IDTextSize))) }

// Append appends ULID@NODE, which has IDTextSize bytes.
func (id ID) Append(b []byte) []byte {
	var u [ulid.EncodedSize]byte
	_ = id.ULID.MarshalTextTo(u[:]) // it fails only if the buffer is too short
	return id.Node.appendText(append(append(b, u[:]...), '@'))
}

// IsZero reports whether id is the zero ID.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders IDs by ULID, then by node.
func (id ID) Compare(o ID) int {
	if c := id.ULID.Compare(o.ULID); c != 0 {
		return c
	}
	return id.Node.Compare(o.Node)
}

// MarshalText returns the ID's text. The text of the zero ID is empty.
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	return id.Append(make([]byte, 0, IDTextSize)), nil
}

// UnmarshalText parses the output of MarshalText.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// MarshalText returns the node's nkeys text.
func (n NodeID) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText parses a node's nkeys text.
func (n *NodeID) UnmarshalText(text []byte) error {
	parsed, err := ParseNodeID(string(text))
	if err != nil {
		return err
	}
	*n = parsed
	return nil
}

// AppendMsgpack appends the ID as extension 1: 16 bytes of ULID and 32 of key. The zero ID is nil.
func (id *ID) AppendMsgpack(b []byte) []byte {
	if *id == (ID{}) {
		return pack.AppendNil(b)
	}
	key := id.Node.Key()
	return append(append(pack.AppendExt(b, extID, idSize), id.ULID[:]...), key[:]...)
}

// EncodeMsgpack encodes what AppendMsgpack appends.
func (id ID) EncodeMsgpack(enc *msgpack.Encoder) error {
	room := rooms.Get().(*room)
	room.b = id.AppendMsgpack(room.b[:0])
	return room.encode(enc)
}

// rawID is an encoded ID without its header.
type rawID [idSize]byte

var rawIDs = sync.Pool{New: func() any { return new(rawID) }}

// DecodeMsgpack decodes the output of EncodeMsgpack.
func (id *ID) DecodeMsgpack(dec *msgpack.Decoder) error {
	if isNil, err := decodedNil(dec); err != nil || isNil {
		*id = ID{}
		return err
	}
	if err := wantExt(dec, extID, idSize); err != nil {
		return fmt.Errorf("ID: %w", err)
	}
	raw := rawIDs.Get().(*rawID)
	defer rawIDs.Put(raw)
	if err := dec.ReadFull(raw[:]); err != nil {
		return err
	}
	copy(id.ULID[:], raw[:])
	id.Node = NodeOf([NodeKeySize]byte(raw[len(id.ULID):]))
	return nil
}

// Source makes a node's IDs. They are unique and unguessable. Each is greater than all before it, even if the clock
// steps back or many are made in one millisecond. A Source is safe for concurrent use.
//
// ulid.MonotonicEntropy promises neither: it starts again when the clock changes, and it fails on overflow.
type Source struct {
	node    NodeID
	now     func() time.Time
	entropy io.Reader

	mu   sync.Mutex
	last ulid.ULID
}

// NewSource returns a Source for a node, over a clock and a reader of cryptographic randomness. Its IDs are greater
// than after, which may be zero.
func NewSource(node NodeID, now func() time.Time, entropy io.Reader, after ulid.ULID) *Source {
	return &Source{node: node, now: now, entropy: entropy, last: after}
}

// Node returns the node whose IDs the source makes.
func (s *Source) Node() NodeID { return s.node }

// Next makes an ID. It fails only if the reader of randomness does.
func (s *Source) Next() (ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := uint64(max(s.now().UnixMilli(), 0))
	var (
		u   ulid.ULID
		err error
	)
	if ms > s.last.Time() {
		u, err = s.fresh(ms)
	} else {
		u, err = s.follow()
	}
	if err != nil {
		return ID{}, fmt.Errorf("make an ID: %w", err)
	}
	s.last = u
	return ID{ULID: u, Node: s.node}, nil
}

// fresh returns the first ULID of a millisecond. Its top bit is clear, which leaves room above.
func (s *Source) fresh(ms uint64) (ulid.ULID, error) {
	var u ulid.ULID
	if err := u.SetTime(ms); err != nil {
		return u, err
	}
	if _, err := io.ReadFull(s.entropy, u[6:]); err != nil {
		return u, err
	}
	u[6] &= 0x7f
	return u, nil
}

// follow returns the ULID after the last one: a random step of up to 2^32 above it. On overflow, it returns the first
// one of the next millisecond, even if the clock is behind that.
func (s *Source) follow() (ulid.ULID, error) {
	var step [4]byte
	if _, err := io.ReadFull(s.entropy, step[:]); err != nil {
		return ulid.ULID{}, err
	}
	u := s.last
	low := binary.BigEndian.Uint64(u[8:])
	sum := low + uint64(binary.BigEndian.Uint32(step[:])) + 1
	binary.BigEndian.PutUint64(u[8:], sum)
	if sum > low {
		return u, nil
	}
	high := binary.BigEndian.Uint16(u[6:8]) + 1
	binary.BigEndian.PutUint16(u[6:8], high)
	if high != 0 {
		return u, nil
	}
	return s.fresh(s.last.Time() + 1)
}
