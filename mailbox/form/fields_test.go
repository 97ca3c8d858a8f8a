package form

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
)

const deployFields = `[
 {"name":"service","label":"Service: which one?","type":"text","required":true},
 {"name":"port","label":"Port","type":"number","required":true,"pattern":{"type":"integer","minimum":1,"maximum":65535}},
 {"name":"region","label":"Regions","type":"multiselect","required":true,"options":[{"value":"eu","label":"Europe"},{"value":"us","label":"US, all","description":"d"}]},
 {"name":"dryRun","label":"Dry run","type":"checkbox","help":"h","placeholder":"p","example":true,"default":null},
 {"name":"tier","type":"select","default":"standard","options":[{"value":"standard"}]}
]`

func TestFieldsAreReadFromJSON(t *testing.T) {
	got, err := parley.ParseFields([]byte(deployFields))
	if err != nil {
		t.Fatal(err)
	}
	want := []events.Field{
		{Name: "service", Label: "Service: which one?", Type: events.Text, Required: true},
		{Name: "port", Label: "Port", Type: events.Number, Required: true, Pattern: json.RawMessage(`{"type":"integer","minimum":1,"maximum":65535}`)},
		{Name: "region", Label: "Regions", Type: events.Multiselect, Required: true, Options: []events.Option{{Value: "eu", Label: "Europe"}, {Value: "us", Label: "US, all", Description: "d"}}},
		{Name: "dryRun", Label: "Dry run", Type: events.Checkbox, Help: "h", Placeholder: "p", Example: capabilities.Bool(true)},
		{Name: "tier", Type: events.Select, Default: capabilities.String("standard"), Options: []events.Option{{Value: "standard"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	compiled(t, got...)
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := parley.ParseFields(b); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("parsed from its JSON: %+v, %v", again, err)
	}
}

func TestInvalidFieldsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		json string
		want map[string]string
	}{
		"unknown key":       {`[{"name":"a","lable":"x"}]`, map[string]string{"a": `unknown key "lable"`}},
		"other case":        {`[{"name":"a","Label":"x"}]`, map[string]string{"a": `unknown key "Label"`}},
		"hidden key":        {`[{"name":"a","la\u202ebel":"x"}]`, map[string]string{"a": `unknown key "la\u202ebel"`}},
		"key twice":         {`[{"name":"a","label":"x","label":"y"}]`, map[string]string{"a": "label stands twice"}},
		"not an object":     {`["a"]`, map[string]string{"field 1": "want an object"}},
		"null":              {`[null]`, map[string]string{"field 1": "want an object"}},
		"name":              {`[{"name":5}]`, map[string]string{"field 1": "name: want text"}},
		"required":          {`[{"name":"a","required":"yes"}]`, map[string]string{"a": "required: want true or false"}},
		"options":           {`[{"name":"a","options":"x"}]`, map[string]string{"a": "options: want a list of options"}},
		"option":            {`[{"name":"a","options":[{"value":"x"},"y"]}]`, map[string]string{"a": "options: option 2: want an object"}},
		"option key":        {`[{"name":"a","options":[{"value":"x","name":"y"}]}]`, map[string]string{"a": `options: option 1: unknown key "name"`}},
		"option value":      {`[{"name":"a","options":[{"value":1}]}]`, map[string]string{"a": "options: option 1: value: want text"}},
		"many options":      {`[{"name":"a","options":[` + strings.Repeat("{},", 1000) + `{}]}]`, map[string]string{"a": "over the limit of 1000"}},
		"deep default":      {`[{"name":"a","default":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}]`, map[string]string{"a": "default: values may be nested 32 deep"}},
		"key twice within":  {`[{"name":"a","default":{"x":1,"x":2}}]`, map[string]string{"a": "stands twice"}},
		"sealed default":    {`[{"name":"a","default":{"$sealed":true}}]`, map[string]string{"a": "sealed value cannot be given"}},
		"number of default": {`[{"name":"a","default":1e999}]`, map[string]string{"a": "no passable number"}},
		"each of several": {`[{"name":"a","x":1},{"name":"b"},{"label":5,"y":1},{"name":"d","type":[]}]`, map[string]string{
			"a": "unknown key", "field 3": `label: want text; unknown key "y"`, "d": "type: want text",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parley.ParseFields([]byte(c.json))
			wantFields(t, err, parley.InvalidForm, c.want)
		})
	}
}

func TestInvalidDocumentsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		json string
		want parley.Code
	}{
		"empty":     {"", parley.InvalidForm},
		"null":      {"null", parley.InvalidForm},
		"object":    {`{"name":"a"}`, parley.InvalidForm},
		"cut off":   {`[{"name":"a"}`, parley.InvalidForm},
		"two":       {`[] []`, parley.InvalidForm},
		"UTF-8":     {"[{\"name\":\"\xff\"}]", parley.InvalidForm},
		"64 deep":   {strings.Repeat("[", 64) + strings.Repeat("]", 64), parley.InvalidForm},
		"very deep": {strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), parley.InvalidForm},
		"10,000":    {"[" + strings.Repeat("{},", 9999) + "{}]", parley.TooLarge},
		"large":     {`[{"name":"` + strings.Repeat("x", 600<<10) + `"}]`, parley.TooLarge},
		"no fields": {"[]", ""}, // Compile refuses a form without fields
	} {
		if _, err := parley.ParseFields([]byte(c.json)); parley.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseFields(f *testing.F) {
	for _, s := range []string{deployFields, `[{"name":"a","x":1,"x":2}]`, `[{"name":"a","default":{"$cap":1}}]`, `[null]`, `[{"pattern":{"$ref":"#"}}]`, `{}`, "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		fields, err := parley.ParseFields(doc)
		if err != nil {
			if e, ok := errors.AsType[*parley.Error](err); !ok || e.Code != parley.InvalidForm && e.Code != parley.TooLarge {
				t.Fatalf("%v", err)
			}
			return
		}
		c, err := Compile(fields)
		if err != nil {
			if code := parley.CodeOf(err); code != parley.InvalidForm && code != parley.TooLarge {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := Compile(c.Fields())
		if err != nil || !reflect.DeepEqual(again.Fields(), c.Fields()) {
			t.Errorf("compiled twice: %v", err)
		}
		b, err := json.Marshal(c.Fields())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parley.ParseFields(b); err != nil && parley.CodeOf(err) != parley.TooLarge {
			t.Errorf("its JSON cannot be parsed: %v\n%s", err, b)
		}
	})
}

func TestEqualFieldsHaveEqualKeys(t *testing.T) {
	key := func(fields []events.Field) string { return string(AppendKey(nil, fields)) }
	given := []events.Field{
		{Name: "ok", Type: events.Confirm, Default: capabilities.String("")},
		{Name: "n", Type: events.Number, Default: capabilities.Int(1), Pattern: json.RawMessage(`{"minimum":1}`)},
		{Name: "l", Type: events.Multiselect, Options: []events.Option{{Value: "a"}}, Example: capabilities.List(capabilities.String("a"))},
	}
	if key(given) != key(compiled(t, given...).Fields()) {
		t.Error("compiled fields have another key")
	}
	was := map[string]bool{key(given): true}
	for name, change := range map[string]func([]events.Field){
		"name":    func(f []events.Field) { f[0].Name = "OK" },
		"label":   func(f []events.Field) { f[0].Name, f[0].Label = "o", "k" },
		"default": func(f []events.Field) { f[1].Default = capabilities.Int(2) },
		"pattern": func(f []events.Field) { f[1].Pattern = json.RawMessage(`{"minimum":2}`) },
		"option":  func(f []events.Field) { f[2].Options = []events.Option{{Value: "b"}} },
		"example": func(f []events.Field) { f[2].Example = capabilities.Null() },
	} {
		other := slices.Clone(given)
		change(other)
		if was[key(other)] {
			t.Errorf("another %s gives the same key", name)
		}
		was[key(other)] = true
	}
}
