package index

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"parley/capabilities"
)

// Entry is the index entry of one message, in 32 bytes. It tells where the message stands in the log and how it is
// listed, so that the message itself need not be in memory.
type Entry struct {
	ID                uint64 // digest of the message's ID
	Promise, Resolver uint32 // short digests of a form's other IDs
	First             uint32 // version of the event that brought the message
	Settled           uint32 // version of the event that ended the form; 0 if there is none
	Changed           uint32 // version of the last event about the message
	Flags             Flags
}

// Flags are the properties of a message by which it is listed.
type Flags uint16

// The flags of a message.
const (
	Form Flags = 1 << iota
	Sent
	Received
	Dismissed
	ByGrant   // sent by a reference with a grant or facet
	HasOrigin // entered in the mailbox's index of origins
)

// Is reports whether the Entry has a flag.
func (e *Entry) Is(f Flags) bool { return e.Flags&f != 0 }

// IsOpen reports whether the message is a form that has not ended.
func (e *Entry) IsOpen() bool { return e.Is(Form) && e.Settled == 0 }

// MaxVersion bounds the versions of a mailbox, and with them the numbers of its messages.
const MaxVersion = math.MaxUint32

const pageLength = 1 << 12

// Index has the entries of all messages of a mailbox by number, and finds numbers by ID.
type Index struct {
	node  capabilities.NodeID
	pages [][]Entry           // each but the last has pageLength entries
	slots []uint32            // a hash table of numbers plus one, by the digests of their IDs; 0 is a free slot
	used  int                 // slots that are not free
	other map[uint64][]uint32 // versions of further events, by number
}

// New returns an index without messages, of a mailbox on a node.
func New(node capabilities.NodeID) Index { return Index{node: node} }

// Digest returns the digest of an ID. Nobody can choose an ID of a message that has the digest of another one: the
// node's own IDs have 64 random bits, and those of other nodes are hashed.
func (x *Index) Digest(id capabilities.ID) uint64 {
	if id.Node == x.node {
		return binary.BigEndian.Uint64(id.ULID[8:])
	}
	var b [len(id.ULID) + capabilities.NodeKeySize]byte
	key := id.Node.Key()
	copy(b[:], id.ULID[:])
	copy(b[len(id.ULID):], key[:])
	sum := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(sum[:])
}

// DigestKey returns the digest of an idempotency key.
func DigestKey(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])
}

// Len returns the number of messages.
func (x *Index) Len() uint64 {
	if len(x.pages) == 0 {
		return 0
	}
	last := len(x.pages) - 1
	return uint64(last*pageLength + len(x.pages[last]))
}

// At returns an entry. The number has to be that of a message. The entry belongs to the index; the caller may set
// its fields but for the digests and the flag Form.
func (x *Index) At(n uint64) *Entry { return &x.pages[n/pageLength][n%pageLength] }

// From yields the entries from a number on.
func (x *Index) From(n uint64) iter.Seq2[uint64, *Entry] {
	return func(yield func(uint64, *Entry) bool) {
		for end := x.Len(); n < end; n++ {
			if !yield(n, x.At(n)) {
				return
			}
		}
	}
}

// Add appends an entry.
func (x *Index) Add(e Entry) {
	if last := len(x.pages) - 1; last < 0 || len(x.pages[last]) == pageLength {
		x.pages = append(x.pages, nil)
	}
	last := len(x.pages) - 1
	n := uint32(x.Len())
	x.pages[last] = append(x.pages[last], e)
	if 4*(x.used+3) > 3*len(x.slots) {
		x.grow()
		return
	}
	x.enter(n, &e)
}

// grow makes the hash table anew with twice the room.
func (x *Index) grow() {
	size := max(16, 2*len(x.slots))
	x.slots, x.used = make([]uint32, size), 0
	for n, e := range x.From(0) {
		x.enter(uint32(n), e)
	}
}

// enter enters a number under each digest of its entry.
func (x *Index) enter(n uint32, e *Entry) {
	x.put(uint32(e.ID), n)
	if e.Is(Form) {
		x.put(e.Promise, n)
		x.put(e.Resolver, n)
	}
}

func (x *Index) put(digest, n uint32) {
	mask := uint32(len(x.slots) - 1)
	i := digest & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = n + 1
	x.used++
}

// candidates yields the numbers of the slots where a digest can be.
func (x *Index) candidates(digest uint32) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if len(x.slots) == 0 {
			return
		}
		mask := uint32(len(x.slots) - 1)
		for i := digest & mask; x.slots[i] != 0; i = (i + 1) & mask {
			if !yield(uint64(x.slots[i] - 1)) {
				return
			}
		}
	}
}

// Find returns the number of the message with an ID.
func (x *Index) Find(id capabilities.ID) (uint64, bool) {
	digest := x.Digest(id)
	for n := range x.candidates(uint32(digest)) {
		if x.At(n).ID == digest {
			return n, true
		}
	}
	return 0, false
}

// FindOther yields the numbers of the forms that may have an ID as their promise or resolver.
func (x *Index) FindOther(id capabilities.ID) iter.Seq[uint64] {
	digest := uint32(x.Digest(id))
	return func(yield func(uint64) bool) {
		for n := range x.candidates(digest) {
			if e := x.At(n); e.Is(Form) && (e.Promise == digest || e.Resolver == digest) && !yield(n) {
				return
			}
		}
	}
}

// Note adds the version of a further event that a message is made of.
func (x *Index) Note(n, version uint64) {
	if x.other == nil {
		x.other = map[uint64][]uint32{}
	}
	x.other[n] = append(x.other[n], uint32(version))
}

// Versions returns the versions of the events that a message is made of, in order.
func (x *Index) Versions(n uint64) []uint64 {
	e := x.At(n)
	all := []uint64{uint64(e.First)}
	settled := uint64(e.Settled)
	for _, v := range x.other[n] {
		if settled != 0 && settled < uint64(v) {
			all, settled = append(all, settled), 0
		}
		all = append(all, uint64(v))
	}
	if settled != 0 {
		all = append(all, settled)
	}
	return all
}

const entrySize = 8 + 4*5 + 2

// Encode returns all entries as bytes.
func (x *Index) Encode() []byte {
	b := make([]byte, 0, x.Len()*entrySize)
	for _, e := range x.From(0) {
		b = binary.BigEndian.AppendUint64(b, e.ID)
		for _, v := range [...]uint32{e.Promise, e.Resolver, e.First, e.Settled, e.Changed} {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		b = binary.BigEndian.AppendUint16(b, uint16(e.Flags))
	}
	return b
}

// Decode reads the result of Encode into an empty index. It fails for bytes that are no entries.
func (x *Index) Decode(b []byte) error {
	if len(b)%entrySize != 0 {
		return fmt.Errorf("%d bytes are no index entries", len(b))
	}
	for ; len(b) > 0; b = b[entrySize:] {
		word := func(i int) uint32 { return binary.BigEndian.Uint32(b[8+4*i:]) }
		x.Add(Entry{
			ID: binary.BigEndian.Uint64(b), Promise: word(0), Resolver: word(1), First: word(2), Settled: word(3), Changed: word(4),
			Flags: Flags(binary.BigEndian.Uint16(b[28:])),
		})
	}
	return nil
}

// Noted yields the numbers and versions given to Note, in the order of the numbers.
func (x *Index) Noted() iter.Seq2[uint64, []uint32] {
	return func(yield func(uint64, []uint32) bool) {
		for _, n := range slices.Sorted(maps.Keys(x.other)) {
			if !yield(n, x.other[n]) {
				return
			}
		}
	}
}
