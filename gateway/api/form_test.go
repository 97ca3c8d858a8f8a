package api

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"parley/events"
)

// unparsed returns a parser of fields that fails the test when called.
func unparsed(t *testing.T) func([]byte) ([]events.Field, error) {
	return func(text []byte) ([]events.Field, error) {
		t.Helper()
		t.Errorf("%s is parsed again", text)
		return nil, nil
	}
}

func TestFieldsParsePlainSyntax(t *testing.T) {
	for text, want := range map[string][]events.Field{
		`[]`:                {},
		`[{"name":"port"}]`: {{Name: "port"}},
		`[{"name":"port","required":true},{"name":"region","type":"select","options":[{"value":"eu"}]}]`: {
			{Name: "port", Required: true}, {Name: "region", Type: events.Select, Options: []events.Option{{Value: "eu"}}},
		},
	} {
		var f Fields
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := f.List(unparsed(t))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %v, want %+v", text, got, err, want)
		}
		if f.IsZero() {
			t.Errorf("%s is taken for nothing", text)
		}
	}
}

func TestFieldsKeepAnyOtherText(t *testing.T) {
	for _, text := range []string{
		`null`, `{}`, `"port"`, `7`, `[7]`, `[null,7]`, `{"port":{"type":"number"}}`, `["port:Port"]`, `[{"name":"port","colour":"red"}]`,
		`[{"name":7}]`, `[{"name":"port","options":"eu"}]`, strings.Repeat("[", 500) + strings.Repeat("]", 500),
	} {
		var f Fields
		if err := f.UnmarshalJSON([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		refused, parsed := errors.New("refused"), ""
		if _, err := f.List(func(b []byte) ([]events.Field, error) { parsed = string(b); return nil, refused }); err != refused || parsed != text {
			t.Errorf("%s: parse got %q, and List returned %v", text, parsed, err)
		}
		if out, err := f.MarshalJSON(); err != nil || string(out) != text {
			t.Errorf("%s is written as %s (%v)", text, out, err)
		}
	}
}

func TestFieldsCopyTheirInput(t *testing.T) {
	text := []byte(`["port:Port"]`)
	var f Fields
	if err := f.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	clear(text)
	if out, err := f.MarshalJSON(); err != nil || string(out) != `["port:Port"]` {
		t.Errorf("%q %v", out, err)
	}
}

func TestFieldsReplaceTheirFormerValue(t *testing.T) {
	f := FieldsOf(events.Field{Name: "former"})
	if err := f.UnmarshalJSON([]byte(`[{"label":"x"}]`)); err != nil {
		t.Fatal(err)
	}
	if list, err := f.List(unparsed(t)); err != nil || len(list) != 1 || list[0].Name != "" || list[0].Label != "x" {
		t.Errorf("%+v %v", list, err)
	}
	if err := f.UnmarshalJSON([]byte(`7`)); err != nil || f.list != nil {
		t.Errorf("%+v %v", f, err)
	}
}

func TestFieldsOfARequest(t *testing.T) {
	var r FormRequest
	if err := json.Unmarshal([]byte(`{"recipient":"HOST"}`), &r); err != nil || !r.Fields.IsZero() {
		t.Errorf("%+v %v", r, err)
	}
	if (Fields{}).IsZero() != true || FieldsOf().IsZero() != true || FieldsOf([]events.Field{}...).IsZero() {
		t.Error("an empty list is not nothing")
	}
	r.Fields = FieldsOf(events.Field{Name: "port"})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back FormRequest
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%s became %+v (%v)", text, back, err)
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
