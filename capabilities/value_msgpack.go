package capabilities

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/internal/pack"
)

// The msgpack extension types of Parley. Their numbers never change.
const (
	extID     int8 = 1 // an ID: 16 bytes of ULID, 32 of node key
	extRef    int8 = 2 // a Ref: a msgpack array
	extTime   int8 = 3 // a Time: 8 bytes, milliseconds since 1970 in UTC, big endian
	extSealed int8 = 4 // a sealed value: ciphertext
)

var errMalformed = errors.New("malformed encoding")

// decodedNil consumes a nil if it is next, and reports whether it was.
func decodedNil(dec *msgpack.Decoder) (bool, error) {
	code, err := dec.PeekCode()
	if err != nil || code != msgpcode.Nil {
		return false, err
	}
	return true, dec.DecodeNil()
}

// wantExt consumes the header of an extension. It fails for another type or length.
func wantExt(dec *msgpack.Decoder, id int8, size int) error {
	got, n, err := dec.DecodeExtHeader()
	if err != nil {
		return err
	}
	if got != id || n != size {
		return fmt.Errorf("%w: extension %d of %d bytes, want %d of %d", errMalformed, got, n, id, size)
	}
	return nil
}

// AppendMsgpack appends the value in its canonical form: integers in the shortest form, floats in 64 bits, and the keys of
// records sorted bytewise.
func (v Value) AppendMsgpack(b []byte) []byte {
	switch x := v.v.(type) {
	case bool:
		return pack.AppendBool(b, x)
	case int64:
		return pack.AppendInt(b, x)
	case float64:
		return pack.AppendFloat(b, x)
	case string:
		return pack.AppendString(b, x)
	case []byte:
		return pack.AppendBytes(b, x)
	case list:
		b = pack.AppendArray(b, len(x))
		for _, e := range x {
			b = e.AppendMsgpack(b)
		}
		return b
	case record:
		return x.appendMsgpack(b)
	case Ref:
		return x.AppendMsgpack(b)
	case sealed:
		return append(pack.AppendExt(b, extSealed, len(x)), x...)
	}
	return pack.AppendNil(b)
}

func (r record) appendMsgpack(b []byte) []byte {
	b = pack.AppendMap(b, len(r))
	keys := make([]string, 0, 16) // on the stack, for most records
	for k := range r {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		b = r[k].AppendMsgpack(pack.AppendString(b, k))
	}
	return b
}

// EncodeMsgpack encodes what AppendMsgpack appends.
func (v Value) EncodeMsgpack(enc *msgpack.Encoder) error {
	r := rooms.Get().(*room)
	r.b = v.AppendMsgpack(r.b[:0])
	return r.encode(enc)
}

// room holds what is about to be written to an encoder, which would have a slice of the stack allocated.
type room struct{ b []byte }

var rooms = sync.Pool{New: func() any { return new(room) }}

// maxRoom bounds, in bytes, a room that is kept.
const maxRoom = 4 << 10

// encode writes the room, and gives it back.
func (r *room) encode(enc *msgpack.Encoder) error {
	_, err := enc.Writer().Write(r.b)
	if cap(r.b) <= maxRoom {
		rooms.Put(r)
	}
	return err
}

// DecodeMsgpack decodes a value. It refuses a value that is nested too deeply, over the bounds or malformed. Check
// accepts its result, except perhaps for the size as a whole.
func (v *Value) DecodeMsgpack(dec *msgpack.Decoder) error {
	got, err := decodeValue(dec, 0)
	if err != nil {
		return err
	}
	*v = got
	return nil
}

// EncodeValue returns the canonical encoding of v.
func EncodeValue(v Value) ([]byte, error) {
	return v.AppendMsgpack(nil), nil
}

// DecodeValue decodes one value and nothing after it. It refuses any other encoding than the canonical one, so that a
// hash or signature has one meaning.
func DecodeValue(b []byte) (Value, error) {
	if len(b) > MaxValueSize {
		return Value{}, fmt.Errorf("%w: %d bytes", errMalformed, len(b))
	}
	v, err := decodeValue(msgpack.NewDecoder(bytes.NewReader(b)), 0)
	if err != nil {
		return Value{}, err
	}
	if err := v.Check(); err != nil {
		return Value{}, err
	}
	again, err := EncodeValue(v)
	if err != nil {
		return Value{}, err
	}
	if !bytes.Equal(b, again) {
		return Value{}, fmt.Errorf("%w: not canonical", errMalformed)
	}
	return v, nil
}

func decodeValue(dec *msgpack.Decoder, depth int) (Value, error) {
	if depth > MaxValueDepth {
		return Value{}, tooDeep()
	}
	code, err := dec.PeekCode()
	if err != nil {
		return Value{}, err
	}
	switch {
	case code == msgpcode.Nil:
		return Null(), dec.DecodeNil()
	case code == msgpcode.True || code == msgpcode.False:
		b, err := dec.DecodeBool()
		return Bool(b), err
	case code == msgpcode.Uint64:
		return decodeUint64(dec)
	case msgpcode.IsFixedNum(code) || code >= msgpcode.Uint8 && code <= msgpcode.Int64:
		i, err := dec.DecodeInt64()
		return Int(i), err
	case code == msgpcode.Double:
		f, err := dec.DecodeFloat64()
		if err != nil {
			return Value{}, err
		}
		return Float(f), Float(f).check(depth)
	case msgpcode.IsString(code):
		s, err := decodeText(dec)
		return String(s), err
	case msgpcode.IsBin(code):
		return decodeBytes(dec)
	case msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32:
		return decodeList(dec, depth)
	case msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32:
		return decodeRecord(dec, depth)
	case msgpcode.IsExt(code):
		return decodeExt(dec)
	}
	return Value{}, fmt.Errorf("%w: code %#x", errMalformed, code)
}

// decodeUint64 decodes an unsigned integer. The library would return a number over int64 as a negative one.
func decodeUint64(dec *msgpack.Decoder) (Value, error) {
	u, err := dec.DecodeUint64()
	if err == nil && u > math.MaxInt64 {
		err = fmt.Errorf("%w: %d is beyond 64-bit integers", errMalformed, u)
	}
	return Int(int64(u)), err
}

func decodeText(dec *msgpack.Decoder) (string, error) {
	s, err := dec.DecodeString()
	if err != nil {
		return "", err
	}
	return s, checkText(s)
}

// decodeBytes decodes bytes. The library would allocate the claimed length first.
func decodeBytes(dec *msgpack.Decoder) (Value, error) {
	n, err := dec.DecodeBytesLen()
	if err != nil {
		return Value{}, err
	}
	if n < 0 || n > MaxValueSize {
		return Value{}, fmt.Errorf("%w: %d bytes", errMalformed, n)
	}
	b := make([]byte, n)
	err = dec.ReadFull(b)
	return Bytes(b), err
}

func decodeList(dec *msgpack.Decoder, depth int) (Value, error) {
	n, err := dec.DecodeArrayLen()
	if err != nil {
		return Value{}, err
	}
	if n < 0 || n > MaxValueSize {
		return Value{}, fmt.Errorf("%w: list of %d", errMalformed, n)
	}
	l := make(list, 0, min(n, 64)) // the claimed length may be false
	for range n {
		e, err := decodeValue(dec, depth+1)
		if err != nil {
			return Value{}, err
		}
		l = append(l, e)
	}
	return Value{l}, nil
}

func decodeRecord(dec *msgpack.Decoder, depth int) (Value, error) {
	n, err := dec.DecodeMapLen()
	if err != nil {
		return Value{}, err
	}
	if n < 0 || n > MaxValueSize {
		return Value{}, fmt.Errorf("%w: record of %d", errMalformed, n)
	}
	r := make(record, min(n, 64))
	last := ""
	for i := range n {
		k, err := decodeText(dec)
		if err != nil {
			return Value{}, err
		}
		if i > 0 && k <= last {
			return Value{}, fmt.Errorf("%w: record keys out of order", errMalformed)
		}
		last = k
		if r[k], err = decodeValue(dec, depth+1); err != nil {
			return Value{}, err
		}
	}
	return Value{r}, nil
}

func decodeExt(dec *msgpack.Decoder) (Value, error) {
	id, n, err := dec.DecodeExtHeader()
	if err != nil {
		return Value{}, err
	}
	switch id {
	case extRef:
		var r Ref
		err := r.decodeBody(dec, n)
		return Reference(r), err
	case extSealed:
		if n < 0 || n > MaxValueSize {
			return Value{}, fmt.Errorf("%w: sealed value of %d bytes", errMalformed, n)
		}
		b := make([]byte, n)
		err := dec.ReadFull(b)
		return Sealed(b), err
	}
	return Value{}, fmt.Errorf("%w: extension %d is no value", errMalformed, id)
}
