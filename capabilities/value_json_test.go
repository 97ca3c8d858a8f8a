package capabilities

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/fault"
)

func TestValueJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := someValue(3).Draw(t, "value")
		doc, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseJSON(doc)
		if err != nil || !got.Equal(v) {
			t.Fatalf("%s: got %s, %v", doc, got.Text(), err)
		}
	})
}

func TestTypesWithoutJSONEquivalent(t *testing.T) {
	ref := Ref{Target: testID(1), Kind: KindAgent, Facet: Facet{Mode: AskOnly, Until: 1000, Uses: 3}, Grant: testID(2)}
	for want, v := range map[string]Value{
		`9223372036854775807`:       Int(math.MaxInt64),
		`-9223372036854775808`:      Int(math.MinInt64),
		`1.0`:                       Float(1),
		`1e+21`:                     Float(1e21),
		`9.223372036854776e+18`:     Float(1 << 63),
		`{"$bytes":"AP8="}`:         Bytes([]byte{0, 0xff}),
		`{"$bytes":""}`:             Bytes(nil),
		`[]`:                        List(),
		`{}`:                        Record(nil),
		`{"a":[null,true],"b":"é"}`: Record(map[string]Value{"b": String("é"), "a": List(Null(), Bool(true))}),
		`{"$cap":"` + testID(1).String() + `","kind":"agent"}`: Reference(Ref{Target: testID(1), Kind: KindAgent}),
		`{"$cap":"` + testID(1).String() + `","kind":"agent","facet":{"mode":"ask","until":"1970-01-01T00:00:01.000Z","uses":3},"grant":"` +
			testID(2).String() + `"}`: Reference(ref),
	} {
		doc, err := v.MarshalJSON()
		if err != nil || string(doc) != want {
			t.Errorf("got %s, %v, want %s", doc, err, want)
		}
		if back, err := ParseJSON([]byte(want)); err != nil || !back.Equal(v) {
			t.Errorf("%s: got %s of type %s, %v", want, back.Text(), back.TypeName(), err)
		}
	}
}

func TestSealedValuesAreHiddenAndRefused(t *testing.T) {
	v := Record(map[string]Value{"password": Sealed([]byte("ciphertext"))})
	doc, err := v.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if string(doc) != `{"password":{"$sealed":true}}` || strings.Contains(Sealed([]byte("ciphertext")).Text(), "cipher") {
		t.Fatalf("shown as %s and %s", doc, Sealed([]byte("ciphertext")).Text())
	}
	for _, given := range []string{string(doc), `{"$sealed":true}`, `{"$sealed":"Y2lwaGVy"}`, `[{"$sealed":false,"more":1}]`} {
		_, err := ParseJSON([]byte(given))
		wantCode(t, err, fault.InvalidArgument, given)
	}
	shown, err := ParseShown(doc)
	if again, _ := shown.MarshalJSON(); err != nil || string(again) != string(doc) {
		t.Errorf("read as %s, %v", again, err)
	}
	_, err = ParseShown([]byte(`[{"$sealed":"Y2lwaGVy"}]`))
	wantCode(t, err, fault.InvalidArgument, "a ciphertext")
}

func TestNumbersKeepTheirType(t *testing.T) {
	for text, want := range map[string]Value{
		"0": Int(0), "-1": Int(-1), "1.0": Float(1), "1e3": Float(1000), "0.1": Float(0.1), "-0.0": Float(math.Copysign(0, -1)),
		"9223372036854775807": Int(math.MaxInt64), "9223372036854775808": Float(1 << 63), "1e-400": Float(0),
	} {
		if v, err := ParseJSON([]byte(text)); err != nil || !v.Equal(want) {
			t.Errorf("%s: got %s of type %s, %v", text, v.Text(), v.TypeName(), err)
		}
	}
}

func TestBadJSONIsRefused(t *testing.T) {
	cap := `{"$cap":"` + testID(1).String() + `"`
	for what, c := range map[string]struct {
		doc  string
		code fault.Code
	}{
		"empty":                        {"", fault.InvalidArgument},
		"white space":                  {" \n", fault.InvalidArgument},
		"a word":                       {"hello", fault.InvalidArgument},
		"NaN":                          {"NaN", fault.InvalidArgument},
		"infinity":                     {"[-Infinity]", fault.InvalidArgument},
		"a number beyond floats":       {"1e400", fault.InvalidArgument},
		"a number with a plus":         {"+1", fault.InvalidArgument},
		"a number with a leading zero": {"01", fault.InvalidArgument},
		"two documents":                {"1 2", fault.InvalidArgument},
		"a document and a bracket":     {"1]", fault.InvalidArgument},
		"a list cut short":             {"[1,", fault.InvalidArgument},
		"a list without end":           {"[1", fault.InvalidArgument},
		"a list with a last comma":     {"[1,]", fault.InvalidArgument},
		"a list without commas":        {"[1 2]", fault.InvalidArgument},
		"a list ended as a record":     {"[1}", fault.InvalidArgument},
		"a record ended as a list":     {`{"a":1]`, fault.InvalidArgument},
		"a record without value":       {`{"a"}`, fault.InvalidArgument},
		"a key that is no text":        {`{1:2}`, fault.InvalidArgument},
		"a key twice":                  {`{"a":1,"b":2,"a":1}`, fault.InvalidArgument},
		"a key twice, once escaped":    {`{"a":1,"\u0061":1}`, fault.InvalidArgument},
		"a key twice, nested":          {`[{"x":{"a":1,"a":2}}]`, fault.InvalidArgument},
		"not UTF-8":                    {"\"\xff\"", fault.InvalidArgument},
		"a key that is not UTF-8":      {"{\"\xc3\":1}", fault.InvalidArgument},
		"64 deep":                      {strings.Repeat("[", 64) + strings.Repeat("]", 64), fault.TooLarge},
		"64 deep records":              {strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64), fault.TooLarge},
		"100,000 deep, without end":    {strings.Repeat("[", 100_000), fault.TooLarge},
		"300 KiB":                      {`"` + strings.Repeat("x", 300<<10) + `"`, fault.TooLarge},
		"a megabyte of white space":    {strings.Repeat(" ", 1<<20) + "1", fault.TooLarge},
		"bytes that are not base64":    {`{"$bytes":"?"}`, fault.InvalidArgument},
		"bytes that are a number":      {`{"$bytes":5}`, fault.InvalidArgument},
		"a reference to nothing":       {`{"$cap":"","kind":"agent"}`, fault.InvalidArgument},
		"a reference to a word":        {`{"$cap":"fae","kind":"agent"}`, fault.InvalidArgument},
		"a reference to a number":      {`{"$cap":5,"kind":"agent"}`, fault.InvalidArgument},
		"a reference of no kind":       {cap + `}`, fault.InvalidArgument},
		"a reference of unknown kind":  {cap + `,"kind":"spaceship"}`, fault.InvalidArgument},
		"a reference with another key": {cap + `,"kind":"agent","more":1}`, fault.InvalidArgument},
		"a reference of unknown facet": {cap + `,"kind":"agent","facet":{"mode":"everything"}}`, fault.InvalidArgument},
		"a reference of -1 uses":       {cap + `,"kind":"agent","facet":{"uses":-1}}`, fault.InvalidArgument},
	} {
		_, err := ParseJSON([]byte(c.doc))
		wantCode(t, err, c.code, what)
	}
	if v, err := ParseJSON([]byte(strings.Repeat("[", 32) + strings.Repeat("]", 32))); err != nil {
		t.Errorf("32 deep: got %s, %v", v.Text(), err)
	}
}

// FuzzParseJSON checks that an accepted document is JSON, and that its value is well formed and equals that of its own JSON.
func FuzzParseJSON(f *testing.F) {
	for _, doc := range []string{
		`null`, `-0.0`, `9223372036854775808`, `{"a":[1,2.0,"\u00e9"]}`, `{"$bytes":"AP8="}`, `{"$sealed":true}`, `{"$cap":null,"$bytes":1}`,
		`{"$cap":"` + testID(1).String() + `","kind":"agent","facet":{"mode":"ask","until":"2026-01-31T12:00:00Z","uses":1}}`, `"\ud800"`, `[1,]`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := ParseJSON(doc)
		if err != nil {
			if c := fault.CodeOf(err); c != fault.InvalidArgument && c != fault.TooLarge {
				t.Fatalf("%q: %v", doc, err)
			}
			return
		}
		if !json.Valid(doc) {
			t.Fatalf("%q is not JSON and is parsed as %s", doc, v.Text())
		}
		if err := v.Check(); err != nil {
			t.Fatalf("%q is parsed as a malformed value: %v", doc, err)
		}
		text, err := v.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseJSON(text); len(text) <= 2*MaxValueSize && (err != nil || !again.Equal(v)) {
			t.Fatalf("%q, written as %s, is parsed as %s, %v", doc, text, again.Text(), err)
		}
	})
}
