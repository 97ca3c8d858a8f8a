package exchange

import (
	"encoding/json"
	"strings"

	"parley/actors/view"
	"parley/events"
	"parley/gateway/sanitize"
	"parley/mailbox/form"
)

// Schema returns the JSON Schema (2020-12) of an answer to a form. Invisible characters are escaped: those of texts for
// people so that they are seen, and those of names and values as JSON does.
func Schema(fields []events.Field) json.RawMessage {
	properties := make(map[string]any, len(fields))
	order, required := []any{}, []any{}
	for i := range fields {
		f := &fields[i]
		properties[f.Name] = fieldSchema(f)
		order = append(order, f.Name)
		if f.Required {
			required = append(required, f.Name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false, "x-order": order}
	if len(required) > 0 {
		s["required"] = required
	}
	text, err := json.Marshal(s)
	if err != nil { // a pattern or default is no JSON, which no form has
		return json.RawMessage(`{"type":"object"}`)
	}
	return sanitize.JSON(text)
}

func fieldSchema(f *events.Field) map[string]any {
	s := map[string]any{}
	choices := choicesOf(f)
	asks := form.ControlOf(f)
	if is := asks.JSON(); is != "" {
		s["type"] = is
	}
	if t := form.TypeOf(f.Type); t != nil && t.Format != "" {
		s["format"] = t.Format
	}
	switch asks {
	case form.Any:
		if len(f.Pattern) == 0 {
			s["type"] = "string"
		}
	case form.Secret:
		s["writeOnly"] = true
	case form.File:
		s["type"], s["required"], s["additionalProperties"] = "object", []string{"digest", "name", "size"}, false
		s["properties"] = map[string]any{
			"digest": map[string]any{"type": "string", "pattern": "^[0-9a-f]{64}$"}, "name": map[string]any{"type": "string"},
			"size": map[string]any{"type": "integer", "minimum": 0}, "type": map[string]any{"type": "string"},
		}
	case form.Choices:
		s["items"] = map[string]any{"oneOf": choices}
	case form.Choice:
		if len(choices) > 0 {
			s["oneOf"] = choices
		}
	}
	var pattern any
	if len(f.Pattern) > 0 && json.Unmarshal(f.Pattern, &pattern) == nil {
		s["allOf"] = []any{pattern}
	}
	if f.Label != "" {
		s["title"] = sanitize.Line(f.Label)
	}
	if text := strings.TrimSpace(f.Help + "\n" + f.Placeholder); text != "" {
		s["description"] = sanitize.Lines(text)
	}
	if text, err := f.Default.MarshalJSON(); err == nil && !f.Default.IsNull() && asks != form.Secret {
		s["default"] = json.RawMessage(text)
	}
	return s
}

func choicesOf(f *events.Field) []any {
	var all []any
	for _, o := range f.Options {
		c := map[string]any{"const": o.Value}
		if o.Label != "" {
			c["title"] = sanitize.Line(o.Label)
		}
		if o.Description != "" {
			c["description"] = sanitize.Lines(o.Description)
		}
		all = append(all, c)
	}
	return all
}

// Words returns the title and text of a form, for people.
func Words(m *view.Message) string {
	var parts []string
	for _, s := range []string{m.Title, m.Description} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return sanitize.Lines(strings.Join(parts, "\n\n"))
}
