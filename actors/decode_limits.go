package actors

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// decodeLimits bounds data from another node before it is decoded. An element of a list takes one byte on the wire, but
// hundreds in memory.
type decodeLimits struct {
	deep  int // lists and records within each other
	wide  int // elements of a list, of those that are not within a value that one agent passes to another
	parts int // in all
}

// The most that is in a packet, and in the events of a parcel: a value is up to 32 deep, and at most 52 Ki parts
// fit in one; a message has at most 13 Ki pieces.
var (
	packetLimits = decodeLimits{deep: 6, wide: 1 << 10, parts: 8 << 10}
	parcelLimits = decodeLimits{deep: 40, wide: 16 << 10, parts: 128 << 10}
)

// outerLists are those that hold what a list of an event or packet holds, and not what a value does.
const outerLists = 2

// allows reports whether body is one msgpack value within the bounds.
func (s *decodeLimits) allows(body []byte) bool {
	rd := bytes.NewReader(body)
	return s.walk(msgpack.NewDecoder(rd)) == nil && rd.Len() == 0
}

// allowsEvents reports whether body is events in the encoding of package events, within the bounds.
func (s *decodeLimits) allowsEvents(body []byte, count int) bool {
	rd := bytes.NewReader(body)
	dec := msgpack.NewDecoder(rd)
	for range count {
		for range 3 { // kind, version, time
			if s.walk(dec) != nil {
				return false
			}
		}
		n, err := dec.DecodeBytesLen()
		if err != nil || n < 0 || n > rd.Len() {
			return false
		}
		at := len(body) - rd.Len()
		if !s.allows(body[at : at+n]) {
			return false
		}
		if _, err := rd.Seek(int64(n), 1); err != nil {
			return false
		}
	}
	return rd.Len() == 0
}

// walk passes over one value without calling itself, however deep that is. What it has seen counts for the next.
func (s *decodeLimits) walk(dec *msgpack.Decoder) error {
	for left := []int{1}; len(left) > 0; {
		top := len(left) - 1
		if left[top] == 0 {
			left = left[:top]
			continue
		}
		left[top]--
		if s.parts--; s.parts < 0 {
			return errMalformedPacket
		}
		n, err := elements(dec)
		switch {
		case err != nil:
			return err
		case n < 0: // it has none
			continue
		case top >= s.deep || top < outerLists && n > s.wide || n > s.parts:
			return errMalformedPacket
		}
		left = append(left, n)
	}
	return nil
}

// elements begins to read a list or record and gives how many values are in it, or reads another value: -1.
func elements(dec *msgpack.Decoder) (int, error) {
	code, err := dec.PeekCode()
	switch {
	case err != nil:
		return 0, err
	case msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32:
		return dec.DecodeArrayLen()
	case msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32:
		n, err := dec.DecodeMapLen()
		return 2 * n, err
	}
	return -1, dec.Skip()
}
