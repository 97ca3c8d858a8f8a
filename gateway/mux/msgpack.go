package mux

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley"
)

// MaxDepth bounds how deep a body nests.
const MaxDepth = 32

// jsonText is the type of the extension that holds JSON as text.
const jsonText = 1

// Reader reads msgpack values of a message, one after the other. It believes no length that is not there, and keeps its
// first error: after that all it reads is zero. Slices that it returns are parts of the message.
type Reader struct {
	rest []byte
	err  error
}

// NewReader returns a Reader of a value, as Frame.Body.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

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
func (r *Reader) String() string { return string(r.Text()) }

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
	r.skip(MaxDepth)
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

// AppendUint appends a number.
func AppendUint(b []byte, n uint64) []byte {
	switch {
	case n <= uint64(msgpcode.PosFixedNumHigh):
		return append(b, byte(n))
	case n <= math.MaxUint8:
		return append(b, msgpcode.Uint8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, msgpcode.Uint16), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, msgpcode.Uint32), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, msgpcode.Uint64), n)
}

// AppendInt appends a number that may be negative.
func AppendInt(b []byte, n int64) []byte {
	if n >= 0 {
		return AppendUint(b, uint64(n))
	}
	if n >= -32 {
		return append(b, byte(n))
	}
	return binary.BigEndian.AppendUint64(append(b, msgpcode.Int64), uint64(n))
}

// AppendFloat appends a number with a fraction.
func AppendFloat(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, msgpcode.Double), math.Float64bits(f))
}

// AppendBool appends true or false.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, msgpcode.True)
	}
	return append(b, msgpcode.False)
}

// AppendNil appends nil.
func AppendNil(b []byte) []byte { return append(b, msgpcode.Nil) }

// AppendString appends a text.
func AppendString[T string | []byte](b []byte, s T) []byte {
	return append(appendHead(b, len(s), msgpcode.FixedStrLow, 32, msgpcode.Str8, msgpcode.Str16), s...)
}

// AppendArray appends the head of an array with n elements.
func AppendArray(b []byte, n int) []byte {
	return appendHead(b, n, msgpcode.FixedArrayLow, 16, 0, msgpcode.Array16)
}

// AppendMap appends the head of a map with n pairs.
func AppendMap(b []byte, n int) []byte {
	return appendHead(b, n, msgpcode.FixedMapLow, 16, 0, msgpcode.Map16)
}

// AppendJSON appends JSON as text.
func AppendJSON[T string | []byte](b []byte, text T) []byte {
	return append(append(appendHead(b, len(text), 0, 0, msgpcode.Ext8, msgpcode.Ext16), jsonText), text...)
}

// appendHead appends a code and a length: in the code itself below fixed, and behind the codes for lengths of 8, 16 and
// 32 bits, which follow each other. A code8 of 0 is none.
func appendHead(b []byte, n int, low byte, fixed int, code8, code16 byte) []byte {
	switch {
	case n < fixed:
		return append(b, low|byte(n))
	case n <= math.MaxUint8 && code8 != 0:
		return append(b, code8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, code16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, code16+1), uint32(n))
}
