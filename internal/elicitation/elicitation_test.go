package elicitation

import (
	"encoding/json"
	"testing"

	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/form/formtest"
)

// A property of each type of values becomes a field that takes such values.
func TestEachJSONTypeHasAField(t *testing.T) {
	for _, f := range formtest.EachType() {
		asks := form.ControlOf(&f)
		if asks.JSON() == "" {
			continue // no property asks for such a field
		}
		var options []map[string]string
		for _, o := range f.Options {
			options = append(options, map[string]string{"const": o.Value})
		}
		property := map[string]any{"type": asks.JSON(), "format": form.TypeOf(f.Type).Format, "oneOf": options}
		if asks == form.Choices {
			property = map[string]any{"type": "array", "items": map[string]any{"anyOf": options}}
		}
		text, err := json.Marshal(map[string]any{"a": property})
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&Schema{Properties: text}).Fields()
		if err != nil || len(got) != 1 || form.ControlOf(&got[0]).JSON() != asks.JSON() || len(got[0].Options) != len(f.Options) {
			t.Errorf("%s: %+v, %v", f.Name, got, err)
		}
	}
}

func TestPropertiesBecomeFields(t *testing.T) {
	fields, err := (&Schema{
		Properties: json.RawMessage(`{"d":{"type":"string","format":"date","minLength":1},"n":{"type":"integer","minimum":1},"t":{"type":"string","format":"uri","title":"T"},
			"c":{"type":"string","enum":["a"]},"b":{"type":"boolean","default":true},"l":{"type":"array","minItems":1,"items":{"enum":["a","b"]}}}`),
		Required: []string{"n"},
	}).Fields()
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		kind    events.FieldType
		pattern string
	}{{events.Date, ""}, {events.Number, `{"minimum":1,"type":"integer"}`}, {events.Text, `{"format":"uri"}`}, {events.Select, ""}, {events.Checkbox, ""}, {events.Multiselect, `{"minItems":1}`}}
	for i, w := range want {
		if f := fields[i]; f.Type != w.kind || string(f.Pattern) != w.pattern || f.Required != (f.Name == "n") {
			t.Errorf("%s: %+v", f.Name, f)
		}
	}
	if _, err := (&Schema{Properties: json.RawMessage(`{"o":{"type":"object"}}`)}).Fields(); err == nil {
		t.Error("an object has a field")
	}
}
