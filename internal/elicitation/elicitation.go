package elicitation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// Schema is a requested schema.
type Schema struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Properties  json.RawMessage `json:"properties"`
	Required    []string        `json:"required"`
}

// property is a requested value: a string, a number, a boolean, or a list of choices.
type property struct {
	Type        string             `json:"type"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Default     capabilities.Value `json:"default"`
	Format      string             `json:"format"`
	Items       *choices           `json:"items"`
	choices
}

// choices are the options of a property.
type choices struct {
	Enum      []string `json:"enum"`
	EnumNames []string `json:"enumNames"`
	OneOf     []choice `json:"oneOf"`
	AnyOf     []choice `json:"anyOf"`
}

type choice struct {
	Const       string `json:"const"`
	Title       string `json:"title"`
	Description string `json:"description"`
}

// Content returns the values of an answer, by their fields. Fields that were left empty are not among them. Numbers stay
// as they were given.
func Content(values []byte) (map[string]json.RawMessage, error) {
	var content map[string]json.RawMessage
	if err := json.Unmarshal(values, &content); err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	maps.DeleteFunc(content, func(_ string, v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" })
	return content, nil
}

// Fields returns a field for each property, in their order.
func (s *Schema) Fields() ([]events.Field, error) {
	dec := json.NewDecoder(bytes.NewReader(s.Properties))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return nil, fmt.Errorf("a form has properties")
	}
	var fields []events.Field
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var schema json.RawMessage
		if err := dec.Decode(&schema); err != nil {
			return nil, err
		}
		f, err := fieldFor(name.(string), schema)
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", name, err)
		}
		f.Required = slices.Contains(s.Required, f.Name)
		fields = append(fields, f)
	}
	return fields, nil
}

// fieldFor returns the field of a property.
func fieldFor(name string, schema json.RawMessage) (events.Field, error) {
	var p property
	if err := json.Unmarshal(schema, &p); err != nil {
		return events.Field{}, err
	}
	f := events.Field{Name: name, Label: p.Title, Help: p.Description, Default: p.Default, Options: p.options()}
	is := p.Type
	switch is {
	case "integer":
		is = "number"
	case "array":
		if p.Items != nil {
			f.Options = p.Items.options()
		}
	}
	var known bool
	if f.Type, known = form.TypeFor(is, p.Format, len(f.Options) > 0); !known {
		return f, fmt.Errorf("there is no field for the type %.40q", p.Type)
	}
	switch form.ControlOf(&f) {
	case form.Line, form.Number, form.Choices:
		f.Pattern = constraints(schema)
	}
	return f, nil
}

func (c *choices) options() []events.Option {
	var options []events.Option
	for i, value := range c.Enum {
		o := events.Option{Value: value}
		if i < len(c.EnumNames) {
			o.Label = c.EnumNames[i]
		}
		options = append(options, o)
	}
	for _, one := range append(c.OneOf, c.AnyOf...) {
		options = append(options, events.Option{Value: one.Const, Label: one.Title, Description: one.Description})
	}
	return options
}

// constraining are the keywords of a schema that restrict an answer and refer to nothing else.
var constraining = []string{
	"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems",
}

// constraints returns the part of a schema that checks an answer, nil if there is none.
func constraints(schema json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(schema, &all) != nil {
		return nil
	}
	kept := map[string]json.RawMessage{}
	for _, word := range constraining {
		if v, ok := all[word]; ok {
			kept[word] = v
		}
	}
	if string(all["type"]) == `"integer"` {
		kept["type"] = all["type"]
	}
	if len(kept) == 0 {
		return nil
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil
	}
	return text
}
