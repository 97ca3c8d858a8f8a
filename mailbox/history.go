package mailbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"parley/capabilities"
)

// entry is the index entry of one message, in 32 bytes. It tells where the message stands in the log and how it is
// listed, so that the message itself need not be in memory.
type entry struct {
	id                uint64 // digest of the message's ID
	promise, resolver uint32 // digests of a form's other IDs
	first             uint32 // version of the event that brought the message
	settled           uint32 // version of the event that ended the form; 0 if there is none
	changed           uint32 // version of the last event about the message
	flags             entryFlags
}

type entryFlags uint16

const (
	isForm entryFlags = 1 << iota
	isSent
	isReceived
	isDismissed
	isByGrant // sent by a reference with a grant or facet
	hasOrigin // entered in the index of origins
)

func (e *entry) is(f entryFlags) bool { return e.flags&f != 0 }

// isOpen reports whether the message is a form that has not ended.
func (e *entry) isOpen() bool { return e.is(isForm) && e.settled == 0 }

// maxVersion bounds the versions of a mailbox, and with them the numbers of its messages.
const maxVersion = math.MaxUint32

const pageLength = 1 << 12

// history has the index entries of all messages by number, and finds them by ID. It has no pointers to messages.
type history struct {
	pages [][]entry // each but the last has pageLength entries
	slots []uint32  // a hash table of numbers plus one, by the digests of their IDs; 0 is a free slot
	used  int       // slots that are not free
	other map[uint64][]uint32
}

// digestOf returns the digest of an ID. Nobody can choose an ID with the digest of another one.
func digestOf(id capabilities.ID) uint64 {
	var b [16 + len(id.Node)]byte
	copy(b[:], id.ULID[:])
	copy(b[16:], id.Node[:])
	sum := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(sum[:])
}

// digestKey returns the digest of an idempotency key.
func digestKey(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])
}

func (h *history) len() uint64 {
	if len(h.pages) == 0 {
		return 0
	}
	last := len(h.pages) - 1
	return uint64(last*pageLength + len(h.pages[last]))
}

// at returns an entry. The number has to be that of a message.
func (h *history) at(n uint64) *entry { return &h.pages[n/pageLength][n%pageLength] }

// from yields the entries from a number on.
func (h *history) from(n uint64) iter.Seq2[uint64, *entry] {
	return func(yield func(uint64, *entry) bool) {
		for end := h.len(); n < end; n++ {
			if !yield(n, h.at(n)) {
				return
			}
		}
	}
}

// add appends an entry.
func (h *history) add(e entry) {
	if last := len(h.pages) - 1; last < 0 || len(h.pages[last]) == pageLength {
		h.pages = append(h.pages, nil)
	}
	last := len(h.pages) - 1
	n := uint32(h.len())
	h.pages[last] = append(h.pages[last], e)
	if 4*(h.used+3) > 3*len(h.slots) {
		h.grow()
		return
	}
	h.enter(n, &e)
}

// grow makes the hash table anew with twice the room.
func (h *history) grow() {
	size := max(16, 2*len(h.slots))
	h.slots, h.used = make([]uint32, size), 0
	for n, e := range h.from(0) {
		h.enter(uint32(n), e)
	}
}

// enter enters a number under each digest of its entry.
func (h *history) enter(n uint32, e *entry) {
	h.put(uint32(e.id), n)
	if e.is(isForm) {
		h.put(e.promise, n)
		h.put(e.resolver, n)
	}
}

func (h *history) put(digest, n uint32) {
	mask := uint32(len(h.slots) - 1)
	i := digest & mask
	for h.slots[i] != 0 {
		i = (i + 1) & mask
	}
	h.slots[i] = n + 1
	h.used++
}

// candidates yields the numbers of the slots where a digest can be.
func (h *history) candidates(digest uint32) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if len(h.slots) == 0 {
			return
		}
		mask := uint32(len(h.slots) - 1)
		for i := digest & mask; h.slots[i] != 0; i = (i + 1) & mask {
			if !yield(uint64(h.slots[i] - 1)) {
				return
			}
		}
	}
}

// find returns the number of the message with an ID.
func (h *history) find(id capabilities.ID) (uint64, bool) {
	digest := digestOf(id)
	for n := range h.candidates(uint32(digest)) {
		if h.at(n).id == digest {
			return n, true
		}
	}
	return 0, false
}

// findOther yields the numbers of the forms that may have an ID as their promise or resolver.
func (h *history) findOther(id capabilities.ID) iter.Seq[uint64] {
	digest := uint32(digestOf(id))
	return func(yield func(uint64) bool) {
		for n := range h.candidates(digest) {
			if e := h.at(n); e.is(isForm) && (e.promise == digest || e.resolver == digest) && !yield(n) {
				return
			}
		}
	}
}

// note adds the version of a further event that a message is made of.
func (h *history) note(n, version uint64) {
	if h.other == nil {
		h.other = map[uint64][]uint32{}
	}
	h.other[n] = append(h.other[n], uint32(version))
}

// versions returns the versions of the events that a message is made of, in order.
func (h *history) versions(n uint64) []uint64 {
	e := h.at(n)
	all := []uint64{uint64(e.first)}
	settled := uint64(e.settled)
	for _, v := range h.other[n] {
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

// encode returns all entries as bytes.
func (h *history) encode() []byte {
	b := make([]byte, 0, h.len()*entrySize)
	for _, e := range h.from(0) {
		b = binary.BigEndian.AppendUint64(b, e.id)
		for _, v := range [...]uint32{e.promise, e.resolver, e.first, e.settled, e.changed} {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		b = binary.BigEndian.AppendUint16(b, uint16(e.flags))
	}
	return b
}

// decode reads the result of encode into an empty history.
func (h *history) decode(b []byte) error {
	if len(b)%entrySize != 0 {
		return fmt.Errorf("%w: %d bytes of index entries", ErrNonsense, len(b))
	}
	for ; len(b) > 0; b = b[entrySize:] {
		word := func(i int) uint32 { return binary.BigEndian.Uint32(b[8+4*i:]) }
		h.add(entry{
			id: binary.BigEndian.Uint64(b), promise: word(0), resolver: word(1), first: word(2), settled: word(3), changed: word(4),
			flags: entryFlags(binary.BigEndian.Uint16(b[28:])),
		})
	}
	return nil
}
