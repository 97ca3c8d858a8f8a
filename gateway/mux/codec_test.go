package mux

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/internal/pack"
)

// sameAsJSON checks that a body is read, or refused, as its JSON is, into the request and the response of each operation. It
// returns whether it was read without JSON as one of the requests of a form, an answer and a wait.
func sameAsJSON(t interface{ Errorf(string, ...any) }, body []byte, operations ...api.Operation) (plain bool) {
	text, refused := textOf(body)
	for _, o := range operations {
		want, wantErr := reflect.New(o.Request).Interface(), refused
		if wantErr == nil {
			wantErr = api.Decode(text, want)
		}
		got := reflect.New(o.Request).Interface()
		gotErr := Request{plain: body}.Read(got)
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || wantErr == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %x\n%s\nis read as %+v, %v\nwant %+v, %v", o.Name, body, text, got, gotErr, want, wantErr)
		}
		if wantErr != nil && parley.CodeOf(wantErr) == parley.Internal {
			t.Errorf("%s: %v", text, wantErr)
		}
		switch o.Name {
		case "form", "respond_form", "await":
			plain = plain || readPlain(NewReader(body), reflect.New(o.Request).Interface())
		}
		want, got = reflect.New(o.Response).Interface(), reflect.New(o.Response).Interface()
		if refused == nil {
			wantErr = json.Unmarshal(text, want)
			gotErr = Read(body, got)
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || wantErr == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %x\n%s\nis read as %+v, %v\nwant %+v, %v", o.Name, body, text, got, gotErr, want, wantErr)
			}
		}
	}
	return plain
}

const fullForm = `{"as":"fae","recipient":"HOST","description":"é\"","title":"t","name":"n","key":"k","deadline":"2026-01-31T12:00:00Z","noForward":true,
	"fields":[{"name":"a","label":"A","type":"select","required":true,"default":"x","placeholder":"p","help":"h",
	"options":[{"value":"x","label":"X","description":"d"},{"value":"y"}],"example":[1,-2,1.5,null,true,{"b":"c"}],"pattern":{"type":"string","enum":["x",1.0]}}]}`

// TestARequestIsReadAsItsJSONIs reads requests in the plain spelling and in others.
func TestARequestIsReadAsItsJSONIs(t *testing.T) {
	id := "01ARZ3NDEKTSV4RRFFQ69G5FAV@" + strings.Repeat("A", 56)
	for text, plain := range map[string]bool{
		fullForm: true, `{}`: true,
		`{"recipient":"HOST","description":"x","fields":[{"name":"a"}]}`:                                     true,
		`{"recipient":"HOST","description":"x","fields":[]}`:                                                 true,
		`{"fields":[{"name":"a","type":"odd","default":9223372036854775807}]}`:                               true,
		`{"id":"` + id + `","values":{"a":"yes","b":[],"c":{},"d":-9223372036854775808,"e":1e300,"f":-0.0}}`: true,
		`{"number":7,"texts":[{"name":"a","text":"b"}],"digest":"d"}`:                                        true,
		`{"number":"7","values":{}}`:                                                                         true,
		`{"id":"x","waitMs":0}`:                                                                              true,
		`{"Recipient":"HOST"}`:                                                                               false,
		`{"recipient":7}`:                                                                                    false,
		`{"unknown":1,"recipient":"x"}`:                                                                      false,
		`{"recipient":null,"fields":null,"values":null,"waitMs":null,"id":null}`:                             false,
		`{"fields":[{"name":"a","colour":"red"}]}`:                                                           false,
		`{"fields":{"a":{"type":"number"}}}`:                                                                 false,
		`{"fields":[null]}`:                                                                                  false,
		`{"deadline":"yesterday"}`:                                                                           false,
		`{"number":-1}`:                                                                                      false,
		`{"number":1.5}`:                                                                                     false,
		`{"waitMs":-1}`:                                                                                      true,
		`{"waitMs":18446744073709551615}`:                                                                    false,
		`{"values":{"a":18446744073709551615}}`:                                                              false,
		`{"values":{"a":{"$cap":"` + id + `","kind":"agent"}}}`:                                              false,
		`{"values":{"a":{"$bytes":"AAEC"},"b":{"$sealed":true}}}`:                                            false,
		`{"values":{"a":{"$bytes":"AAEC"}}}`:                                                                 false,
		`{"values":7}`:                                                                                       false,
		`[]`:                                                                                                 false,
		`7`:                                                                                                  false,
	} {
		body, err := FromJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := sameAsJSON(t, body, api.Operations()...); got != plain {
			t.Errorf("%s is read without JSON: %v, want %v", text, got, plain)
		}
	}
	pair := func(b []byte, name string) []byte { return pack.AppendString(b, name) }
	for name, body := range map[string][]byte{
		"a member twice":          pack.AppendString(pair(pack.AppendString(pair(pack.AppendMap(nil, 2), "recipient"), "a"), "recipient"), "b"),
		"a value twice":           pack.AppendUint(pair(pack.AppendUint(pair(pack.AppendMap(pair(pack.AppendMap(nil, 1), "values"), 2), "a"), 1), "a"), 2),
		"values as JSON":          AppendJSON(pair(pack.AppendMap(nil, 1), "values"), ` {"a":1}`),
		"a value as JSON":         AppendJSON(pair(pack.AppendMap(pair(pack.AppendMap(nil, 1), "values"), 1), "a"), ` {"$bytes":"AAEC"} `),
		"no JSON":                 AppendJSON(pair(pack.AppendMap(pair(pack.AppendMap(nil, 1), "values"), 1), "a"), `{"a":}`),
		"two texts of JSON":       AppendJSON(pair(pack.AppendMap(pair(pack.AppendMap(nil, 1), "values"), 1), "a"), `1 2`),
		"deep JSON":               AppendJSON(pair(pack.AppendMap(pair(pack.AppendMap(nil, 1), "values"), 1), "a"), strings.Repeat("[", 40)+strings.Repeat("]", 40)),
		"deeper JSON":             AppendJSON(pair(pack.AppendMap(pair(pack.AppendMap(nil, 1), "values"), 1), "a"), strings.Repeat("[", 200)+strings.Repeat("]", 200)),
		"a list of many":          append(pack.AppendArray(pair(pack.AppendMap(pair(pack.AppendMap(nil, 1), "values"), 1), "a"), 60_000), make([]byte, 60_000)...),
		"a pattern of JSON":       AppendJSON(pair(pack.AppendMap(pack.AppendArray(pair(pack.AppendMap(nil, 1), "fields"), 1), 1), "pattern"), ` { "type" : "string" } `),
		"a number in 32 bits":     append(pair(pack.AppendMap(pair(pack.AppendMap(nil, 1), "values"), 1), "a"), 0xca, 0x3f, 0xc0, 0, 0),
		"what follows":            pack.AppendNil(pack.AppendMap(nil, 0)),
		"nothing":                 {},
		"a text that is no UTF-8": append(pair(pack.AppendMap(nil, 1), "recipient"), 0xa1, 0xff),
	} {
		of := api.Operations()
		if name == "a list of many" { // of which each takes a second: of the operations that have such a member, and of some that have none
			of = slices.DeleteFunc(of, func(o api.Operation) bool { return o.Name != string(api.RespondForm) && o.Name != string(api.Send) })
		}
		t.Run(name, func(t *testing.T) { sameAsJSON(t, body, of...) })
	}
}

// FuzzRequest reads any body without JSON and with it, as the request and the response of an operation.
func FuzzRequest(f *testing.F) {
	all, hot := api.Operations(), map[string]api.Operation{}
	for _, o := range all {
		hot[o.Name] = o
	}
	for _, text := range []string{fullForm, `{"id":"x","values":{"a":[1,{"b":"c"}],"d":1.5}}`, `{"number":7,"texts":[{"name":"a","text":"b"}],"waitMs":5}`} {
		body, err := FromJSON([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	for _, o := range all {
		body, err := Append(nil, reflect.Zero(o.Response).Interface())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if r := NewReader(body); len(body) <= plainSize && r.Raw() != nil { // as in a frame
			sameAsJSON(t, body, all[len(body)%len(all)], hot["form"], hot["respond_form"], hot["await"])
		}
	})
}

// FuzzFromJSON reads any text as a body, and gets the text again.
func FuzzFromJSON(f *testing.F) {
	for _, text := range []string{fullForm, ` [ 1 , -0 , 1.50 , 1e2, 9007199254740993, 123456789012345678901234567890, "\ud800", "\\"]`, `{"a":{"b":1},"a":[]}`, `"x`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		body, err := FromJSON(text)
		if (err == nil) != json.Valid(text) {
			t.Fatalf("%s: %v", text, err)
		}
		if err != nil || capabilities.Nesting(text) > MaxDepth {
			return
		}
		again, err := ToJSON(body)
		if err != nil {
			t.Fatalf("%s: %x: %v", text, body, err)
		}
		if got, want := decoded(t, again), decoded(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %s", text, again)
		}
	})
}

// passables draws values as nodes have them.
func passables(depth int) *rapid.Generator[capabilities.Value] {
	return rapid.Custom(func(t *rapid.T) capabilities.Value {
		kinds := 8
		if depth == 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return capabilities.Null()
		case 1:
			return capabilities.Bool(rapid.Bool().Draw(t, "bool"))
		case 2:
			return capabilities.Int(rapid.Int64().Draw(t, "int"))
		case 3:
			return capabilities.Float(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "float"))
		case 4:
			return capabilities.String(rapid.String().Draw(t, "string"))
		case 5:
			return rapid.SampledFrom([]capabilities.Value{
				capabilities.Bytes([]byte{0, 255}), capabilities.Sealed([]byte("x")), capabilities.String("<a & \xff>"),
				capabilities.Reference(capabilities.Ref{Target: capabilities.ID{ULID: [16]byte{1}}, Kind: capabilities.KindAgent}),
			}).Draw(t, "special")
		case 6:
			return capabilities.List(rapid.SliceOfN(passables(depth-1), 0, 20).Draw(t, "list")...)
		}
		return capabilities.Record(rapid.MapOfN(rapid.String(), passables(depth-1), 0, 20).Draw(t, "record"))
	})
}

// TestAResponseIsTheMapOfItsJSON writes responses as maps and as JSON.
func TestAResponseIsTheMapOfItsJSON(t *testing.T) {
	ids := rapid.SampledFrom([]capabilities.ID{{}, {ULID: [16]byte{1, 2, 3}, Node: capabilities.NodeOf([32]byte{7})}})
	texts := rapid.SampledFrom([]string{"", "x", "é\"\n<>", "\xff\xfe"})
	outcomes := rapid.Custom(func(t *rapid.T) view.Outcome {
		return view.Outcome{
			Status: view.StatusAnswered, Form: ids.Draw(t, "form"), Promise: ids.Draw(t, "promise"), By: ids.Draw(t, "by"), ByName: texts.Draw(t, "byName"),
			At: capabilities.Time(rapid.Int64().Draw(t, "at")), Note: texts.Draw(t, "note"), Values: passables(2).Draw(t, "values"),
			Order: rapid.SliceOfN(texts, 0, 20).Draw(t, "order"), Digest: texts.Draw(t, "digest"), Allowed: rapid.Bool().Draw(t, "allowed"),
			EditedInput: texts.Draw(t, "editedInput"), EditedDigest: texts.Draw(t, "editedDigest"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		o := outcomes.Draw(t, "outcome")
		a := view.Asked{Form: ids.Draw(t, "form"), Promise: ids.Draw(t, "promise"), Number: rapid.Uint64().Draw(t, "number"), Unreachable: rapid.Bool().Draw(t, "unreachable")}
		if rapid.Bool().Draw(t, "settled") {
			a.Outcome = &o
		}
		for _, resp := range []any{o, a, view.Token{Note: o.Note}} {
			body, err := Append([]byte("before"), resp)
			if err != nil {
				t.Fatal(err)
			}
			r := NewReader(body[len("before"):])
			text, err := ToJSON(r.Raw())
			if err != nil || len(r.rest) > 0 {
				t.Fatalf("%x: %v", body, err)
			}
			want, err := Marshal(resp)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := decoded(t, text), decoded(t, want); !reflect.DeepEqual(got, want) {
				t.Fatalf("%v is written as %v", want, got)
			}
		}
	})
}

func decoded(t interface{ Fatalf(string, ...any) }, text []byte) (v any) {
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}
