package capabilities

import (
	"bytes"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// FuzzRef checks that a decoded reference equals the one decoded from its encoding.
func FuzzRef(f *testing.F) {
	for _, r := range []Ref{
		{Target: testID(1), Kind: KindAgent},
		{Target: testID(1), Kind: KindAgent, Grant: testID(2), Facet: Facet{Mode: AskOnly, Until: 5, Uses: 3}},
		{Target: testID(1), Kind: KindForm, Grant: testID(2), Root: testID(3)},
	} {
		var buf bytes.Buffer
		if err := r.EncodeMsgpack(msgpack.NewEncoder(&buf)); err != nil {
			f.Fatal(err)
		}
		f.Add(buf.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again Ref
		if err := r.DecodeMsgpack(msgpack.NewDecoder(bytes.NewReader(b))); err != nil {
			return
		}
		var buf bytes.Buffer
		if err := r.EncodeMsgpack(msgpack.NewEncoder(&buf)); err != nil {
			t.Fatal(err)
		}
		if err := again.DecodeMsgpack(msgpack.NewDecoder(&buf)); err != nil || again != r {
			t.Fatalf("%+v is decoded as %+v, %v", r, again, err)
		}
	})
}
