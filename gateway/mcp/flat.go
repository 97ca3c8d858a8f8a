package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/sanitize"
	"parley/mailbox/form"
)

// property is a JSON Schema of the restricted kind that clients draw: flat, without patterns.
type property struct {
	Type        string              `json:"type,omitempty"`
	Title       string              `json:"title,omitempty"`
	Description string              `json:"description,omitempty"`
	Format      string              `json:"format,omitempty"`
	MinLength   *int                `json:"minLength,omitempty"`
	MaxLength   *int                `json:"maxLength,omitempty"`
	Minimum     *float64            `json:"minimum,omitempty"`
	Maximum     *float64            `json:"maximum,omitempty"`
	MinItems    *int                `json:"minItems,omitempty"`
	Enum        []string            `json:"enum,omitempty"`
	EnumNames   []string            `json:"enumNames,omitempty"`
	OneOf       []choice            `json:"oneOf,omitempty"`
	Items       *items              `json:"items,omitempty"`
	Default     *capabilities.Value `json:"default,omitempty"`
}

type items struct {
	AnyOf []choice `json:"anyOf"`
}

type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// flatSchema is the schema of a form as clients draw it.
type flatSchema struct {
	Type       string     `json:"type"`
	Properties properties `json:"properties"`
	Required   []string   `json:"required,omitempty"`
}

// properties are the properties of a schema, in the order in which clients draw them.
type properties []namedProperty

type namedProperty struct {
	name string
	*property
}

// MarshalJSON writes an object with the properties in their order.
func (p properties) MarshalJSON() ([]byte, error) {
	return orderedObject(len(p), func(i int) (string, any) { return p[i].name, p[i].property })
}

// flat returns the schema for fields, or the field that one cannot express: a capability, or one with most patterns. A
// secret is one too, because it must not pass through a client. titles reports that the client draws choices with titles,
// and several.
func flat(fields []events.Field, titles bool) (_ *flatSchema, misfit *events.Field) {
	s := &flatSchema{Type: "object", Properties: properties{}}
	for i := range fields {
		f := &fields[i]
		p, ok := flatField(f, titles)
		if !ok {
			return nil, f
		}
		p.Title = sanitize.Line(f.Label)
		p.Description = described(f)
		s.Properties = append(s.Properties, namedProperty{f.Name, p})
		if f.Required {
			s.Required = append(s.Required, f.Name)
		}
	}
	return s, nil
}

// Elicitation returns the schema with which a client draws a form, with titles of choices. If none can draw it, the schema
// is nil, and why tells the reason.
func Elicitation(fields []events.Field) (schema any, why string) {
	s, misfit := flat(fields, true)
	if misfit != nil {
		return nil, whyMisfit(misfit)
	}
	return s, ""
}

// ElicitationAnswer returns the values of a client's response to an Elicitation, without empty ones. It refuses with
// INVALID_ANSWER all but plain data.
func ElicitationAnswer(fields []events.Field, content map[string]any) (map[string]capabilities.Value, error) {
	return answerOf(fields, content)
}

// whyMisfit returns the reason why no client shows a field.
func whyMisfit(f *events.Field) string {
	switch form.ControlOf(f) {
	case form.Secret:
		return fmt.Sprintf("the field %.80q is a secret, which must not pass through a client", f.Name)
	case form.Reference:
		return fmt.Sprintf("the field %.80q asks for a capability", f.Name)
	case form.File:
		return fmt.Sprintf("the field %.80q asks for a file", f.Name)
	}
	return fmt.Sprintf("its forms cannot express the field %.80q", f.Name)
}

func flatField(f *events.Field, titles bool) (*property, bool) {
	asks := form.ControlOf(f)
	p := &property{Type: asks.JSON()}
	switch asks {
	case form.Any:
		p.Type = "string"
	case form.Line, form.Lines, form.Number, form.YesNo, form.Date:
		p.Format = form.TypeOf(f.Type).Format
	case form.Choices:
		return several(f, titles)
	case form.Choice:
		return oneOf(f, titles)
	default:
		return nil, false
	}
	if len(f.Pattern) > 0 && !p.take(f.Pattern, asks == form.Any) {
		return nil, false
	}
	return p, suggest(f, p)
}

// suggest adds the field's default to the schema, and reports whether the schema can express it.
func suggest(f *events.Field, p *property) bool {
	text, err := f.Default.MarshalJSON()
	if err != nil || f.Default.IsNull() {
		return err == nil
	}
	is := map[byte]string{'"': "string", 't': "boolean", 'f': "boolean", '[': "array", '{': "object"}[text[0]]
	if is == "" {
		is = "number"
	}
	if is != p.Type && (is != "number" || p.Type != "integer") {
		return false
	}
	p.Default = &f.Default
	return true
}

// take adds the rules of a pattern, and reports whether the schema can express all of them.
func (p *property) take(pattern json.RawMessage, decides bool) bool {
	var more struct {
		Type      string   `json:"type"`
		Format    string   `json:"format"`
		MinLength *int     `json:"minLength"`
		MaxLength *int     `json:"maxLength"`
		Minimum   *float64 `json:"minimum"`
		Maximum   *float64 `json:"maximum"`
	}
	d := json.NewDecoder(bytes.NewReader(pattern))
	d.DisallowUnknownFields()
	if d.Decode(&more) != nil {
		return false
	}
	switch more.Type {
	case "":
		if decides { // any value is accepted
			return false
		}
	case "string", "number", "integer", "boolean":
		if !decides && more.Type != p.Type && (more.Type != "integer" || p.Type != "number") {
			return false
		}
		p.Type = more.Type
	default:
		return false
	}
	switch more.Format {
	case "":
	case "email", "uri", "date", "date-time":
		if p.Type != "string" || p.Format != "" && p.Format != more.Format {
			return false
		}
		p.Format = more.Format
	default:
		return false
	}
	ofText, ofNumber := more.MinLength != nil || more.MaxLength != nil, more.Minimum != nil || more.Maximum != nil
	if ofText && p.Type != "string" || ofNumber && p.Type != "number" && p.Type != "integer" {
		return false
	}
	p.MinLength, p.MaxLength, p.Minimum, p.Maximum = more.MinLength, more.MaxLength, more.Minimum, more.Maximum
	return true
}

// choices returns the field's options, and reports whether a client can draw them.
func choices(f *events.Field) ([]choice, bool) {
	var all []choice
	for _, o := range f.Options {
		title := o.Label
		if title == "" {
			title = o.Value
		}
		if o.Description != "" {
			title += " - " + o.Description
		}
		if o.Value == "" {
			return nil, false
		}
		all = append(all, choice{Const: o.Value, Title: sanitize.Line(title)})
	}
	return all, len(all) > 0 && len(f.Pattern) == 0
}

func oneOf(f *events.Field, titles bool) (*property, bool) {
	p := &property{Type: "string"}
	all, ok := choices(f)
	if !ok {
		return nil, false
	}
	if titles {
		p.OneOf = all
		return p, suggest(f, p)
	}
	for _, o := range all {
		p.Enum = append(p.Enum, o.Const)
		p.EnumNames = append(p.EnumNames, o.Title)
	}
	return p, suggest(f, p)
}

func several(f *events.Field, titles bool) (*property, bool) {
	all, ok := choices(f)
	if !ok || !titles {
		return nil, false
	}
	p := &property{Type: "array", Items: &items{AnyOf: all}}
	if one := 1; f.Required {
		p.MinItems = &one
	}
	return p, suggest(f, p)
}

// described returns the text below a field.
func described(f *events.Field) string {
	parts := []string{f.Help}
	if f.Placeholder != "" {
		parts = append(parts, f.Placeholder)
	}
	if text, err := f.Example.MarshalJSON(); err == nil && !f.Example.IsNull() {
		parts = append(parts, "For example: "+strings.Trim(string(text), `"`))
	}
	return sanitize.Lines(strings.TrimSpace(strings.Join(parts, "\n")))
}

// answerOf returns the values of a client's response, without empty ones. It refuses with INVALID_ANSWER all but plain
// data.
func answerOf(fields []events.Field, content map[string]any) (values, error) {
	required := map[string]bool{}
	for _, f := range fields {
		required[f.Name] = f.Required
	}
	given := values{}
	for name, v := range content {
		if v == nil || v == "" && !required[name] {
			continue
		}
		plain, ok := plainValue(v)
		if !ok {
			e := parley.Refuse(parley.InvalidAnswer, "%.100q: want plain data", name)
			e.Fields = map[string]string{name: "want plain data"}
			return nil, e
		}
		given[name] = plain
	}
	return given, nil
}

// plainValue returns a value of a client's response, and reports whether it is plain data.
func plainValue(v any) (capabilities.Value, bool) {
	if !isPlain(v) {
		return capabilities.Value{}, false
	}
	text, err := json.Marshal(v)
	if err != nil {
		return capabilities.Value{}, false
	}
	plain, err := capabilities.ParseJSON(text)
	return plain, err == nil
}

func isPlain(v any) bool {
	switch v := v.(type) {
	case string, bool, float64, json.Number:
		return true
	case []any:
		for _, e := range v {
			if _, ok := e.(string); !ok {
				return false
			}
		}
		return true
	}
	return false
}
