package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley"
)

func TestCheckBody(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat(`]}`, n/2) }
	for text, want := range map[string]parley.Code{
		"":                                   "",
		`{"a":"é"}`:                          "",
		nested(MaxDepth):                     "",
		nested(MaxDepth + 2):                 parley.TooLarge,
		strings.Repeat("[", 100_000):         parley.TooLarge,
		`"` + strings.Repeat("[", 100) + `"`: "", // text nests nothing
		"\xff":                               parley.InvalidArgument,
		"{\"a\":\"\xc3\"}":                   parley.InvalidArgument,
		"\xed\xa0\x80":                       parley.InvalidArgument, // half of a surrogate pair
	} {
		if got := parley.CodeOf(CheckBody([]byte(text))); got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	var r ReplyRequest
	if err := Decode(nil, &r); err != nil || !reflect.DeepEqual(r, ReplyRequest{}) {
		t.Errorf("no body: %+v %v", r, err)
	}
	if err := Decode([]byte(`{"as":"fae","number":3,"text":"hi","unknown":{}}`), &r); err != nil || r.As != "fae" || r.Number != "3" || r.Text != "hi" {
		t.Errorf("%+v %v", r, err)
	}
	for _, text := range []string{`{`, ` `, `{"text":1}`, `{"text":["a"]}`, `{"number":true}`, `[]`, `{"text":"a"}{}`, "\x00", `{"as":"a",}`} {
		err := Decode([]byte(text), new(ReplyRequest))
		if parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%q: %v, want %s", text, err, parley.InvalidArgument)
		}
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"number":1,"values":{"a":{"$bytes":"AA=="}}}`))
	f.Add([]byte(`{"values":{"a":{"$cap":"x"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r RespondFormRequest
		err := Decode(text, &r)
		if code := parley.CodeOf(err); err != nil && code != parley.InvalidArgument && code != parley.TooLarge {
			t.Fatalf("%q is refused with %s: %v", text, code, err)
		}
		if err == nil {
			if _, err := json.Marshal(r); err != nil {
				t.Fatalf("%q cannot be written again: %v", text, err)
			}
		}
	})
}

// TestWrongTypeIsNamedAsInTheRequest names a member that has a value of another type as who sends the request does, also one of a part that several
// requests have.
func TestWrongTypeIsNamedAsInTheRequest(t *testing.T) {
	for text, want := range map[string]string{
		`{"text":1}`: "text: a number does not belong there", `{"ackBy":-5}`: "ackBy: a number does not belong there",
		`{"as":1}`: "as: a number does not belong there", `[]`: "the request: an array does not belong there",
	} {
		if got := parley.AsError(Decode([]byte(text), new(ReplyRequest))).Message; got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
