package pack

import (
	"encoding/binary"
	"math"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

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
	switch {
	case n >= 0:
		return AppendUint(b, uint64(n))
	case n >= int64(int8(msgpcode.NegFixedNumLow)):
		return append(b, byte(n))
	case n >= math.MinInt8:
		return append(b, msgpcode.Int8, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, msgpcode.Int16), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, msgpcode.Int32), uint32(n))
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
	return append(AppendText(b, len(s)), s...)
}

// AppendText appends the head of a text of n bytes.
func AppendText(b []byte, n int) []byte {
	return appendHead(b, n, msgpcode.FixedStrLow, 32, msgpcode.Str8, msgpcode.Str16)
}

// AppendBytes appends bytes that are not a text. They are not nil.
func AppendBytes(b, data []byte) []byte {
	return append(appendHead(b, len(data), 0, 0, msgpcode.Bin8, msgpcode.Bin16), data...)
}

// AppendArray appends the head of an array with n elements.
func AppendArray(b []byte, n int) []byte {
	return appendHead(b, n, msgpcode.FixedArrayLow, 16, 0, msgpcode.Array16)
}

// AppendMap appends the head of a map with n pairs.
func AppendMap(b []byte, n int) []byte {
	return appendHead(b, n, msgpcode.FixedMapLow, 16, 0, msgpcode.Map16)
}

// AppendExt appends the head of an extension of a type, with n bytes of data.
func AppendExt(b []byte, kind int8, n int) []byte {
	switch n {
	case 1, 2, 4, 8, 16:
		code := msgpcode.FixExt1
		for size := 1; size < n; size *= 2 {
			code++
		}
		b = append(b, code)
	default:
		b = appendHead(b, n, 0, 0, msgpcode.Ext8, msgpcode.Ext16)
	}
	return append(b, byte(kind))
}

// appendHead appends a code and a length: in the code itself below fixed. Otherwise it stands behind the codes for
// lengths of 8, 16 and 32 bits, which follow each other. A code8 of 0 is none.
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
