package gateway

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
	"parley/mailbox"
	"parley/mailbox/form"
)

// widget is a field as a form draws it.
type widget struct {
	events.Field
	ID      string   // of its control
	Control string   // under which name it is sent: never one of the asker's choosing
	Kind    string   // how it is drawn
	Shown   string   // its label
	Values  []string // what stands in it
	Choices []choice
	Lone    bool // a press of one of its buttons answers the form
	Sure    bool // its first choice stands where none was made
	Sample  string
	Wrong   string
	Hidden  string // its default, if that has characters that do not show themselves
	Spec    string // what the page's own check reads
}

// choice is one way to answer.
type choice struct {
	ID, Value, Label, Description string
	Chosen                        bool
	Says                          string // the control whose choice Description repeats, if it does
}

// The ways to draw a field that are not the names of types.
const (
	drawSwitch  = "switch"  // a checkbox of its own
	drawChecks  = "checks"  // any number of choices
	drawRadios  = "radios"  // one choice
	drawButtons = "buttons" // one choice, side by side
)

func drawnAs(f events.Field) string {
	switch f.Type {
	case "":
		return string(events.Text)
	case events.Checkbox:
		if len(f.Options) == 0 {
			return drawSwitch
		}
		return drawChecks
	case events.Multiselect:
		return drawChecks
	case events.Radio:
		return drawRadios
	case events.Buttons, events.Confirm:
		return drawButtons
	}
	return string(f.Type)
}

// widgets draws a form's fields: with their defaults, or with what someone tried.
func widgets(key string, fields []events.Field, t *tried) []widget {
	drawn := make([]widget, len(fields))
	for i, f := range fields {
		w := widget{
			Field: f, ID: key + "-" + strconv.Itoa(i), Control: control(i), Kind: drawnAs(f), Shown: cmp.Or(f.Label, f.Name),
			Values: defaults(f), Sample: f.Example.Text(), Spec: spec(f),
		}
		w.Lone = len(fields) == 1 && w.Kind == drawButtons
		if f.Example.IsNull() {
			w.Sample = ""
		}
		if len(w.Values) == 1 && sanitize.Lines(w.Values[0]) != strings.ReplaceAll(w.Values[0], "\r\n", "\n") {
			w.Hidden = sanitize.Lines(w.Values[0])
		}
		if t != nil {
			w.Wrong, w.Values = t.fields[f.Name], t.said(f)
		}
		w.Choices = w.choices()
		drawn[i] = w
	}
	return drawn
}

// decisions draws an approval's fields: what there is to say first, and then the buttons that decide. Of the rules that
// it offers the first stands until another is chosen.
func decisions(drawn []widget) []widget {
	for i := range drawn {
		drawn[i].Sure = drawn[i].Kind == string(events.Select)
	}
	slices.SortStableFunc(drawn, func(a, b widget) int {
		return cmp.Compare(strings.Count(a.Kind, drawButtons), strings.Count(b.Kind, drawButtons))
	})
	last := &drawn[len(drawn)-1]
	if last.Kind == drawButtons {
		last.Lone = true
		last.Choices = last.choices()
		sayRule(last, drawn[:len(drawn)-1])
	}
	return drawn
}

// sayRule has the buttons that make a rule say which. Where there is a choice, a script says what is chosen.
func sayRule(decision *widget, others []widget) {
	says, control := mailbox.OffersOf(nil)[0], ""
	for _, w := range others {
		if w.Sure {
			says, control = "the rule chosen above", w.Control
		}
	}
	for i := range decision.Choices {
		if c := &decision.Choices[i]; c.Value == mailbox.Always || c.Value == mailbox.Never {
			c.Description, c.Says = says, control
		}
	}
}

func control(i int) string { return "f" + strconv.Itoa(i) }

// said is what was tried for a field. What is secret is not said again.
func (t *tried) said(f events.Field) []string {
	var values []string
	for _, text := range t.texts {
		if text.Name == f.Name && f.Type != events.Secret {
			values = append(values, text.Text)
		}
	}
	return values
}

// defaults gives the texts that stand for a field's default.
func defaults(f events.Field) []string {
	if f.Default.IsNull() {
		return nil
	}
	if l, ok := f.Default.AsList(); ok && (f.Type == events.Multiselect || f.Type == events.Checkbox) {
		texts := make([]string, len(l))
		for i, v := range l {
			texts[i] = v.Text()
		}
		return texts
	}
	return []string{f.Default.Text()}
}

// choices are a field's options. Who need not answer may choose not to, also after having chosen.
func (w widget) choices() []choice {
	var all []choice
	add := func(value, label, description string, chosen bool) {
		all = append(all, choice{
			ID: fmt.Sprintf("%s-%d", w.ID, len(all)), Value: value, Label: label, Description: description, Chosen: chosen,
		})
	}
	for _, o := range w.Options {
		add(o.Value, cmp.Or(o.Label, o.Value), o.Description, slices.Contains(w.Values, o.Value))
	}
	if !w.Required && !w.Lone && (w.Kind == drawRadios || w.Kind == drawButtons) {
		add("", "No answer", "", len(w.Values) == 0 || w.Values[0] == "")
	}
	return all
}

// Text is what stands in a control for text.
func (w widget) Text() string {
	if len(w.Values) == 0 {
		return ""
	}
	return w.Values[0]
}

// Advice is its help as a page shows it.
func (w widget) Advice() template.HTML { return markdown(w.Help) }

// IsGroup reports whether the field is several controls, which a legend names.
func (w widget) IsGroup() bool {
	return w.Kind == drawChecks || w.Kind == drawRadios || w.Kind == drawButtons
}

// Describes lists the elements that say more about the field.
func (w widget) Describes() string {
	ids := []string{}
	if w.Help != "" || w.Sample != "" || w.Hidden != "" {
		ids = append(ids, w.ID+"-help")
	}
	return strings.Join(append(ids, w.ID+"-wrong"), " ")
}

// spec is what of a field the page's own check reads: what a person would see wrong, before it is sent.
func spec(f events.Field) string {
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
		return "{}" // the node checks it in any case
	}
	return string(text)
}

// texts reads what a plain HTML form sends. Every field of it is sent, so that an emptied one is not taken for its
// default.
func texts(fields []events.Field, sent map[string][]string) []form.Text {
	var all []form.Text
	for i, f := range fields {
		values := sent[control(i)]
		switch {
		case drawnAs(f) == drawSwitch:
			values = []string{strconv.FormatBool(slices.Contains(values, "true"))}
		case len(values) == 0:
			values = []string{""}
		}
		for _, v := range values {
			all = append(all, form.Text{Name: f.Name, Text: strings.ReplaceAll(v, "\r\n", "\n")})
		}
	}
	return all
}
