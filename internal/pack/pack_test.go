package pack

import (
	"bytes"
	"math"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// TestFormsEqualTheLibrarys compares each form with that of the library, on both sides of each boundary.
func TestFormsEqualTheLibrarys(t *testing.T) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	same := func(what string, n any, own []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(own, buf.Bytes()) {
			t.Errorf("%s %v: % x, and the library has % x", what, n, own, buf.Bytes())
		}
		buf.Reset()
	}
	for bit := range 64 {
		for _, off := range []uint64{^uint64(1), ^uint64(0), 0, 1} {
			n := uint64(1)<<bit + off
			same("uint", n, AppendUint(nil, n), enc.EncodeUint(n))
			same("int", int64(n), AppendInt(nil, int64(n)), enc.EncodeInt(int64(n)))
			same("int", -int64(n), AppendInt(nil, -int64(n)), enc.EncodeInt(-int64(n)))
		}
	}
	for _, f := range []float64{0, -1, 0.1, math.MaxFloat64, math.Inf(1)} {
		same("float", f, AppendFloat(nil, f), enc.EncodeFloat64(f))
	}
	for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 255, 256, 65535, 65536} {
		data := make([]byte, n)
		same("text", n, AppendString(nil, data), enc.EncodeString(string(data)))
		same("bytes", n, AppendBytes(nil, data), enc.EncodeBytes(data))
		same("array", n, AppendArray(nil, n), enc.EncodeArrayLen(n))
		same("map", n, AppendMap(nil, n), enc.EncodeMapLen(n))
		same("extension", n, AppendExt(nil, 3, n), enc.EncodeExtHeader(3, n))
	}
	same("bool", true, AppendBool(AppendBool(nil, true), false), enc.EncodeMulti(true, false))
	same("nil", nil, AppendNil(nil), enc.EncodeNil())
}
