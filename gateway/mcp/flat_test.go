package mcp

import (
	"bytes"
	"encoding/json"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
)

func TestFieldsAreFlatWhereLossless(t *testing.T) {
	const options = `"options":[{"value":"a","label":"A\u202e","description":"first"},{"value":"b"}]`
	for _, x := range []struct {
		name, field, want string
		older             bool
	}{
		{"text", `{"name":"f","label":"L","help":"H","example":"E"}`, `{"type":"string","title":"L","description":"H\nFor example: E"}`, false},
		{"textarea", `{"name":"f","type":"textarea","default":"d"}`, `{"type":"string","default":"d"}`, false},
		{"number", `{"name":"f","type":"number","default":3}`, `{"type":"number","default":3}`, false},
		{"integer", `{"name":"f","type":"number","pattern":{"type":"integer","minimum":1,"maximum":9}}`, `{"type":"integer","minimum":1,"maximum":9}`, false},
		{"date", `{"name":"f","type":"date"}`, `{"type":"string","format":"date"}`, false},
		{"url", `{"name":"f","type":"url","default":"https://example.com"}`, `{"type":"string","format":"uri","default":"https://example.com"}`, false},
		{"checkbox", `{"name":"f","type":"checkbox","default":true}`, `{"type":"boolean","default":true}`, false},
		{"select", `{"name":"f","type":"select",` + options + `}`, `{"type":"string","oneOf":[{"const":"a","title":"A\\u{202e} - first"},{"const":"b","title":"b"}]}`, false},
		{"select of old", `{"name":"f","type":"select",` + options + `}`, `{"type":"string","enum":["a","b"],"enumNames":["A\\u{202e} - first","b"]}`, true},
		{"multiselect", `{"name":"f","type":"multiselect","required":true,` + options + `}`, `{"type":"array","minItems":1,"items":{"anyOf":[{"const":"a","title":"A\\u{202e} - first"},{"const":"b","title":"b"}]}}`, false},
		{"multiselect of old", `{"name":"f","type":"multiselect",` + options + `}`, ``, true},
		{"email", `{"name":"f","pattern":{"type":"string","format":"email","maxLength":80}}`, `{"type":"string","format":"email","maxLength":80}`, false},
		{"secret", `{"name":"f","type":"secret"}`, ``, false},
		{"capability", `{"name":"f","type":"capability"}`, ``, false},
		{"expression", `{"name":"f","pattern":{"type":"string","pattern":"^a"}}`, ``, false},
		{"anything", `{"name":"f","pattern":{}}`, ``, false},
		{"object", `{"name":"f","pattern":{"type":"object"}}`, ``, false},
		{"number as text", `{"name":"f","type":"number","pattern":{"type":"string"}}`, ``, false},
		{"number with a length", `{"name":"f","type":"number","pattern":{"minLength":1}}`, ``, false},
		{"choice with a pattern", `{"name":"f","type":"select","pattern":{"maxLength":1},` + options + `}`, ``, false},
		{"choice of nothing", `{"name":"f","type":"select","options":[{"value":""}]}`, ``, false},
		{"unknown format", `{"name":"f","pattern":{"type":"string","format":"ipv4"}}`, ``, false},
		{"default of another type", `{"name":"f","type":"number","default":"3"}`, ``, false},
	} {
		var f events.Field
		if err := json.Unmarshal([]byte(x.field), &f); err != nil {
			t.Fatal(err)
		}
		s, misfit := flat([]events.Field{f}, !x.older)
		if misfit != nil {
			if x.want != "" {
				t.Errorf("%s has no flat schema", x.name)
			}
			continue
		}
		got, err := textOf(s.Properties[0].property)
		if err != nil || !sameJSON(t, string(got), x.want) {
			t.Errorf("%s: %s, want %s (%v)", x.name, got, x.want, err)
		}
		if f.Required != (len(s.Required) == 1) {
			t.Errorf("%s: %v is required", x.name, s.Required)
		}
	}
}

func TestFieldsKeepTheirOrder(t *testing.T) {
	fields := []events.Field{{Name: "z", Required: true}, {Name: "a\""}, {Name: "m", Type: events.Number, Required: true}}
	s, misfit := flat(fields, true)
	if got, err := textOf(s); misfit != nil || err != nil ||
		string(got) != `{"type":"object","properties":{"z":{"type":"string"},"a\"":{"type":"string"},"m":{"type":"number"}},"required":["z","m"]}` {
		t.Errorf("%s %v", got, err)
	}
	values, err := capabilities.ParseJSON([]byte(`{"z":1,"m":[],"b":2,"a":3}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := textOf(answered{values, []string{"z", "x", "m", "m"}}); err != nil || string(got) != `{"z":1,"m":[],"a":3,"b":2}` {
		t.Errorf("%s %v", got, err)
	}
	told, err := definitions()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(told[0])
	if names := `"name":{`; err != nil || !bytes.Contains(got, []byte(`"inputSchema":{"type":"object","properties":{"title":`)) ||
		bytes.Index(got, []byte(names)) > bytes.Index(got, []byte(`"label":{`)) {
		t.Errorf("%.300s %v", got, err)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	if b == "" {
		return false
	}
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatal(err)
	}
	one, _ := json.Marshal(x)
	two, _ := json.Marshal(y)
	return string(one) == string(two)
}

func TestClientAnswersArePlain(t *testing.T) {
	fields := []events.Field{{Name: "a", Required: true}, {Name: "b"}}
	got, err := answerOf(fields, map[string]any{"a": "", "b": "", "c": 1.5, "d": []any{"x"}, "e": nil, "f": true})
	if text, _ := json.Marshal(got); err != nil || string(text) != `{"a":"","c":1.5,"d":["x"],"f":true}` {
		t.Errorf("%s %v", text, err)
	}
	for _, bad := range []any{map[string]any{"$cap": "x"}, []any{1.0}, []any{map[string]any{}}} {
		if _, err := answerOf(fields, map[string]any{"a": bad}); parley.CodeOf(err) != parley.InvalidAnswer {
			t.Errorf("%v is plain", bad)
		}
	}
}

func TestEveryToolHasHandlerAndDescription(t *testing.T) {
	told, err := definitions()
	if err != nil {
		t.Fatal(err)
	}
	done := tools()
	for _, d := range told {
		if done[d.Name] == nil || d.Description == "" || d.Title == "" || d.Annotations == nil || !json.Valid(d.OutputSchema.(json.RawMessage)) {
			t.Errorf("%+v", d)
		}
		var result struct{ Properties map[string]any }
		if err := json.Unmarshal(d.OutputSchema.(json.RawMessage), &result); err != nil || result.Properties["error"] == nil {
			t.Errorf("a refusal is no result of %s, which clients check: %v", d.Name, err)
		}
		delete(done, d.Name)
	}
	if len(done) > 0 {
		t.Errorf("nobody is told of %v", done)
	}
}
