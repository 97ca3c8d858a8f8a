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

// say prints a result: doc as one line of JSON, or what text says.
func (env *environment) say(doc any, text func() string) error {
	if env.options.json {
		return env.sayJSON(doc)
	}
	s := text()
	if s == "" {
		return nil
	}
	_, err := fmt.Fprintln(env.stdout, s)
	return err
}

// sayJSON prints a document on one line.
func (env *environment) sayJSON(doc any) error {
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

// envelope is a message as the node sends it. Values stay as they are in JSON: one that is sealed can be
// shown, but is no value here.
type envelope struct {
	view.Message
	Fields  []interview.Field          `json:"fields"`
	Edges   map[string]json.RawMessage `json:"edges"`
	Outcome *outcome                   `json:"outcome"`
}

// outcome is how a form ended, as the node sends it.
type outcome struct {
	view.Outcome
	Values json.RawMessage `json:"values"`
}

// values gives the answer's fields, in the form's order.
func (o *outcome) values() []named {
	var record map[string]json.RawMessage
	if err := json.Unmarshal(o.Values, &record); err != nil {
		return nil
	}
	var list []named
	for _, name := range o.Order {
		if v, ok := record[name]; ok {
			list = append(list, named{name, v})
			delete(record, name)
		}
	}
	return append(list, sorted(record)...)
}

// answerText is the answer, "name: value" a line.
func (o *outcome) answerText() string {
	record := o.values()
	if record == nil && len(o.Values) > 0 {
		return valueText(o.Values)
	}
	return lines(record)
}

// requestText is what was given for a request.
func (o *outcome) requestText() string {
	record := o.values()
	if len(record) == 1 && record[0].name == "value" {
		return valueText(record[0].value)
	}
	return o.answerText()
}

// findApproval is a value with its name.
type named struct {
	name  string
	value json.RawMessage
}

func lines(record []named) string {
	text := make([]string, len(record))
	for i, n := range record {
		text[i] = terminal.Visible(n.name) + ": " + valueText(n.value)
	}
	return strings.Join(text, "\n")
}

// valueText is a value on one line: text as it is, references as locators, what is sealed masked, and
// everything else as JSON.
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
