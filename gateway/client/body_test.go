package client

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/mux"
	"parley/internal/pack"
)

// sameRequest checks that a request is sent as its JSON, with the agent's name.
func sameRequest(t *testing.T, as string, in any) {
	t.Helper()
	c := &Client{options: Options{As: as}}
	body, err := c.request("", in)
	if err != nil {
		t.Fatal(err)
	}
	text, err := mux.ToJSON(body)
	if err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := json.Unmarshal(written, &want); err != nil {
		t.Fatal(err)
	}
	if as != "" && want["as"] == nil {
		want["as"] = as
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwant %s", text, written)
	}
}

// TestARequestIsSentAsItsJSON sends forms, answers and others, and refuses what no node takes.
func TestARequestIsSentAsItsJSON(t *testing.T) {
	full := Form{
		To: "HOST", Description: "x", Title: "t", Name: "n", Key: "k", Deadline: capabilities.At(time.Date(2026, 1, 31, 12, 0, 0, 5e8, time.UTC)), NoForward: true,
		Fields: []Field{{
			Name: "a", Label: "A", Type: "select", Required: true, Default: capabilities.String("x"), Placeholder: "p", Help: "h", Options: []Option{{Value: "x", Label: "X", Description: "d"}, {Value: "y"}},
			Example: capabilities.List(capabilities.Int(1), capabilities.Null()), Pattern: json.RawMessage(` { "type" : "string" }`),
		}},
	}
	for _, as := range []string{"", "fae"} {
		for _, in := range []any{
			full, &full, Form{Fields: []Field{{Name: "a"}}}, Form{To: "HOST", Description: strings.Repeat("é", 70_000), Fields: []Field{}}, Form{Description: "\xff"},
			api.RespondFormRequest{FormRef: refTo("7")}, map[string]any{"a": 1, "as": "other"}, json.RawMessage(`{"b":[1.50,9007199254740993],"a":null}`),
			api.RespondFormRequest{FormRef: refTo("x@y"), Answer: parley.Answer{Values: map[string]capabilities.Value{"a": capabilities.String("yes"), "b": capabilities.List(capabilities.Int(1), capabilities.Float(2), capabilities.Null())}}},
			api.NameRequest{Acting: api.Acting{As: "other"}, Name: "x"},
		} {
			sameRequest(t, as, in)
		}
	}
	c := &Client{}
	deep := capabilities.List()
	for range 1100 { // more than a frame may nest
		deep = capabilities.List(deep)
	}
	for _, in := range []any{
		Form{Fields: []Field{{Default: capabilities.Float(math.NaN())}}}, Form{Fields: []Field{{Pattern: json.RawMessage("{")}}},
		api.RespondFormRequest{Answer: parley.Answer{Values: map[string]capabilities.Value{"deep": deep}}}, strings.Repeat("x", MaxBody+1),
	} {
		if _, err := c.request("", in); err == nil {
			t.Errorf("%.200v is sent", in)
		}
	}
}

// readOutcome and readAccepted read responses.
func readOutcome(a answer) (o Outcome, err error) {
	err = a.decode("await", &o)
	return o, err
}

func readAccepted(a answer) (got view.Asked, err error) {
	err = a.decode("form", &got)
	return got, err
}

const someID = "01M8AJRCHW2QFN1GJCFDYF0GSP@NC5AQTTE4HFBX75HO3GEA3K35OYU4675BOCJIAKHQ4JOHBDVFJDMWER2"

// TestAnOutcomeIsReadAsItsJSON reads outcomes from maps and from JSON.
func TestAnOutcomeIsReadAsItsJSON(t *testing.T) {
	for _, text := range []string{
		`{"status":"open"}`,
		`{"status":"answered","form":"` + someID + `","promise":"` + someID + `","by":"` + someID + `","byName":"HOST","at":"2026-01-31T12:00:00.000Z","note":"n","values":{"a":[1,2.5,"é\"",null,{"x":"y"}]},"order":["a","b"],"digest":"d","allowed":true,"later":{"x":1}}`,
	} {
		var want Outcome
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		plain, err := mux.FromJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readOutcome(answer{plain: plain})
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
		asked.plain = pack.AppendBool(pack.AppendString(pack.AppendString(pack.AppendString(asked.plain, "form"), someID), "unreachable"), true)
		a, err := readAccepted(asked)
		if err != nil || a.Number != 7 || a.Form.String() != someID || !a.Unreachable || a.Outcome == nil || a.Outcome.Status != want.Status {
			t.Errorf("%+v, %v", a, err)
		}
	}
	for _, bad := range [][]byte{{}, {0xc1}, pack.AppendUint(pack.AppendString(pack.AppendMap(nil, 1), "status"), 7), pack.AppendString(pack.AppendString(pack.AppendMap(nil, 1), "at"), "now")} {
		if o, err := readOutcome(answer{plain: bad}); err == nil {
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
		if o, err := readOutcome(answer{plain: plain}); err == nil && !json.Valid(o.Raw) {
			t.Errorf("%x: %s", plain, o.Raw)
		}
		_, _ = readAccepted(answer{plain: plain}) // it must not crash
	})
}
