package form

import (
	"bytes"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// HasPatterns reports whether any field has a pattern. Such fields are worth keeping compiled.
func HasPatterns(fields []events.Field) bool {
	return slices.ContainsFunc(fields, func(f events.Field) bool { return len(f.Pattern) > 0 })
}

// Secrets returns the names of the secret fields, whose values are sealed.
func Secrets(fields []events.Field) []string {
	var names []string
	for _, f := range fields {
		if ControlOf(&f) == Secret {
			names = append(names, f.Name)
		}
	}
	return names
}

// SameFields reports whether fields are equal to fields that were compiled.
func SameFields(fields, compiled []events.Field) bool {
	if len(fields) > 0 && len(fields) == len(compiled) && &fields[0] == &compiled[0] {
		return true
	}
	return slices.EqualFunc(fields, compiled, func(f, was events.Field) bool {
		makePlain(&f)
		return sameField(f, was)
	})
}

// AppendKey appends a key of fields to b. Fields have equal keys, whether they were compiled or not, if they are equal
// by SameFields.
func AppendKey(b []byte, fields []events.Field) []byte {
	for i := range fields {
		f := fields[i]
		makePlain(&f)
		b = appendTexts(b, f.Name, f.Label, string(f.Type), f.Placeholder, f.Help, string(f.Pattern))
		for j := range f.Options {
			o := &f.Options[j]
			b = appendTexts(b, o.Value, o.Label, o.Description)
		}
		for _, v := range []capabilities.Value{f.Default, f.Example} {
			if !v.IsNull() {
				b = appendTexts(b, v.Text())
			}
		}
	}
	return b
}

// appendTexts appends texts, each behind its length.
func appendTexts(b []byte, texts ...string) []byte {
	for _, t := range texts {
		n := len(t)
		b = append(append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), t...)
	}
	return b
}

// sameField reports whether two fields are equal.
func sameField(a, b events.Field) bool {
	return a.Name == b.Name && a.Label == b.Label && a.Type == b.Type && a.Required == b.Required && a.Default.Equal(b.Default) &&
		a.Placeholder == b.Placeholder && a.Help == b.Help && slices.Equal(a.Options, b.Options) && a.Example.Equal(b.Example) &&
		bytes.Equal(a.Pattern, b.Pattern)
}

// SplitField parses "name:label" as a required field for text. The label may hold colons. It refuses with
// INVALID_ARGUMENT.
func SplitField(arg string) (events.Field, error) {
	name, label, ok := strings.Cut(arg, ":")
	if !ok || name == "" {
		return events.Field{}, parley.Refuse(parley.InvalidArgument, `Invalid field format %.80q, expected "fieldName:label"`, arg)
	}
	return events.Field{Name: name, Label: label, Required: true}, nil
}
