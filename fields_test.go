package parley

import (
	"encoding/json"
	"reflect"
	"testing"

	"parley/events"
)

func TestFieldsAreReadInTheirPlace(t *testing.T) {
	for text, want := range map[string]Fields{
		`{"recipient":"HOST"}`:                     nil,
		`{"fields":null}`:                          nil,
		`{"fields":[]}`:                            {},
		`{"fields":[{"label":"x"}]}`:               {{Label: "x"}},
		`{"fields":[{"name":"a","default":null}]}`: {{Name: "a"}},
		`{"fields":[{"name":"port","required":true},{"name":"region","type":"select","options":[{"value":"eu"}]}]}`: {
			{Name: "port", Required: true}, {Name: "region", Type: events.Select, Options: []events.Option{{Value: "eu"}}},
		},
	} {
		f := Form{Fields: Fields{{Name: "former", Help: "h"}}}
		if want == nil {
			f.Fields = nil
		}
		if err := json.Unmarshal([]byte(text), &f); err != nil || !reflect.DeepEqual(f.Fields, want) {
			t.Errorf("%s: %+v %v", text, f.Fields, err)
		}
	}
}

// A list that is wrong is refused by what is wrong in it, also within a request.
func TestWrongFieldsAreRefusedInTheirPlace(t *testing.T) {
	for _, text := range []string{
		`{}`, `"port"`, `7`, `[7]`, `[null,7]`, `{"port":{"type":"number"}}`, `["port:Port"]`, `[{"name":"port","colour":"red"}]`,
		`[{"name":7}]`, `[{"name":"port","options":"eu"}]`,
	} {
		f := Form{Fields: Fields{{Name: "former"}}}
		if err := json.Unmarshal([]byte(`{"fields":`+text+`}`), &f); CodeOf(err) != InvalidForm || f.Fields != nil {
			t.Errorf("%s: %+v %v", text, f.Fields, err)
		}
	}
}

func FuzzFields(f *testing.F) {
	for _, text := range []string{`[]`, `null`, `[{"name":"a","default":{"$sealed":true}}]`, `[{"name":"a","x":1}]`, `[{"name":"a"},{"name":"a"}]`, `{"a":`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second Fields
		if json.Unmarshal(text, &first) != nil {
			return
		}
		out, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("%q cannot be written: %v", text, err)
		}
		if err := json.Unmarshal(out, &second); err != nil {
			t.Fatalf("%q was written as %q: %v", text, out, err)
		}
		again, err := json.Marshal(second)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%q was written as %q, and then as %q (%v)", text, out, again, err)
		}
	})
}
