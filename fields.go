package parley

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"parley/capabilities"
	"parley/events"
)

// Bounds of a form's fields.
const (
	MaxFields     = 256
	MaxOptions    = 1000      // of one field
	MaxFieldName  = 128       // characters
	MaxFieldsJSON = 512 << 10 // bytes of their JSON
)

// Fields are the definitions of a form's fields.
type Fields []events.Field

// UnmarshalJSON is ParseFields. A list in the plain spelling is read at once; null is no list.
func (f *Fields) UnmarshalJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var list []events.Field
	if dec.Decode(&list) == nil && (list != nil || string(text) == "null") {
		*f = list
		return nil
	}
	list, err := ParseFields(text)
	*f = list
	return err
}

// ParseFields parses a JSON list of field definitions. It refuses a key that is unknown, repeated or of another type. A
// null is the same as a missing key. It refuses with INVALID_FORM, naming every wrong field, and with TOO_LARGE.
// Compile checks the meaning of the fields.
func ParseFields(doc []byte) ([]events.Field, error) {
	if len(doc) > MaxFieldsJSON {
		return nil, Refuse(TooLarge, "%d bytes of fields are over the limit of %d", len(doc), MaxFieldsJSON)
	}
	if !utf8.Valid(doc) {
		return nil, Refuse(InvalidForm, "the fields are not valid UTF-8")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(doc, &list); err != nil || list == nil {
		return nil, notList(err)
	}
	if n := len(list); n > MaxFields {
		return nil, Refuse(TooLarge, "%d fields are over the limit of %d", n, MaxFields)
	}
	var (
		w      FieldErrors
		fields = make([]events.Field, len(list))
	)
	for i, raw := range list {
		problems := readObject(raw, fieldKeys(&fields[i]))
		for _, p := range problems {
			w.Add(FieldKey(fields[i].Name, i), p)
		}
	}
	if err := w.Err(InvalidForm); err != nil {
		return nil, err
	}
	return fields, nil
}

func notList(err error) error {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return Refuse(InvalidForm, "the fields are not JSON: %s, at byte %d", Shown(s.Error(), 80), s.Offset)
	}
	return Refuse(InvalidForm, "want a JSON list of fields").WithHint(`as in [{"name":"port","label":"Port","type":"number"}]`)
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
			problems = append(problems, "unknown key "+Quoted(key, 40))
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
			return errors.New(AsError(err).Message)
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

// FieldKey returns the name of a field for an error. It differs from the name if that is missing or cannot be shown.
func FieldKey(name string, i int) string {
	if name == "" {
		return fmt.Sprintf("field %d", i+1)
	}
	return Shown(name, MaxFieldName)
}
