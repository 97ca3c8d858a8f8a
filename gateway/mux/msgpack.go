package mux

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/internal/pack"
)

// MaxDepth bounds how deep a body nests. A deeper request is refused as over HTTP.
const MaxDepth = api.MaxDepth

// frameDepth bounds how deep a value of a frame nests. A deeper one ends the connection.
const frameDepth = 1024

// jsonText is the type of the extension that holds JSON as text.
const jsonText = 1

// Reader reads msgpack values of a message, one after the other. It believes no length that is not there, and keeps its
// first error: after that all it reads is zero. Slices that it returns are parts of the message.
type Reader struct {
	rest  []byte
	whole string // whose parts String returns; "": it copies them
	err   error

	last     capabilities.NodeID // of the last ID that was read: the IDs of a body are mostly of one node
	lastNode string              // the same as text
}

// NewReader returns a Reader of a value, as Frame.Body.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// NewTextReader returns a Reader of a value whose texts share one copy. They keep all of it in memory.
func NewTextReader(b []byte) *Reader { return &Reader{rest: b, whole: string(b)} }

// Err returns the first error: INVALID_ARGUMENT.
func (r *Reader) Err() error { return r.err }

func (r *Reader) fail() {
	if r.err == nil {
		r.err = parley.Refuse(parley.InvalidArgument, "the frame is malformed")
	}
	r.rest = nil
}

// take returns the next n bytes.
func (r *Reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// number returns the next n bytes as a number, for n up to 8.
func (r *Reader) number(n int) uint64 {
	var wide [8]byte
	copy(wide[8-n:], r.take(uint64(n)))
	return binary.BigEndian.Uint64(wide[:])
}

// code returns the next code, which says what follows.
func (r *Reader) code() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return msgpcode.Nil
}

// next returns the next code without reading it.
func (r *Reader) next() byte {
	if len(r.rest) == 0 {
		r.fail()
		return msgpcode.Nil
	}
	return r.rest[0]
}

// Uint reads a number that is not negative.
func (r *Reader) Uint() uint64 {
	switch c := r.code(); c {
	case msgpcode.Uint8:
		return r.number(1)
	case msgpcode.Uint16:
		return r.number(2)
	case msgpcode.Uint32:
		return r.number(4)
	case msgpcode.Uint64:
		return r.number(8)
	default:
		if c <= msgpcode.PosFixedNumHigh {
			return uint64(c)
		}
	}
	r.fail()
	return 0
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	c := r.code()
	if c != msgpcode.True && c != msgpcode.False {
		r.fail()
	}
	return c == msgpcode.True
}

// String reads a text, which is valid UTF-8.
func (r *Reader) String() string {
	b := r.Text()
	if at := len(r.whole) - len(r.rest) - len(b); r.err == nil && at >= 0 {
		return r.whole[at : at+len(b)]
	}
	return string(b)
}

// Text is String without a copy.
func (r *Reader) Text() []byte {
	var n uint64
	switch c := r.code(); {
	case msgpcode.IsFixedString(c):
		n = uint64(c & msgpcode.FixedStrMask)
	case c == msgpcode.Str8:
		n = r.number(1)
	case c == msgpcode.Str16:
		n = r.number(2)
	case c == msgpcode.Str32:
		n = r.number(4)
	default:
		r.fail()
	}
	b := r.take(n)
	if !utf8.Valid(b) {
		r.fail()
	}
	return b
}

// Array reads the head of an array, and returns the number of its elements.
func (r *Reader) Array() int {
	var n uint64
	switch c := r.code(); {
	case msgpcode.IsFixedArray(c):
		n = uint64(c & msgpcode.FixedArrayMask)
	case c == msgpcode.Array16:
		n = r.number(2)
	case c == msgpcode.Array32:
		n = r.number(4)
	default:
		r.fail()
	}
	return r.count(n, 1)
}

// Map reads the head of a map, and returns the number of its pairs.
func (r *Reader) Map() int {
	var n uint64
	switch c := r.code(); {
	case msgpcode.IsFixedMap(c):
		n = uint64(c & msgpcode.FixedMapMask)
	case c == msgpcode.Map16:
		n = r.number(2)
	case c == msgpcode.Map32:
		n = r.number(4)
	default:
		r.fail()
	}
	return r.count(n, 2)
}

// count returns n if so many elements of at least some bytes can follow.
func (r *Reader) count(n uint64, bytes int) int {
	if n > uint64(len(r.rest)/bytes) {
		r.fail()
		return 0
	}
	return int(n)
}

// Rest returns what was not read yet.
func (r *Reader) Rest() []byte { return r.rest }

// IsMap reports whether the next value is a map.
func (r *Reader) IsMap() bool { return kindOf(r.next()) == aMap }

// IsJSON reports whether the next value is JSON as text.
func (r *Reader) IsJSON() bool { return kindOf(r.next()) == anExt }

// JSON reads JSON as text. It does not parse it.
func (r *Reader) JSON() []byte {
	var n uint64
	switch c := r.code(); c {
	case msgpcode.FixExt1, msgpcode.FixExt2, msgpcode.FixExt4, msgpcode.FixExt8, msgpcode.FixExt16:
		n = 1 << (c - msgpcode.FixExt1)
	case msgpcode.Ext8:
		n = r.number(1)
	case msgpcode.Ext16:
		n = r.number(2)
	case msgpcode.Ext32:
		n = r.number(4)
	default:
		r.fail()
	}
	if r.number(1) != jsonText {
		r.fail()
	}
	return r.take(n)
}

// Raw reads one value of any type, and returns its bytes.
func (r *Reader) Raw() []byte {
	from := r.rest
	r.skip(frameDepth)
	if r.err != nil {
		return nil
	}
	n := len(from) - len(r.rest)
	return from[:n:n]
}

// skip reads past one value that nests at most so deep.
func (r *Reader) skip(depth int) {
	if depth == 0 {
		r.fail()
	}
	switch c := r.next(); kindOf(c) {
	case aString:
		r.Text()
	case anArray:
		for range r.Array() {
			r.skip(depth - 1)
		}
	case aMap:
		for range r.Map() {
			r.Text()
			r.skip(depth - 1)
		}
	case anExt:
		r.JSON()
	default:
		r.scalar()
	}
}

// kind is a kind of value by its code.
type kind int

const (
	aScalar kind = iota
	aString
	anArray
	aMap
	anExt
)

func kindOf(c byte) kind {
	switch {
	case msgpcode.IsFixedString(c), c >= msgpcode.Str8 && c <= msgpcode.Str32:
		return aString
	case msgpcode.IsFixedArray(c), c == msgpcode.Array16, c == msgpcode.Array32:
		return anArray
	case msgpcode.IsFixedMap(c), c == msgpcode.Map16, c == msgpcode.Map32:
		return aMap
	case c >= msgpcode.FixExt1 && c <= msgpcode.FixExt16, c >= msgpcode.Ext8 && c <= msgpcode.Ext32:
		return anExt
	}
	return aScalar
}

// scalar reads a number, true, false or nil, as a value of its JSON type.
func (r *Reader) scalar() any {
	switch c := r.next(); c {
	case msgpcode.Nil:
		r.code()
		return nil
	case msgpcode.True, msgpcode.False:
		return r.Bool()
	case msgpcode.Float:
		r.code()
		return r.finite(float64(math.Float32frombits(uint32(r.number(4)))))
	case msgpcode.Double:
		r.code()
		return r.finite(math.Float64frombits(r.number(8)))
	case msgpcode.Int8:
		r.code()
		return int64(int8(r.number(1)))
	case msgpcode.Int16:
		r.code()
		return int64(int16(r.number(2)))
	case msgpcode.Int32:
		r.code()
		return int64(int32(r.number(4)))
	case msgpcode.Int64:
		r.code()
		return int64(r.number(8))
	default:
		if c >= msgpcode.NegFixedNumLow {
			r.code()
			return int64(int8(c))
		}
		return r.Uint()
	}
}

// finite refuses what JSON has no number for.
func (r *Reader) finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		r.fail()
		return 0
	}
	return f
}

// AppendJSON appends JSON as text.
func AppendJSON[T string | []byte](b []byte, text T) []byte {
	return append(pack.AppendExt(b, jsonText, len(text)), text...)
}
