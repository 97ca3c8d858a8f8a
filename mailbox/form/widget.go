package form

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Widget is one way to answer a prompt: buttons, confirm, select, radio, checkbox or options. The last is a radio, or
// with Several a checkbox, and takes an answer in other words too. Without options it takes any text.
type Widget struct {
	Type    events.FieldType
	Label   string
	Options []WidgetOption
	Default capabilities.Value // Null for none
	Several bool               // more than one option may be chosen
	Other   bool               // an answer in other words is taken too
}

// WidgetOption is one choice of a widget. In JSON it is its label alone, or an object with the members.
type WidgetOption struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// UnmarshalJSON parses a label, or an object.
func (o *WidgetOption) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &o.Label)
	}
	type object WidgetOption
	return json.Unmarshal(text, (*object)(o))
}

// MarshalJSON returns the label alone for an option without a description.
func (o WidgetOption) MarshalJSON() ([]byte, error) {
	if o.Description == "" {
		return json.Marshal(o.Label)
	}
	type object WidgetOption
	return json.Marshal(object(o))
}

// optionsWidget is the widget that leaves the kind of control to the client.
const optionsWidget events.FieldType = "options"

// An answer in other words is the option Other, with the words in a field of its own.
const (
	OtherOption = "Other"
	OtherSuffix = "_other" // of the name of the field with the words
	otherHelp   = "in words of your own"
)

// WidgetFields returns the fields for the widgets of a prompt: value, value2, value3 and so on, each followed by the
// field for other words if the widget takes them. Without widgets it returns one for yes or no. It refuses with
// INVALID_FORM an unknown widget.
func WidgetFields(widgets []Widget) ([]events.Field, error) {
	if len(widgets) == 0 {
		widgets = []Widget{{Type: events.Confirm}}
	}
	fields := make([]events.Field, 0, len(widgets))
	for i, w := range widgets {
		f, err := w.field(i + 1)
		if err != nil {
			return nil, err
		}
		f.Required = len(widgets) == 1
		if !w.Other && w.Type != optionsWidget || len(f.Options) == 0 {
			fields = append(fields, f)
			continue
		}
		f.Options = append(f.Options, events.Option{Value: OtherOption, Description: otherHelp})
		fields = append(fields, f, events.Field{
			Name: f.Name + OtherSuffix, Label: OtherOption, Type: events.Text, Help: "The answer " + otherHelp + ", or a remark on the choice",
		})
	}
	return fields, nil
}

// field returns the field of the widget at a position, without the option Other.
func (w Widget) field(position int) (events.Field, error) {
	f := events.Field{Name: "value", Label: w.Label, Type: w.Type, Default: w.Default}
	if position > 1 {
		f.Name = fmt.Sprintf("value%d", position)
	}
	if w.Type == optionsWidget {
		f.Type = events.Radio
		if len(w.Options) == 0 {
			f.Type = events.Text
			return f, nil
		}
	}
	t := TypeOf(f.Type)
	if t == nil || !t.Widget {
		return f, parley.Refuse(parley.InvalidForm, "widget %d: there is no widget %s", position, parley.Quoted(string(w.Type), 40))
	}
	if w.Several {
		f.Type = events.Checkbox
	}
	if len(w.Options) == 0 {
		for _, o := range t.Given {
			w.Options = append(w.Options, WidgetOption{Label: o.Value})
		}
	}
	if f.Type == events.Checkbox && len(w.Options) == 0 {
		return f, parley.Refuse(parley.InvalidForm, "widget %d: a checkbox needs options", position)
	}
	for _, o := range w.Options {
		if o.Label == OtherOption && (w.Other || w.Type == optionsWidget) {
			continue // it is added with a field for the words
		}
		f.Options = append(f.Options, events.Option{Value: o.Label, Description: o.Description})
	}
	return f, nil
}

// FieldWidgets returns the widgets for fields.
func FieldWidgets(fields []events.Field) []Widget {
	widgets := make([]Widget, 0, len(fields))
	for i, f := range fields {
		if i > 0 && TakesOther(fields, i-1) {
			continue // the widget before has it
		}
		w := Widget{Type: f.Type, Label: f.Label, Default: f.Default, Other: TakesOther(fields, i)}
		for _, o := range f.Options {
			if !w.Other || o.Value != OtherOption {
				w.Options = append(w.Options, WidgetOption{Label: o.Value, Description: o.Description})
			}
		}
		widgets = append(widgets, w)
	}
	return widgets
}

// TakesOther reports whether the field at an index is followed by the field for an answer in other words.
func TakesOther(fields []events.Field, i int) bool {
	if i+1 >= len(fields) || fields[i+1].Name != fields[i].Name+OtherSuffix || fields[i+1].Type != events.Text {
		return false
	}
	return question{Field: &fields[i]}.hasOption(OtherOption)
}

// isOther reports whether a choice is, or has, the option for an answer in other words.
func isOther(choice capabilities.Value) bool {
	isIt := func(v capabilities.Value) bool {
		one, _ := v.AsString()
		return one == OtherOption
	}
	several, _ := choice.AsList()
	return isIt(choice) || slices.ContainsFunc(several, isIt)
}

// AddOther adds an answer in other words to values, beside the options of the field that were chosen.
func AddOther(values map[string]capabilities.Value, f events.Field, chosen []string, words string) {
	values[f.Name] = capabilities.String(OtherOption)
	if ControlOf(&f) == Choices {
		values[f.Name] = capabilities.Strings(append(chosen, OtherOption)...)
	}
	values[f.Name+OtherSuffix] = capabilities.String(words)
}

// WidgetAnswer returns the answer to the widget whose field has a name: the choice, with the other words in the place of
// Other. It returns Null for the field of the other words, if there is a choice too.
func WidgetAnswer(name string, values map[string]capabilities.Value) capabilities.Value {
	if of, ok := strings.CutSuffix(name, OtherSuffix); ok && !values[of].IsNull() {
		return capabilities.Null()
	}
	choice, said := values[name], values[name+OtherSuffix]
	words, _ := said.AsString()
	if words == "" {
		return choice
	}
	if list, several := choice.AsList(); several {
		chosen := make([]capabilities.Value, 0, len(list)+1)
		for _, v := range list {
			if s, _ := v.AsString(); s != OtherOption {
				chosen = append(chosen, v)
			}
		}
		return capabilities.List(append(chosen, said)...)
	}
	if one, _ := choice.AsString(); one != OtherOption {
		return capabilities.String(one + " (" + words + ")") // a remark
	}
	return said
}
