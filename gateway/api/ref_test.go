package api

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"parley"
)

func TestRefTo(t *testing.T) {
	for text, want := range map[string]FormRef{
		"":                       {},
		"0":                      {Number: "0"},
		"12":                     {Number: "12"},
		"99999999999999999999":   {Number: "99999999999999999999"},
		"-1":                     {ID: "-1"},
		"1.5":                    {ID: "1.5"},
		"01HZ":                   {ID: "01HZ"},
		"٣":                      {ID: "٣"}, // a digit outside ASCII
		"1\n":                    {ID: "1\n"},
		"01J0000000000000000000": {ID: "01J0000000000000000000"},
	} {
		if got := RefTo(text); got != want {
			t.Errorf("RefTo(%q) is %+v, want %+v", text, got, want)
		}
	}
}

func TestFormRefJSON(t *testing.T) {
	for text, want := range map[string]FormRef{
		`{}`:                               {},
		`{"number":7}`:                     {Number: "7"},
		`{"number":"7"}`:                   {Number: "7"},
		`{"number":9007199254740993}`:      {Number: "9007199254740993"}, // beyond the exact range of float64
		`{"number":99999999999999999999}`:  {Number: "99999999999999999999"},
		`{"number":null,"id":null}`:        {},
		`{"id":"\u0030\u0031"}`:            {ID: "01"},
		`{"id":"a\"b"}`:                    {ID: `a"b`},
		`{"id":""}`:                        {},
		`{"number":-1}`:                    {Number: "-1"}, // the lookup refuses it
		`{"number":1.5}`:                   {Number: "1.5"},
		`{"number":1e400}`:                 {Number: "1e400"},
		`{"id":"x","number":1,"number":2}`: {Number: "2", ID: "x"},
	} {
		var got FormRef
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", text, got, err, want)
		}
	}
}

func TestFormRefRefusesOtherJSON(t *testing.T) {
	for _, text := range []string{
		`{"number":true}`, `{"number":[]}`, `{"number":[7]}`, `{"number":{}}`, `{"id":{"$cap":"x"}}`, `{"id":false}`,
		`{"number":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`,
	} {
		err := json.Unmarshal([]byte(text), new(FormRef))
		if parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%.40s: %.200v, want %s", text, err, parley.InvalidArgument)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.40s: the error has %d bytes", text, len(err.Error()))
		}
	}
}

func FuzzRefText(f *testing.F) {
	for _, text := range []string{`1`, `"1"`, `"\ud800"`, "\"\xff\"", `""`, `"\""`, `null`, `-0`, `"a\\"`, `[1]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got RefText
		if json.Unmarshal(text, &got) != nil {
			return
		}
		if !utf8.ValidString(string(got)) {
			t.Fatalf("%q became %q", text, got)
		}
		var plain any
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatalf("%q is no JSON: %v", text, err)
		}
		if s, ok := plain.(string); ok && s != string(got) {
			t.Fatalf("%q became %q, want %q", text, got, s)
		}
	})
}
