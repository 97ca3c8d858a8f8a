package capabilities

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"parley/internal/fault"
)

func someRef() *rapid.Generator[Ref] {
	return rapid.Custom(func(t *rapid.T) Ref {
		r := Ref{
			Target: someID().Draw(t, "target"),
			Kind:   rapid.SampledFrom([]Kind{KindAgent, KindPromise, KindBlob}).Draw(t, "kind"),
			Facet:  someFacet().Draw(t, "facet"),
		}
		r.Target.ULID[0] |= 1 // a reference has a target
		if rapid.Bool().Draw(t, "given") {
			r.Grant = testID(rapid.Byte().Draw(t, "grant"))
		}
		return r
	})
}

// someValue generates values that can be written in JSON: without sealed values, and without records that JSON reads as
// another type.
func someValue(depth int) *rapid.Generator[Value] {
	leaves := []*rapid.Generator[Value]{
		rapid.Just(Null()),
		rapid.Map(rapid.Bool(), Bool),
		rapid.Map(rapid.Int64(), Int),
		rapid.Map(rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, -129, -33, -32, -1, 0, 127, 128, 255, 256, 65536, 1 << 32}), Int),
		rapid.Map(rapid.Float64(), Float),
		rapid.Map(rapid.SampledFrom([]float64{0, 1, 1e21, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Copysign(0, -1)}), Float),
		rapid.Map(rapid.String(), String),
		rapid.Map(rapid.SliceOf(rapid.Byte()), Bytes),
		rapid.Map(someRef(), Reference),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	under := someValue(depth - 1)
	keys := rapid.StringMatching(`[a-cé]{0,3}`)
	return rapid.OneOf(append(leaves,
		rapid.Map(rapid.SliceOfN(under, 0, 4), func(vs []Value) Value { return List(vs...) }),
		rapid.Map(rapid.MapOfN(keys, under, 0, 4), Record),
	)...)
}

func encoded(t rapid.TB, v Value) []byte {
	t.Helper()
	b, err := EncodeValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestValueEncodingRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := someValue(3).Draw(t, "value")
		if rapid.Bool().Draw(t, "sealed") {
			v = List(v, Sealed(rapid.SliceOf(rapid.Byte()).Draw(t, "ciphertext")))
		}
		b := encoded(t, v)
		got, err := DecodeValue(b)
		if err != nil || !got.Equal(v) || !v.Equal(got) {
			t.Fatalf("%x: got %s, %v, want %s", b, got.Text(), err, v.Text())
		}
		if n := v.size(); n < len(b)-100 || n > 10*len(b)+200 {
			t.Fatalf("a size of %d for %d bytes", n, len(b))
		}
	})
}

func TestEqualValuesHaveEqualEncodings(t *testing.T) {
	small := rapid.OneOf(
		rapid.Map(rapid.Int64Range(-2, 2), Int), rapid.Map(rapid.Float64Range(-1, 1), Float),
		rapid.Map(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1}), Float),
		rapid.Map(rapid.StringMatching(`[01]?`), String), rapid.Just(Null()), rapid.Just(Bytes(nil)), rapid.Just(Sealed(nil)),
		rapid.Just(List()), rapid.Just(Record(nil)), rapid.Just(Record(map[string]Value{})), rapid.Just(Bytes([]byte{'0'})),
	)
	some := rapid.OneOf(small, rapid.Map(rapid.SliceOfN(small, 0, 2), func(vs []Value) Value { return List(vs...) }),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[ab]`), small, 0, 2), Record))
	rapid.Check(t, func(t *rapid.T) {
		v, o := some.Draw(t, "v"), some.Draw(t, "o")
		same := bytes.Equal(encoded(t, v), encoded(t, o))
		if v.Equal(o) != same || o.Equal(v) != same {
			t.Fatalf("%s of type %s and %s of type %s: equal %t, equal encodings %t", v.Text(), v.TypeName(), o.Text(), o.TypeName(), v.Equal(o), same)
		}
	})
}

func TestKeyOrderDoesNotChangeEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOfN(rapid.String(), someValue(1), 2, 8).Draw(t, "record")
		keys := slices.Sorted(maps.Keys(m))
		order := rapid.Permutation(keys).Draw(t, "order")
		other := map[string]Value{}
		for _, k := range order {
			other[k] = m[k]
		}
		if !bytes.Equal(encoded(t, Record(m)), encoded(t, Record(other))) {
			t.Fatalf("order %q changes the encoding", order)
		}
	})
}

// TestNonCanonicalValuesAreRefused decodes longer or reordered encodings of values, and bytes that encode no value.
func TestNonCanonicalValuesAreRefused(t *testing.T) {
	ref := encoded(t, Reference(Ref{Target: testID(1), Kind: KindAgent}))
	for what, b := range map[string][]byte{
		"empty":                        {},
		"an int in two bytes":          {0xcc, 5},
		"an int in nine bytes":         {0xd3, 0, 0, 0, 0, 0, 0, 0, 5},
		"an int beyond 64 bits":        {0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"a float of 32 bits":           {0xca, 0, 0, 0, 0},
		"NaN":                          {0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1},
		"infinity":                     {0xcb, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0},
		"a string with a long length":  {0xd9, 1, 'a'},
		"a string that is not UTF-8":   {0xa1, 0xff},
		"a string cut short":           {0xa2, 'a'},
		"bytes with a long length":     {0xc5, 0, 1, 'a'},
		"a list with a long length":    {0xdc, 0, 1, 0xc0},
		"a list that claims 4 billion": {0xdd, 0xff, 0xff, 0xff, 0xff},
		"a list that claims 200,000":   {0xdd, 0, 3, 0x0d, 0x40},
		"bytes that claim 4 billion":   {0xc6, 0xff, 0xff, 0xff, 0xff},
		"a record with a long length":  {0xde, 0, 1, 0xa1, 'a', 0xc0},
		"a record out of order":        {0x82, 0xa1, 'b', 0xc0, 0xa1, 'a', 0xc0},
		"a record with a key twice":    {0x82, 0xa1, 'a', 0xc0, 0xa1, 'a', 0xc0},
		"a record with a key of bytes": {0x81, 0xc4, 1, 'a', 0xc0},
		"a record with a key of null":  {0x81, 0xc0, 0xc0},
		"a record with a key of int":   {0x81, 1, 0xc0},
		"a key that is not UTF-8":      {0x81, 0xa1, 0xff, 0xc0},
		"two values":                   {0xc0, 0xc0},
		"an unused code":               {0xc1},
		"an unknown extension":         {0xd4, 99, 0},
		"a bare ID":                    append([]byte{0xc7, 48, 1}, make([]byte, 48)...),
		"a time of the library's":      {0xd6, 0xff, 0, 0, 0, 0},
		"a reference cut short":        ref[:len(ref)-1],
		"a reference with more":        append(append([]byte{0xc7, ref[1] + 1}, ref[2:]...), 0xc0),
		"a sealed value cut short":     {0xc7, 9, 4, 1},
		"a sealed value of 4 billion":  {0xc9, 0xff, 0xff, 0xff, 0xff, 4},
	} {
		if v, err := DecodeValue(b); err == nil {
			t.Errorf("%s: got %s", what, v.Text())
		}
	}
}

func TestInvalidReferencesAreRefused(t *testing.T) {
	for what, r := range map[string]Ref{
		"no target":        {Kind: KindAgent},
		"no kind":          {Target: testID(1)},
		"an unknown kind":  {Target: testID(1), Kind: "spaceship"},
		"an unknown facet": {Target: testID(1), Kind: KindAgent, Facet: Facet{Mode: "everything"}},
	} {
		if v, err := DecodeValue(encoded(t, Reference(r))); err == nil {
			t.Errorf("%s: got %s", what, v.Text())
		}
	}
}

func nested(depth int) Value {
	v := Int(1)
	for range depth {
		v = List(v)
	}
	return v
}

func TestValuesAreBounded(t *testing.T) {
	big := strings.Repeat("x", 300<<10)
	many := make([]Value, MaxValueSize/9)
	for _, c := range []struct {
		what string
		v    Value
		code fault.Code
	}{
		{"32 deep", nested(MaxValueDepth), ""},
		{"33 deep", nested(MaxValueDepth + 1), fault.TooLarge},
		{"64 deep", nested(64), fault.TooLarge},
		{"300 KiB of text", String(big), fault.TooLarge},
		{"300 KiB of bytes", Bytes([]byte(big)), fault.TooLarge},
		{"300 KiB sealed", Sealed([]byte(big)), fault.TooLarge},
		{"300 KiB in a key", Record(map[string]Value{big: Null()}), fault.TooLarge},
		{"300 KiB in parts", List(String(big[:100<<10]), List(String(big[:100<<10])), String(big[:100<<10])), fault.TooLarge},
		{"many nulls", List(many...), fault.TooLarge},
		{"200 KiB", String(big[:200<<10]), ""},
		{"NaN", List(Float(math.NaN())), fault.InvalidArgument},
		{"infinity", Record(map[string]Value{"a": Float(math.Inf(1))}), fault.InvalidArgument},
		{"minus infinity", Float(math.Inf(-1)), fault.InvalidArgument},
		{"text that is not UTF-8", List(String("a\xff")), fault.InvalidArgument},
		{"a key that is not UTF-8", Record(map[string]Value{"\xc3": Null()}), fault.InvalidArgument},
	} {
		wantCode(t, c.v.Check(), c.code, c.what)
		if _, err := DecodeValue(encoded(t, c.v)); (err == nil) != (c.code == "") {
			t.Errorf("%s decoded: %v", c.what, err)
		}
	}
	var v Value
	wantCode(t, msgpack.Unmarshal(encoded(t, nested(64)), &v), fault.TooLarge, "64 deep within an event")
}

func TestRefsAreFoundInCanonicalOrder(t *testing.T) {
	r := func(n byte) Value { return Reference(Ref{Target: testID(n), Kind: KindAgent}) }
	v := Record(map[string]Value{"b": List(r(2), Int(1), r(3)), "a": r(1), "c": Record(map[string]Value{"d": r(4)})})
	for range 10 {
		for i, ref := range v.Refs() {
			if ref.Target != testID(byte(i+1)) {
				t.Fatalf("got %v", v.Refs())
			}
		}
	}
	if n := len(v.Refs()); n != 4 {
		t.Fatalf("found %d", n)
	}
}

// FuzzDecodeValue checks that a decoded value is well formed, has one encoding, and can be written as JSON.
func FuzzDecodeValue(f *testing.F) {
	for _, v := range []Value{
		Null(), Int(math.MinInt64), Float(-0.5), Bytes([]byte{1}), Sealed([]byte{1, 2}), nested(32), Strings("a", "é"),
		Record(map[string]Value{"a": Reference(Ref{Target: testID(1), Kind: KindAgent, Grant: testID(2), Facet: Facet{Mode: AskOnly, Until: 9, Uses: 3}})}),
	} {
		f.Add(encoded(f, v))
	}
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var loose Value
		_ = msgpack.Unmarshal(b, &loose) // must not panic
		v, err := DecodeValue(b)
		if err != nil {
			return
		}
		if err := v.Check(); err != nil {
			t.Fatalf("%x decodes to a malformed value: %v", b, err)
		}
		if again := encoded(t, v); !bytes.Equal(again, b) {
			t.Fatalf("%x is encoded as %x", b, again)
		}
		if doc, err := v.MarshalJSON(); err != nil || !json.Valid(doc) {
			t.Fatalf("the JSON of %x is %s, %v", b, doc, err)
		}
	})
}

func BenchmarkEncodeValue(b *testing.B) {
	v := Record(map[string]Value{"name": String("fae"), "port": Int(8080), "tags": Strings("a", "b", "c"), "load": Float(0.5)})
	for b.Loop() {
		encoded(b, v)
	}
}
