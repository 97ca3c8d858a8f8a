package index

import "iter"

// slots is a hash table of numbers by digests. A number may be there under several digests.
type slots struct {
	all  []uint32 // numbers plus one; 0 is a free slot
	tags []byte   // of the digests; they spare most looks at entries, which are far apart in memory
	used int      // slots that are not free
}

// tagOf returns the bits of a digest that say least about its slot.
func tagOf(digest uint32) byte { return byte(digest >> 24) }

// newSlots returns an empty table with room for a count of digests.
func newSlots(count int) slots {
	size := 16
	for size < 2*count {
		size *= 2
	}
	return slots{all: make([]uint32, size), tags: make([]byte, size)}
}

// len returns the number of slots, with the free ones.
func (s *slots) len() int { return len(s.all) }

// hasRoom reports whether a count of digests can be put and the table still has enough free slots.
func (s *slots) hasRoom(count int) bool { return 4*(s.used+count) <= 3*len(s.all) }

// put enters a number under a digest. The table has to have room.
func (s *slots) put(digest, n uint32) {
	mask := uint32(len(s.all) - 1)
	i := digest & mask
	for s.all[i] != 0 {
		i = (i + 1) & mask
	}
	s.all[i], s.tags[i] = n+1, tagOf(digest)
	s.used++
}

// find yields the numbers under a digest, and a few others.
func (s *slots) find(digest uint32) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if len(s.all) == 0 {
			return
		}
		mask := uint32(len(s.all) - 1)
		for i := digest & mask; s.all[i] != 0; i = (i + 1) & mask {
			if s.tags[i] == tagOf(digest) && !yield(uint64(s.all[i]-1)) {
				return
			}
		}
	}
}
