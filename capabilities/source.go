package capabilities

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Source makes a node's IDs: unique, unguessable, and each greater than all it made before, also when
// the clock steps back or many are made in one millisecond. It may be used by many goroutines.
//
// ulid.MonotonicEntropy gives neither: it starts afresh at every change of the clock, backwards too,
// and fails on overflow.
type Source struct {
	node    NodeID
	now     func() time.Time
	entropy io.Reader

	mu   sync.Mutex
	last ulid.ULID
}

// NewSource makes a Source for a node over a clock and a reader of cryptographic randomness. IDs will
// be greater than after, which may be zero.
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

// fresh makes the first ULID of a millisecond. Its top bit is left clear, so that there is room above.
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

// follow makes the ULID after the last one: a random step of up to 2^32 above it, and when that runs
// over, the first one of the next millisecond, whatever the clock says.
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
