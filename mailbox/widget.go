package mailbox

import (
	"fmt"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Widget is one way to answer a prompt: buttons, confirm, select, radio or checkbox.
type Widget struct {
	Type    events.FieldType
	Label   string
	Options []string
	Default capabilities.Value // Null is none
}

// WidgetFields gives the fields for the widgets of a prompt: value, value2, value3 and so on; no widgets are a question of
// yes or no. It refuses with INVALID_FORM what is no widget.
func WidgetFields(widgets []Widget) ([]events.Field, error) {
	if len(widgets) == 0 {
		widgets = []Widget{{Type: events.Confirm, Options: []string{"Yes", "No"}}}
	}
	fields := make([]events.Field, len(widgets))
	for i, w := range widgets {
		f := events.Field{Name: "value", Label: w.Label, Type: w.Type, Required: len(widgets) == 1, Default: w.Default}
		if i > 0 {
			f.Name = fmt.Sprintf("value%d", i+1)
		}
		switch w.Type {
		case events.Buttons, events.Confirm, events.Select, events.Radio, events.Checkbox:
		default:
			return nil, parley.Refuse(parley.InvalidForm, "widget %d: there is no widget %s", i+1, quoted(string(w.Type), 40))
		}
		if w.Type == events.Checkbox && len(w.Options) == 0 {
			return nil, parley.Refuse(parley.InvalidForm, "widget %d: a checkbox needs options", i+1)
		}
		for _, o := range w.Options {
			f.Options = append(f.Options, events.Option{Value: o})
		}
		fields[i] = f
	}
	return fields, nil
}
