package mailbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// MaxFieldsJSON is how many bytes of JSON ParseFields reads.
const MaxFieldsJSON = 512 << 10

// ParseFields reads a JSON list of field definitions. Nothing in them is guessed at: a key that is not
// known, stands twice or has a value of another type is refused; null is the same as leaving the key out.
// It refuses with INVALID_FORM, naming every wrong field, and with TOO_LARGE. What the fields mean, Compile checks.
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
		w      FieldErrors
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
		return parley.Refuse(parley.InvalidForm, "the fields are not JSON: %s, at byte %d", shown(s.Error(), 80), s.Offset)
	}
	return parley.Refuse(parley.InvalidForm, "want a JSON list of fields").WithHint(`as in [{"name":"port","label":"Port","type":"number"}]`)
}

// reader puts the value of one key where it belongs, or says what it wanted.
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

// readObject reads an object by its keys and says all that is wrong with it.
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
		key, _ := tok.(string) // the decoder gives nothing else in this place
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return append(problems, "not JSON")
		}
		read, known := keys[key]
		switch {
		case !known:
			problems = append(problems, "unknown key "+quoted(key, 40))
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
