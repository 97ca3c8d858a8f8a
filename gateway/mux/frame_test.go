package mux

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"

	"parley"
	"parley/internal/pack"
)

// frames draws frames of one side.
func frames(l layouts) *rapid.Generator[Frame] {
	return rapid.Custom(func(t *rapid.T) Frame {
		f := Frame{Kind: Kind(rapid.IntRange(0, len(l)-1).Draw(t, "kind")), ID: rapid.Uint64().Draw(t, "id")}
		for _, part := range l[f.Kind] {
			switch part {
			case 'a':
				f.Agent = rapid.Uint64().Draw(t, "agent")
			case 'o':
				f.Operation = rapid.StringN(0, -1, 300).Draw(t, "operation")
			case 'c':
				f.Credit = rapid.Uint64().Draw(t, "credit")
			case 'b':
				f.Body = bodies().Draw(t, "body")
			}
		}
		return f
	})
}

func bodies() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		if rapid.Bool().Draw(t, "json") {
			return AppendJSON(nil, `{"text":"`+strings.Repeat("x", rapid.SampledFrom([]int{0, 5, 300, 70_000}).Draw(t, "size"))+`"}`)
		}
		b := pack.AppendMap(nil, 2)
		b = pack.AppendArray(pack.AppendString(b, "list"), 3)
		b = pack.AppendInt(pack.AppendFloat(pack.AppendNil(b), rapid.Float64Range(-1e300, 1e300).Draw(t, "float")), rapid.Int64().Draw(t, "int"))
		return pack.AppendBool(pack.AppendString(b, "flag"), rapid.Bool().Draw(t, "flag"))
	})
}

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	for _, side := range []struct {
		layouts
		read   func([]byte, func(Frame) error) error
		append func([]byte, Frame) []byte
	}{{ofClient, ReadClient, AppendClient}, {ofNode, ReadNode, AppendNode}} {
		rapid.Check(t, func(t *rapid.T) {
			want := rapid.SliceOfN(frames(side.layouts), 1, 5).Draw(t, "frames")
			var message []byte
			for _, f := range want {
				message = side.append(message, f)
			}
			var got []Frame
			err := side.read(message, func(f Frame) error {
				got = append(got, f)
				return nil
			})
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v, %v, want %+v", got, err, want)
			}
			cut := rapid.IntRange(1, len(message)-1).Draw(t, "cut")
			n := 0
			err = side.read(message[:cut], func(Frame) error { n++; return nil })
			if err == nil && n >= len(want) || err != nil && parley.CodeOf(err) != parley.InvalidArgument {
				t.Fatalf("cut at %d of %d: %d frames, %v", cut, len(message), n, err)
			}
		})
	}
}

func TestAReadEndsWithTheErrorOfItsFunction(t *testing.T) {
	message := AppendClient(AppendClient(nil, Frame{Kind: Cancel, ID: 1}), Frame{Kind: Cancel, ID: 2})
	enough := errors.New("enough")
	n := 0
	if err := ReadClient(message, func(Frame) error { n++; return enough }); !errors.Is(err, enough) || n != 1 {
		t.Errorf("%d frames, %v", n, err)
	}
}

// TestABodyIsTheJSONOfItsMap writes values with another encoder.
func TestABodyIsTheJSONOfItsMap(t *testing.T) {
	for _, want := range []string{
		`{}`, `[]`, `null`, `true`, `-1`, `127`, `128`, `70000`, `-70000`, `18446744073709551615`, `-9223372036854775808`, `1.5`, `1e+300`,
		`{"a":[1,2,{"b":"\"\\\n\u2028é"}],"c":null,"long":"` + strings.Repeat("é", 40_000) + `"}`,
		`{"a":` + strings.Repeat("[", MaxDepth-1) + strings.Repeat("]", MaxDepth-1) + `}`,
	} {
		var v any
		dec := json.NewDecoder(strings.NewReader(want))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		enc := msgpack.NewEncoder(&buf)
		enc.UseCompactInts(true)
		enc.SetSortMapKeys(true)
		if err := enc.Encode(numbers(v)); err != nil {
			t.Fatal(err)
		}
		for _, body := range [][]byte{buf.Bytes(), AppendJSON(nil, want)} {
			got, err := ToJSON(body)
			var again any
			dec := json.NewDecoder(bytes.NewReader(got))
			dec.UseNumber()
			if err == nil {
				err = dec.Decode(&again)
			}
			if err != nil || !reflect.DeepEqual(again, v) {
				t.Errorf("%.200s, %v, want %.200s", got, err, want)
			}
		}
	}
	for _, bad := range [][]byte{
		{}, {0xc1}, {0xca, 0x7f, 0xc0, 0, 0}, {0x81, 1, 1}, {0xdd, 0xff, 0xff, 0xff, 0xff}, {0xdf, 0xff, 0xff, 0xff, 0xff},
		{0xdb, 0xff, 0xff, 0xff, 0xff, 'a'}, {0xa1, 0xff}, {0xd4, 2, 'x'}, {0xc4, 1, 1}, pack.AppendArray(AppendJSON(pack.AppendArray(nil, 1), "{"), 0),
	} {
		if text, err := ToJSON(bad); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%x: %s, %v", bad, text, err)
		}
	}
	for _, deep := range []int{MaxDepth + 1, 2000} {
		if text, err := ToJSON(append(bytes.Repeat([]byte{0x91}, deep), 1)); parley.CodeOf(err) != parley.TooLarge {
			t.Errorf("%d lists in each other: %s, %v", deep, text, err)
		}
	}
	if body := NewReader(append(bytes.Repeat([]byte{0x91}, frameDepth), 1)); body.Raw() != nil || body.Err() == nil {
		t.Error("a value of a frame nests too deep")
	}
	if text, err := ToJSON(pack.AppendFloat(nil, 3)); err != nil || string(text) != "3.0" {
		t.Errorf("a number with a fraction: %s, %v", text, err)
	}
}

// numbers replaces the numbers of JSON by those of Go.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		var u uint64
		var i int64
		var f float64
		for _, n := range []any{&u, &i, &f} {
			if json.Unmarshal([]byte(v), n) == nil {
				return reflect.ValueOf(n).Elem().Interface()
			}
		}
	case []any:
		l := make([]any, len(v))
		for i := range v {
			l[i] = numbers(v[i])
		}
		return l
	case map[string]any:
		m := map[string]any{}
		for k := range v {
			m[k] = numbers(v[k])
		}
		return m
	}
	return v
}

func FuzzReadClient(f *testing.F) {
	f.Add(AppendClient(nil, Frame{Kind: Call, ID: 1, Operation: "form", Body: AppendJSON(nil, `{}`)}))
	f.Add(AppendClient(nil, Frame{Kind: Follow, ID: 1 << 40, Body: pack.AppendMap(nil, 0), Credit: 300}))
	f.Fuzz(func(t *testing.T, message []byte) {
		err := ReadClient(message, func(f Frame) error {
			if f.Body != nil {
				text, err := ToJSON(f.Body)
				if err == nil && !NewReader(f.Body).IsJSON() && !json.Valid(text) {
					t.Errorf("%x is not JSON: %s", f.Body, text)
				}
			}
			again := AppendClient(nil, f)
			return ReadClient(again, func(g Frame) error {
				if !reflect.DeepEqual(f, g) {
					t.Errorf("%+v is read again as %+v", f, g)
				}
				return nil
			})
		})
		if err != nil && parley.CodeOf(err) != parley.InvalidArgument {
			t.Error(err)
		}
	})
}
