package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

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

// MaxFieldsJSON bounds the JSON that ParseFields accepts, in bytes.
const MaxFieldsJSON = 512 << 10

// ParseFields parses a JSON list of field definitions. It refuses a key that is unknown, repeated or of another type. A
// null is the same as a missing key. It refuses with INVALID_FORM, naming every wrong field, and with TOO_LARGE.
// Compile checks the meaning of the fields.
func ParseFields(doc []byte) ([]events.Field, error) {
	if len(doc) > MaxFieldsJSON {
		return nil, parley.Refuse(parley.TooLarge, "%d bytes of fields are over the limit of %d", len(doc), MaxFieldsJSON)
	}
	if !utf8.Valid(doc) {
		return nil, parley.Refuse(parley.InvalidForm, "the fields are not valid UTF-8")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(doc, &list); err != nil || list == nil {
		return nil, notList(err)
	}
	if n := len(list); n > MaxFields {
		return nil, parley.Refuse(parley.TooLarge, "%d fields are over the limit of %d", n, MaxFields)
	}
	var (
		w      fieldErrors
		fields = make([]events.Field, len(list))
	)
	for i, raw := range list {
		problems := readObject(raw, fieldKeys(&fields[i]))
		for _, p := range problems {
			w.add(fieldKey(fields[i].Name, i), p)
		}
	}
	if err := w.err(parley.InvalidForm); err != nil {
		return nil, err
	}
	return fields, nil
}

func notList(err error) error {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return parley.Refuse(parley.InvalidForm, "the fields are not JSON: %s, at byte %d", parley.Shown(s.Error(), 80), s.Offset)
	}
	return parley.Refuse(parley.InvalidForm, "want a JSON list of fields").WithHint(`as in [{"name":"port","label":"Port","type":"number"}]`)
}

// reader stores the value of one key, or returns the type that it wants.
type reader func(raw json.RawMessage) error

func fieldKeys(f *events.Field) map[string]reader {
	return map[string]reader{
		"name":        textInto(&f.Name),
		"label":       textInto(&f.Label),
		"type":        textInto((*string)(&f.Type)),
		"required":    boolInto(&f.Required),
		"default":     valueInto(&f.Default),
		"placeholder": textInto(&f.Placeholder),
		"help":        textInto(&f.Help),
		"options":     optionsInto(&f.Options),
		"example":     valueInto(&f.Example),
		"pattern": func(raw json.RawMessage) error {
			f.Pattern = bytes.Clone(raw)
			return nil
		},
	}
}

func optionKeys(o *events.Option) map[string]reader {
	return map[string]reader{
		"value":       textInto(&o.Value),
		"label":       textInto(&o.Label),
		"description": textInto(&o.Description),
	}
}

// readObject parses an object by its keys. It returns all faults.
func readObject(raw json.RawMessage, keys map[string]reader) (problems []string) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return []string{"want an object"}
	}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil && err != io.EOF {
			return append(problems, "not JSON")
		}
		key, _ := tok.(string) // the decoder returns nothing else here
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return append(problems, "not JSON")
		}
		read, known := keys[key]
		switch {
		case !known:
			problems = append(problems, "unknown key "+parley.Quoted(key, 40))
		case seen[key]:
			problems = append(problems, key+" stands twice")
		case string(v) != "null":
			if err := read(v); err != nil {
				problems = append(problems, key+": "+err.Error())
			}
		}
		seen[key] = true
	}
	return problems
}

func textInto(s *string) reader {
	return func(raw json.RawMessage) error { return into(raw, s, "text") }
}

func boolInto(b *bool) reader {
	return func(raw json.RawMessage) error { return into(raw, b, "true or false") }
}

func into[T any](raw json.RawMessage, to *T, want string) error {
	if json.Unmarshal(raw, to) != nil {
		return errors.New("want " + want)
	}
	return nil
}

func valueInto(v *capabilities.Value) reader {
	return func(raw json.RawMessage) error {
		got, err := capabilities.ParseJSON(raw)
		if err != nil {
			return errors.New(parley.AsError(err).Message)
		}
		*v = got
		return nil
	}
}

func optionsInto(options *[]events.Option) reader {
	return func(raw json.RawMessage) error {
		var list []json.RawMessage
		if err := into(raw, &list, "a list of options"); err != nil {
			return err
		}
		if n := len(list); n > MaxOptions {
			return fmt.Errorf("%d are over the limit of %d", n, MaxOptions)
		}
		read := make([]events.Option, len(list))
		for i, raw := range list {
			if problems := readObject(raw, optionKeys(&read[i])); len(problems) > 0 {
				return fmt.Errorf("option %d: %s", i+1, problems[0])
			}
		}
		*options = read
		return nil
	}
}
