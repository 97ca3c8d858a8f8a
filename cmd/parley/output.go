package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/interview"
	"parley/cmd/parley/terminal"
)

// print prints a result: doc as one line of JSON, or its text.
func (env *environment) print(doc any, text func() string) error {
	if env.options.json {
		return env.printJSON(doc)
	}
	s := text()
	if s == "" {
		return nil
	}
	_, err := fmt.Fprintln(env.stdout, s)
	return err
}

// printJSON prints a document on one line, or as YAML.
func (env *environment) printJSON(doc any) error {
	raw, ok := doc.(json.RawMessage)
	if !ok {
		var buf bytes.Buffer
		enc := json.NewEncoder(&buf)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(doc); err != nil {
			return err
		}
		raw = buf.Bytes()
	}
	if env.options.yaml {
		text, err := terminal.YAML(raw)
		if err != nil {
			return err
		}
		_, err = io.WriteString(env.stdout, text)
		return err
	}
	_, err := fmt.Fprintf(env.stdout, "%s\n", terminal.JSON(bytes.TrimSpace(raw)))
	return err
}

// envelope is a message as the node sends it. Its values stay JSON: a sealed one can be shown, but is no value here.
type envelope struct {
	view.Message
	Fields  []interview.Field          `json:"fields"`
	Edges   map[string]json.RawMessage `json:"edges"`
	Outcome *outcome                   `json:"outcome"`
}

// outcome is the outcome of a form as the node sends it.
type outcome struct {
	view.Outcome
	Values json.RawMessage `json:"values"`
}

// UnmarshalJSON reads an outcome, and keeps the text of its values.
func (o *outcome) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &o.Outcome); err != nil {
		return err
	}
	shown := struct {
		Values json.RawMessage `json:"values"`
	}{}
	if err := json.Unmarshal(b, &shown); err != nil {
		return err
	}
	o.Values = shown.Values
	return nil
}

// values returns the answer's values, in the order of the form's fields.
func (o *outcome) values() []namedValue {
	var record map[string]json.RawMessage
	if err := json.Unmarshal(o.Values, &record); err != nil {
		return nil
	}
	var list []namedValue
	for _, name := range o.Order {
		if v, ok := record[name]; ok {
			list = append(list, namedValue{name, v})
			delete(record, name)
		}
	}
	return append(list, sorted(record)...)
}

// answerText returns the answer, "name: value" a line.
func (o *outcome) answerText() string {
	record := o.values()
	if record == nil && len(o.Values) > 0 {
		return valueText(o.Values)
	}
	return lines(record)
}

// requestText returns the capability that was given for a request.
func (o *outcome) requestText() string {
	record := o.values()
	if len(record) == 1 && record[0].name == "value" {
		return valueText(record[0].value)
	}
	return o.answerText()
}

// namedValue is a value with its name.
type namedValue struct {
	name  string
	value json.RawMessage
}

func lines(record []namedValue) string {
	text := make([]string, len(record))
	for i, n := range record {
		text[i] = terminal.Visible(n.name) + ": " + valueText(n.value)
	}
	return strings.Join(text, "\n")
}

// valueText returns a value on one line. Texts stay as they are, references become locators, sealed values are
// masked, and other values are JSON.
func valueText(raw json.RawMessage) string {
	v, err := capabilities.ParseJSON(raw)
	if err != nil {
		if isSealed(raw) {
			return capabilities.Sealed(nil).Text()
		}
		return terminal.Visible(string(raw))
	}
	if _, isRef := v.AsRef(); isRef {
		return terminal.Visible(v.Text())
	}
	located, err := v.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		if _, isRef := leaf.AsRef(); isRef {
			return capabilities.String(leaf.Text()), nil
		}
		return leaf, nil
	})
	if err != nil {
		return terminal.Visible(v.Text())
	}
	return terminal.Visible(located.Text())
}

func isSealed(raw json.RawMessage) bool {
	var mark struct {
		Sealed bool `json:"$sealed"`
	}
	return json.Unmarshal(raw, &mark) == nil && mark.Sealed
}
