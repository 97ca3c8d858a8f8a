package form

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
)

func TestSplitAtFirstColon(t *testing.T) {
	for arg, want := range map[string]events.FieldText{
		"a:b":          {Name: "a", Text: "b"},
		"a:":           {Name: "a", Text: ""},
		"a:b: c: d":    {Name: "a", Text: "b: c: d"},
		"two words: x": {Name: "two words", Text: " x"},
		"寸法:\n":        {Name: "寸法", Text: "\n"},
	} {
		if got, err := SplitText(arg); err != nil || got != want {
			t.Errorf("%q: %v, %v", arg, got, err)
		}
		f, err := SplitField(arg)
		if err != nil || f.Name != want.Name || f.Label != want.Text || !f.Required || f.Type != "" {
			t.Errorf("%q: %v, %v", arg, f, err)
		}
	}
	for _, arg := range []string{"", "a", ":b", ":"} {
		_, err := SplitText(arg)
		if want := `INVALID_ARGUMENT: Invalid value format "` + arg + `", expected "name:value"`; err == nil || err.Error() != want {
			t.Errorf("%q: %v", arg, err)
		}
		_, err = SplitField(arg)
		if want := `INVALID_ARGUMENT: Invalid field format "` + arg + `", expected "fieldName:label"`; err == nil || err.Error() != want {
			t.Errorf("%q: %v", arg, err)
		}
	}
	if _, err := SplitText(strings.Repeat("\u202e", 9999)); len(err.Error()) > 1000 || strings.Contains(err.Error(), "\u202e") {
		t.Errorf("%v", err)
	}
}

func lookupIn(names values) finder {
	return func(path string) (capabilities.Value, error) {
		if v, ok := names[path]; ok {
			return v, nil
		}
		return capabilities.Null(), parley.Refuse(parley.UnknownName, "no name %.80q", path)
	}
}

func TestTextsAreReadByType(t *testing.T) {
	ref := capabilities.Reference(testRef(t))
	names := lookupIn(values{"bob": ref, "team/bob": ref})
	texts := func(ts ...string) []string { return ts }
	eu := choices("eu", "us")
	for _, c := range []struct {
		field events.Field
		texts []string
		want  capabilities.Value
		wrong string
	}{
		{field("a", ""), texts("5"), capabilities.String("5"), ""},
		{field("a", events.Text), texts(" x "), capabilities.String(" x "), ""},
		{field("a", events.Text), texts("x", "y"), capabilities.Null(), "given twice"},
		{field("a", events.Number), texts("5"), capabilities.Int(5), ""},
		{field("a", events.Number), texts(" -7 "), capabilities.Int(-7), ""},
		{field("a", events.Number), texts("5.5"), capabilities.Float(5.5), ""},
		{field("a", events.Number), texts("5.0"), capabilities.Float(5), ""},
		{field("a", events.Number), texts("1e3"), capabilities.Float(1000), ""},
		{field("a", events.Number), texts("9223372036854775807"), capabilities.Int(1<<63 - 1), ""},
		{field("a", events.Number), texts("9223372036854775808"), capabilities.Null(), "too large"},
		{field("a", events.Number), texts("1e999"), capabilities.Null(), "too large"},
		{field("a", events.Number), texts("eighty"), capabilities.Null(), "want a number"},
		{field("a", events.Number), texts("0x10"), capabilities.Null(), "want a number"},
		{field("a", events.Number), texts("Inf"), capabilities.Null(), "want a number"},
		{field("a", events.Number), texts("NaN"), capabilities.Null(), "want a number"},
		{field("a", events.Number), texts("1_000"), capabilities.Null(), "want a number"},
		{field("a", events.Number), texts("5-5"), capabilities.Null(), "want a number"},
		{field("a", events.Number), texts(" "), capabilities.Null(), "want a number"},
		{field("a", events.Number), texts(""), capabilities.String(""), ""},
		{field("a", events.Checkbox), texts("Yes"), capabilities.Bool(true), ""},
		{field("a", events.Checkbox), texts("off"), capabilities.Bool(false), ""},
		{field("a", events.Checkbox), texts("y"), capabilities.Bool(true), ""},
		{field("a", events.Checkbox), texts(" N "), capabilities.Bool(false), ""},
		{field("a", events.Confirm, choices("Yes", "No")), texts("y"), capabilities.String("Yes"), ""},
		{field("a", events.Confirm, choices("Yes", "No")), texts("NO"), capabilities.String("No"), ""},
		{field("a", events.Confirm, choices("Yes", "No")), texts("maybe"), capabilities.String("maybe"), ""},
		{field("a", events.Buttons, choices("y", "Yes", "YES")), texts("y"), capabilities.String("y"), ""},
		{field("a", events.Buttons, choices("Yes", "YES")), texts("y"), capabilities.String("y"), ""},
		{field("a", events.Select, eu), texts("EU"), capabilities.String("eu"), ""},
		{field("a", events.Multiselect, eu), texts("Us"), capabilities.Strings("us"), ""},
		{field("a", events.Checkbox), texts("1"), capabilities.Null(), "want true or false"},
		{field("a", events.Checkbox, eu), texts("eu", "us"), capabilities.Strings("eu", "us"), ""},
		{field("a", events.Multiselect, eu), texts("eu"), capabilities.Strings("eu"), ""},
		{field("a", events.Multiselect, eu), texts("a, b", "c"), capabilities.Strings("a, b", "c"), ""},
		{field("a", events.Multiselect, eu), texts(""), capabilities.List(), ""},
		{field("a", events.Select, eu), texts("eu"), capabilities.String("eu"), ""},
		{field("a", events.Date), texts("2026-01-31"), capabilities.String("2026-01-31"), ""},
		{field("a", events.Capability), texts("team/bob"), ref, ""},
		{field("a", events.Capability), texts("eve"), capabilities.Null(), `UNKNOWN_NAME: no name "eve"`},
		{field("a", "", patterned(`{"type":"integer"}`)), texts("5"), capabilities.Int(5), ""},
		{field("a", "", patterned(`{"type":"object"}`)), texts(`{"x":[1]}`), capabilities.Record(values{"x": capabilities.List(capabilities.Int(1))}), ""},
		{field("a", "", patterned(`{"type":"string"}`)), texts("5"), capabilities.String("5"), ""},
		{field("a", "", patterned(`{"minLength":1}`)), texts("not JSON"), capabilities.String("not JSON"), ""},
		{field("a", "", patterned(`true`)), texts(strings.Repeat("[", 64)), capabilities.String(strings.Repeat("[", 64)), ""},
	} {
		var given []events.FieldText
		for _, text := range c.texts {
			given = append(given, events.FieldText{Name: "a", Text: text})
		}
		got, err := readUnchecked([]events.Field{c.field}, given, names)
		if c.wrong != "" {
			wantFields(t, err, parley.InvalidAnswer, map[string]string{"a": c.wrong})
			continue
		}
		if err != nil || len(got) != 1 || !got["a"].Equal(c.want) {
			t.Errorf("%s %q: got %v, %v", c.field.Type, c.texts, got, err)
		}
	}
}

// readUnchecked reads texts without checking the values.
func readUnchecked(fields []events.Field, texts []events.FieldText, lookup finder) (map[string]capabilities.Value, error) {
	var w parley.FieldErrors
	got := readTexts(fields, texts, lookup, &w)
	w.Sort((&Schema{fields: fields}).find)
	return got, w.Err(parley.InvalidAnswer)
}

func TestReadNamesEveryWrongText(t *testing.T) {
	fields := []events.Field{field("port", events.Number, required), field("ok", events.Checkbox), field("who", events.Capability), field("x", "", required)}
	_, err := readUnchecked(fields, []events.FieldText{{Name: "who", Text: "eve"}, {Name: "bogus", Text: "1"}, {Name: "port", Text: "eighty"}, {Name: "ok", Text: "maybe"}}, nil)
	wantFields(t, err, parley.InvalidAnswer, map[string]string{
		"port": "want a number", "ok": "want true or false", "who": "no names are known here", "bogus": "no such field",
	})
	if e, _ := errors.AsType[*parley.Error](err); !strings.HasPrefix(e.Message, "4 fields are wrong: port: want a number; ok: ") {
		t.Errorf("%q", e.Message)
	}
}

func TestReadAndCheckReportsAllErrors(t *testing.T) {
	ref := capabilities.Reference(testRef(t))
	names := lookupIn(values{"bob": ref, "note": capabilities.String("x")})
	c := compiled(t,
		field("service", events.Text, required), field("port", events.Number, required),
		field("region", events.Multiselect, choices("eu", "us")),
		field("who", events.Capability), field("also", events.Capability),
	)
	_, err := c.ReadAndCheck([]events.FieldText{{Name: "port", Text: "eighty"}, {Name: "bogus", Text: "1"}}, nil, names)
	wantFields(t, err, parley.InvalidAnswer, map[string]string{"service": "required", "port": "want a number", "bogus": "no such field"})
	if e, _ := errors.AsType[*parley.Error](err); e.Message != "3 fields are wrong: service: required; port: want a number; bogus: no such field" {
		t.Errorf("%q", e.Message)
	}

	_, err = c.ReadAndCheck([]events.FieldText{{Name: "service", Text: "web"}, {Name: "port", Text: "80"}, {Name: "port", Text: "81"}, {Name: "also", Text: "note"}},
		values{"service": capabilities.String("x"), "region": capabilities.Strings("mars"), "who": capabilities.String("eve"), "extra": capabilities.Int(1)}, names)
	wantFields(t, err, parley.InvalidAnswer, map[string]string{
		"service": "given twice", "port": "given twice", "region": "not one of the options: eu, us",
		"who": "UNKNOWN_NAME: ", "also": "want a capability", "extra": "no such field",
	})

	got, err := c.ReadAndCheck([]events.FieldText{{Name: "service", Text: "web: the front: one"}, {Name: "region", Text: "eu"}, {Name: "region", Text: "us"}, {Name: "who", Text: "bob"}},
		values{"port": capabilities.Int(8080), "also": capabilities.String("bob")}, names)
	want := values{
		"service": capabilities.String("web: the front: one"), "port": capabilities.Int(8080),
		"region": capabilities.Strings("eu", "us"), "who": ref, "also": ref,
	}
	if err != nil || !maps.EqualFunc(got, want, capabilities.Value.Equal) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := c.ReadAndCheck([]events.FieldText{{Name: "service", Text: "web"}, {Name: "port", Text: "1"}, {Name: "who", Text: ""}}, values{"also": ref}, nil); err != nil || len(got) != 3 || !got["also"].Equal(ref) {
		t.Errorf("a reference as a value: %v, %v", got, err)
	}
}

func FuzzSplitText(f *testing.F) {
	for _, s := range []string{"a:b", ":", "", "a", "a:b:c", "\xff:\u202e", strings.Repeat("x", 500)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		text, err := SplitText(arg)
		field, err2 := SplitField(arg)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%v, but %v", err, err2)
		}
		if err != nil {
			if parley.CodeOf(err) != parley.InvalidArgument || len(err.Error()) > 1200 {
				t.Errorf("%v", err)
			}
			return
		}
		if text.Name+":"+text.Text != arg || field.Name != text.Name || field.Label != text.Text || strings.Contains(text.Name, ":") {
			t.Errorf("%q became %q", arg, text)
		}
	})
}

// everyType returns a form with a field of each type, named after it.
func everyType(t testing.TB) *Schema {
	t.Helper()
	two := choices("eu", "us")
	return compiled(t,
		field("any", "", patterned(`{"type":["object","array","number","boolean"]}`)), field("text", events.Text), field("textarea", events.Textarea),
		field("number", events.Number), field("checkbox", events.Checkbox), field("checkboxes", events.Checkbox, two),
		field("select", events.Select, two), field("multiselect", events.Multiselect, two), field("radio", events.Radio, two),
		field("buttons", events.Buttons, two), field("confirm", events.Confirm), field("date", events.Date), field("url", events.URL),
		field("secret", events.Secret), field("capability", events.Capability),
	)
}

func FuzzReadAndCheck(f *testing.F) {
	for _, seed := range []events.FieldText{
		{Name: "any", Text: `{"a":[1,2.5e3,null,"x"]}`}, {Name: "any", Text: `{"$cap":"x","kind":"agent"}`}, {Name: "any", Text: `{"$sealed":true}`}, {Name: "number", Text: "-1.5e-3"},
		{Name: "checkbox", Text: "YES"}, {Name: "multiselect", Text: "eu"}, {Name: "date", Text: "2024-02-30"}, {Name: "capability", Text: "bob"}, {Name: "capability", Text: "../x"}, {Name: "text", Text: "\xff"}, {Name: "\u202e", Text: "x"},
	} {
		f.Add(seed.Name, seed.Text, "select", "eu")
	}
	c := everyType(f)
	ref := capabilities.Reference(testRef(f))
	f.Fuzz(func(t *testing.T, name, text, name2, text2 string) {
		got, err := c.ReadAndCheck([]events.FieldText{{Name: name, Text: text}, {Name: name2, Text: text2}}, nil, lookupIn(values{"bob": ref}))
		if err != nil {
			e, ok := errors.AsType[*parley.Error](err)
			if !ok || e.Code != parley.InvalidAnswer && e.Code != parley.TooLarge || len([]rune(e.Message)) > 1000+1 {
				t.Fatalf("%v", err)
			}
			if strings.ContainsFunc(e.Message, parley.IsInvisible) {
				t.Errorf("%q has invisible characters", e.Message)
			}
			return
		}
		if err := capabilities.Record(got).Check(); err != nil {
			t.Errorf("cannot be stored: %v", err)
		}
		again, err := c.Check(got)
		if err != nil || !maps.EqualFunc(got, again, capabilities.Value.Equal) {
			t.Errorf("checked twice: %v, %v", again, err)
		}
	})
}

// TestNormalFormsAreOne answers with letters that are written as others than those of the form, and look the same.
func TestNormalFormsAreOne(t *testing.T) {
	const composed, apart = "caf\u00e9", "cafe\u0301"
	fields := []events.Field{
		{Name: apart, Type: events.Select, Options: []events.Option{{Value: apart, Label: "Ka" + apart}, {Value: "tea"}}, Default: capabilities.String(apart)},
		{Name: "more", Type: events.Multiselect, Options: []events.Option{{Value: composed}, {Value: "tea"}}},
		{Name: "word", Type: events.Text},
	}
	c, err := Compile(fields)
	if err != nil {
		t.Fatal(err)
	}
	if f := c.Fields()[0]; f.Name != composed || f.Options[0].Value != composed || fields[0].Options[0].Value != apart {
		t.Errorf("the field is %+v, and was %+v", f, fields[0])
	}
	if !SameFields(fields, c.Fields()) || string(AppendKey(nil, fields)) != string(AppendKey(nil, c.Fields())) {
		t.Error("the fields are not what they were compiled from")
	}
	for _, name := range []string{composed, apart} {
		for _, choice := range []string{composed, apart, "KA" + apart} {
			got, err := c.ReadAndCheck([]events.FieldText{{Name: name, Text: choice}, {Name: "more", Text: choice[:0] + apart}, {Name: "word", Text: apart}}, nil, nil)
			if err != nil || got[composed].Text() != composed || got["word"].Text() != apart {
				t.Errorf("%q: %v, %v", choice, got, err)
			}
		}
		got, err := c.Check(map[string]capabilities.Value{name: capabilities.String(apart), "more": capabilities.Strings("tea", apart)})
		if err != nil || got[composed].Text() != composed || !got["more"].Equal(capabilities.Strings("tea", composed)) {
			t.Errorf("%v, %v", got, err)
		}
	}
	if _, err := c.Check(map[string]capabilities.Value{composed: capabilities.String("tea"), apart: capabilities.String("tea")}); err == nil {
		t.Error("one field is answered twice")
	}
	for _, twice := range [][]events.Field{
		{{Name: composed}, {Name: apart}}, {{Name: "a", Type: events.Select, Options: []events.Option{{Value: composed}, {Value: apart}}}},
	} {
		if _, err := Compile(twice); err == nil {
			t.Errorf("what looks the same stands twice: %+v", twice)
		}
	}
}
