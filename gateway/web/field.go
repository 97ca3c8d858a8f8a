package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"parley/capabilities"
	"parley/events"
	"parley/gateway/sanitize"
	"parley/mailbox/form"
)

// widget is a field as a form draws it.
type widget struct {
	events.Field
	ID      string   // of its control
	Control string   // the name under which it is sent; never one that the asker chose
	Kind    string   // how it is drawn
	Shown   string   // its label
	Values  []string // its content
	Choices []choice
	Lone    bool // a press of one of its buttons answers the form
	Sure    bool // its first choice is selected if none was made
	Sample  string
	Wrong   string
	Hidden  string // its default with invisible characters shown; "" if it has none
	Other   bool   // it is followed by a field for an answer in other words
	Words   bool   // it is that field
	Give    *give  // of a field for something that the reader holds
	Spec    string // the data for the check of the page's script
}

// choice is an option of a field.
type choice struct {
	ID, Value, Label, Description string
	Chosen                        bool
	Says                          string // the control whose choice Description repeats; "" for none
	Past                          string // what was decided of the past calls that a rule covers; "" for none
	Tried                         *tried // the same in full; nil where it is not said
	Words                         string // all that the choice says, where it is repeated
}

// The ways to draw a field that need code of their own. One choice is drawn in the shape of its type.
const (
	drawSwitch = "switch" // a checkbox of its own
	drawChecks = "checks" // any number of choices

	drawCapability = "capability" // something that the reader holds
)

var draws = map[form.Control]string{
	form.Line: "text", form.Lines: "textarea", form.Number: "number", form.YesNo: drawSwitch, form.Choices: drawChecks, form.Date: "date",
	form.Secret: "secret", form.Reference: drawCapability, form.File: "file", form.Any: "text",
}

// drawnAs returns the way to draw a field.
func drawnAs(f events.Field) string {
	asks := form.ControlOf(&f)
	if asks == form.Choice {
		return form.TypeOf(f.Type).Shape
	}
	return draws[asks]
}

// drawFields returns the widgets of fields, with their defaults or with a refused answer.
func drawFields(key string, fields []events.Field, t *refusedAnswer) []widget {
	drawn := make([]widget, len(fields))
	for i, f := range fields {
		w := widget{
			Field: f, ID: key + "-" + strconv.Itoa(i), Control: control(i), Kind: drawnAs(f), Shown: cmp.Or(f.Label, f.Name),
			Values: defaults(f), Sample: f.Example.Text(), Spec: FieldSpec(f),
		}
		w.Other, w.Words = form.TakesOther(fields, i), i > 0 && drawn[i-1].Other
		w.Lone = len(fields) == 1 && w.Kind == form.Buttons
		if f.Example.IsNull() {
			w.Sample = ""
		}
		if len(w.Values) == 1 && sanitize.Lines(w.Values[0]) != strings.ReplaceAll(w.Values[0], "\r\n", "\n") {
			w.Hidden = sanitize.Lines(w.Values[0])
		}
		if t != nil {
			w.Wrong, w.Values = t.Fields[f.Name], t.said(f)
		}
		if w.Kind == drawCapability {
			if len(fields) == 1 && w.Shown == "Capability" { // of a request, which has no label of its own
				w.Shown = "What you give"
			}
			w.Give = &give{Control: w.Control}
			if t != nil {
				w.Give.Sent = t.Sent
			}
		}
		w.Choices = w.choices()
		drawn[i] = w
	}
	return drawn
}

func control(i int) string { return "f" + strconv.Itoa(i) }

// defaults returns a field's default as texts.
func defaults(f events.Field) []string {
	if f.Default.IsNull() {
		return nil
	}
	if l, ok := f.Default.AsList(); ok && form.ControlOf(&f) == form.Choices {
		texts := make([]string, len(l))
		for i, v := range l {
			texts[i] = v.Text()
		}
		return texts
	}
	return []string{f.Default.Text()}
}

// readTexts reads a plain HTML form. It returns a text for every field, so that an emptied field does not become its default.
func readTexts(fields []events.Field, sent map[string][]string) []events.FieldText {
	var all []events.FieldText
	for i, f := range fields {
		values := sent[control(i)]
		switch {
		case drawnAs(f) == drawSwitch:
			values = []string{strconv.FormatBool(slices.Contains(values, "true"))}
		case len(values) == 0:
			values = []string{""}
		}
		for _, v := range values {
			all = append(all, events.FieldText{Name: f.Name, Text: strings.ReplaceAll(v, "\r\n", "\n")})
		}
	}
	return all
}

// choices returns a field's options. One that is not required has an option for no answer.
func (w widget) choices() []choice {
	var all []choice
	add := func(value, label, description string, chosen bool) {
		all = append(all, choice{
			ID: fmt.Sprintf("%s-%d", w.ID, len(all)), Value: value, Label: label, Description: description, Chosen: chosen,
		})
	}
	for _, o := range w.Options {
		if w.Other && o.Value == form.OtherOption {
			o.Label = "Other…"
		}
		add(o.Value, cmp.Or(o.Label, o.Value), o.Description, slices.Contains(w.Values, o.Value))
	}
	if !w.Required && !w.Lone && (w.Kind == form.Radios || w.Kind == form.Buttons) {
		add("", "No answer", "", len(w.Values) == 0 || w.Values[0] == "")
	}
	return all
}

// InputType returns the type of the field's HTML input.
func (w widget) InputType() string {
	if t := form.TypeOf(w.Type); t != nil {
		return t.Input
	}
	return "text"
}

// Text returns the text in a control.
func (w widget) Text() string {
	if len(w.Values) == 0 {
		return ""
	}
	return w.Values[0]
}

// Advice returns the help of the field as HTML.
func (w widget) Advice() template.HTML { return markdown(w.Help) }

// IsGroup reports whether the field has several controls under a legend.
func (w widget) IsGroup() bool {
	return w.Kind == drawChecks || w.Kind == form.Radios || w.Kind == form.Buttons
}

// Describes returns the IDs of the elements that describe the field.
func (w widget) Describes() string {
	ids := []string{}
	if w.Help != "" || w.Sample != "" || w.Hidden != "" {
		ids = append(ids, w.ID+"-help")
	}
	return strings.Join(append(ids, w.ID+"-wrong"), " ")
}

// FieldSpec returns the part of a field that the page's script checks before an answer is sent, as JSON.
func FieldSpec(f events.Field) string {
	type option struct {
		Value string `json:"value"`
	}
	options := make([]option, len(f.Options))
	for i, o := range f.Options {
		options[i] = option{o.Value}
	}
	text, err := json.Marshal(struct {
		Name     string             `json:"name"`
		Type     events.FieldType   `json:"type,omitempty"`
		Required bool               `json:"required,omitempty"`
		Default  capabilities.Value `json:"default,omitzero"`
		Options  []option           `json:"options,omitempty"`
		Pattern  json.RawMessage    `json:"pattern,omitempty"`
	}{f.Name, f.Type, f.Required, f.Default, options, f.Pattern})
	if err != nil {
		return "{}" // the node checks the answer in any case
	}
	return string(text)
}
