package client

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/capabilities"
	"parley/gateway/mux"
	"parley/internal/pack"
)

// sameRequest checks that a body is a map, and the request of its JSON.
func sameRequest(t *testing.T, c *Client, got body, in any, isMap bool) {
	t.Helper()
	want, err := c.request(in)
	if err != nil {
		t.Fatal(err)
	}
	if (got.plain != nil) != isMap {
		t.Errorf("%s is sent as a map: %v, want %v", want.text, got.plain != nil, isMap)
	}
	text, err := got.json()
	if err != nil {
		t.Fatal(err)
	}
	var gotValue, wantValue any
	if err := json.Unmarshal(text, &gotValue); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := json.Unmarshal(want.text, &wantValue); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(gotValue, wantValue) {
		t.Errorf("%s\nwant %s", text, want.text)
	}
}

// TestAFormIsSentAsItsJSON writes forms as maps, and as JSON where no frame may hold them.
func TestAFormIsSentAsItsJSON(t *testing.T) {
	full := Form{
		To: "HOST", Description: "x", Title: "t", Name: "n", Key: "k", Deadline: time.Date(2026, 1, 31, 12, 0, 0, 5e8, time.UTC), NoForward: true,
		Fields: []Field{{
			Name: "a", Label: "A", Type: "select", Required: true, Default: "x", Placeholder: "p", Help: "h", Options: []Option{{Value: "x", Label: "X", Description: "d"}, {Value: "y"}},
			Example: []any{1, nil}, Pattern: json.RawMessage(` { "type" : "string" }`),
		}},
	}
	bad := Form{To: "HOST", Description: "\xff", Fields: []Field{}}
	for _, as := range []string{"", "fae"} {
		c := &Client{options: Options{As: as}}
		for _, f := range []Form{full, {Fields: []Field{{Name: "a"}}}, {To: "HOST", Description: strings.Repeat("é", 70_000), Fields: []Field{}}, bad} {
			b, err := c.formBody(f)
			if err != nil {
				t.Fatal(err)
			}
			sameRequest(t, c, b, f, f.Description != bad.Description)
		}
	}
	c := &Client{}
	for _, f := range []Form{{Fields: []Field{{Default: math.NaN()}}}, {Fields: []Field{{Pattern: json.RawMessage("{")}}}, {Deadline: time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC)}} {
		if _, err := c.formBody(f); err == nil {
			t.Errorf("%+v is sent", f)
		}
	}
}

// TestAnAnswerIsSentAsItsJSON writes answers as maps, and as JSON where no frame may hold them.
func TestAnAnswerIsSentAsItsJSON(t *testing.T) {
	deep := capabilities.List()
	for range 1100 { // more than a frame may nest
		deep = capabilities.List(deep)
	}
	for _, as := range []string{"", "fae"} {
		c := &Client{options: Options{As: as}}
		for _, values := range []map[string]capabilities.Value{
			{}, {"a": capabilities.String("yes"), "b": capabilities.List(capabilities.Int(1), capabilities.Float(2), capabilities.Null())}, {"deep": deep},
		} {
			for _, form := range []ID{"7", ID("x@y")} {
				b, err := c.answerBody(form, values)
				if err != nil {
					t.Fatal(err)
				}
				_, isDeep := values["deep"]
				sameRequest(t, c, b, map[string]any{map[bool]string{true: "number", false: "id"}[form == "7"]: form, "values": values}, !isDeep)
			}
		}
	}
}

// TestAnOutcomeIsReadAsItsJSON reads outcomes from maps and from JSON.
func TestAnOutcomeIsReadAsItsJSON(t *testing.T) {
	for _, text := range []string{
		`{"status":"open"}`,
		`{"status":"answered","form":"f","promise":"p","by":"b","byName":"HOST","at":"2026-01-31T12:00:00.000Z","note":"n","values":{"a":[1,2.5,"é\"",null,{"$cap":"x"}]},"order":["a","b"],"digest":"d","allowed":true,"later":{"x":1}}`,
	} {
		var want Outcome
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		plain, err := mux.FromJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readOutcome("await", answer{plain: plain})
		if err != nil {
			t.Fatal(err)
		}
		var wantRaw, gotRaw any
		if json.Unmarshal(want.Raw, &wantRaw) != nil || json.Unmarshal(got.Raw, &gotRaw) != nil || !reflect.DeepEqual(gotRaw, wantRaw) {
			t.Errorf("%s, want %s", got.Raw, want.Raw)
		}
		got.Raw, want.Raw = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		asked := answer{plain: append(pack.AppendString(pack.AppendUint(pack.AppendString(pack.AppendMap(nil, 4), "number"), 7), "outcome"), plain...)}
		asked.plain = pack.AppendBool(pack.AppendString(pack.AppendString(pack.AppendString(asked.plain, "form"), "f"), "unreachable"), true)
		a, err := readAccepted(asked)
		if err != nil || a.Number != 7 || a.Form != "f" || !a.Unreachable || a.Outcome == nil || a.Outcome.Status != want.Status {
			t.Errorf("%+v, %v", a, err)
		}
	}
	for _, bad := range [][]byte{{}, {0xc1}, pack.AppendUint(pack.AppendString(pack.AppendMap(nil, 1), "status"), 7), pack.AppendString(pack.AppendString(pack.AppendMap(nil, 1), "at"), "now")} {
		if o, err := readOutcome("await", answer{plain: bad}); err == nil {
			t.Errorf("%x is read as %+v", bad, o)
		}
	}
}

// FuzzOutcome reads any map as an outcome and as an accepted form.
func FuzzOutcome(f *testing.F) {
	plain, err := mux.FromJSON([]byte(`{"status":"answered","at":"2026-01-31T12:00:00.000Z","values":{"a":[1]},"order":["a"]}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Fuzz(func(t *testing.T, plain []byte) {
		if plain == nil {
			return
		}
		if o, err := readOutcome("await", answer{plain: plain}); err == nil && !json.Valid(o.Raw) {
			t.Errorf("%x: %s", plain, o.Raw)
		}
		_, _ = readAccepted(answer{plain: plain}) // it must not crash
	})
}
