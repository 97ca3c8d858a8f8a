package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// Some clients give arguments as JSON text where the schema wants a list, an object, a number or a boolean: fields as "[…]",
// limit as "5". What is meant is plain, and the model behind such a client cannot give it otherwise. So it is read as what
// it says. Where a schema takes text, text stays as it is. Others have floating-point numbers alone, and write an integer as 5.0. JSON Schema
// calls that an integer.

// kinds is one or several types of JSON Schema.
type kinds []string

// UnmarshalJSON reads a type or a list of types.
func (k *kinds) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte{'['}) {
		return json.Unmarshal(b, (*[]string)(k))
	}
	*k = make(kinds, 1)
	return json.Unmarshal(b, &(*k)[0])
}

// shape is what a schema says of the types of a value and of its parts. Without types it takes any value.
type shape struct {
	Type       kinds             `json:"type"`
	Properties map[string]*shape `json:"properties"`
	Items      *shape            `json:"items"`
}

// read returns a value that fits the shape's types where it was given as JSON text, or as a number that is an integer. It reports whether that changed it.
// Other values stay as they are, to be refused.
func (s *shape) read(v any) (read any, changed bool) {
	if s == nil {
		return v, false
	}
	if text, ok := v.(string); ok && len(s.Type) > 0 && !slices.Contains(s.Type, "string") {
		inner, ok := valueIn(text)
		if !ok || !s.Type.take(inner) {
			return v, false
		}
		v, changed = inner, true
	}
	switch v := v.(type) {
	case json.Number:
		if n, ok := integer(v); ok && n != v && slices.Contains(s.Type, "integer") {
			return n, true
		}
	case map[string]any:
		for name, part := range v {
			if p, differs := s.Properties[name].read(part); differs {
				v[name], changed = p, true
			}
		}
	case []any:
		for i, part := range v {
			if p, differs := s.Items.read(part); differs {
				v[i], changed = p, true
			}
		}
	}
	return v, changed
}

// take reports whether a value is of one of the types, or null for an argument that is left out.
func (k kinds) take(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return slices.Contains(k, "boolean")
	case json.Number:
		_, whole := integer(v)
		return slices.Contains(k, "number") || slices.Contains(k, "integer") && whole
	case []any:
		return slices.Contains(k, "array")
	case map[string]any:
		return slices.Contains(k, "object")
	}
	return false
}

// integer returns an integer as its digits alone. One with a fraction or an exponent is read as the floating-point number that it is, as far
// as those have every integer.
func integer(n json.Number) (digits json.Number, ok bool) {
	if !strings.ContainsAny(n.String(), ".eE") {
		return n, true
	}
	const exact = 1 << 53
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > exact {
		return n, false
	}
	return json.Number(strconv.FormatInt(int64(f), 10)), true
}

// valueIn returns the value that a text means where no text is taken: the one of its JSON, a boolean as Python writes it, or
// null for nothing.
func valueIn(text string) (v any, ok bool) {
	switch text {
	case "":
		return nil, true
	case "True", "False":
		return text == "True", true
	}
	return valueOf(text)
}

// valueOf returns the one JSON value in a text.
func valueOf(text string) (v any, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if capabilities.Nesting([]byte(text)) > maxNesting || !json.Valid([]byte(text)) || d.Decode(&v) != nil {
		return nil, false
	}
	return v, true
}

// maxNesting bounds the JSON text in an argument. What is read is checked again with all arguments.
const maxNesting = 32

// checkNames refuses the first member that the shape of a value does not have, and says which there are: the model that reads this has the
// wrong name from another program's tool. The value is called name; "" is the arguments themselves.
func (s *shape) checkNames(name string, v any) error {
	if s == nil {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			part, known := s.Properties[member]
			if !known && s.Properties != nil {
				has := "there is no argument"
				if name != "" {
					has = name + " has no member"
				}
				return parley.Refuse(parley.InvalidArgument, "%s %s", has, parley.Quoted(member, 80)).
					WithHint("it takes %s", strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "))
			}
			if err := part.checkNames(member, v[member]); err != nil {
				return err
			}
		}
	case []any:
		for _, part := range v {
			if err := s.Items.checkNames(name, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// readArguments returns arguments with the values in place that were given as JSON text. Others it returns as they are.
func readArguments(schema, raw json.RawMessage) json.RawMessage {
	var s shape
	v, ok := valueOf(string(raw))
	if !ok || json.Unmarshal(schema, &s) != nil {
		return raw
	}
	v, changed := s.read(v)
	if !changed {
		return raw
	}
	if read, err := textOf(v); err == nil {
		return read
	}
	return raw
}

// checkNames refuses arguments with a name that the schema does not have.
func checkNames(schema, raw json.RawMessage) error {
	var s shape
	if v, ok := valueOf(string(raw)); ok && json.Unmarshal(schema, &s) == nil {
		return s.checkNames("", v)
	}
	return nil
}

// readValues replaces the values of an answer that were given as JSON text, by the types of the fields.
func readValues(fields []events.Field, values map[string]capabilities.Value) {
	for _, f := range fields {
		text, isText := values[f.Name].AsString()
		if !isText {
			continue
		}
		var s shape
		if is := form.ControlOf(&f).JSON(); is != "" {
			s.Type = kinds{is}
		}
		if _, changed := s.read(text); !changed {
			continue
		}
		if v, err := capabilities.ParseJSON([]byte(text)); err == nil {
			values[f.Name] = v
		}
	}
}
