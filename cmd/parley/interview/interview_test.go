package interview

import (
	"testing"

	"charm.land/huh/v2"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/form/formtest"
)

// A terminal asks for a field of each type with the widget for its kind of control, and remembers what was answered.
func TestEachFieldTypeHasAWidget(t *testing.T) {
	for _, f := range formtest.EachType() {
		asks, text, kept := form.ControlOf(&f), "a", capabilities.String("a")
		var fits bool
		asked := (&field{f}).question().widget
		if t, ok := asked.(*typed); ok {
			asked = t.Field
		}
		switch asked.(type) {
		case *huh.Confirm:
			fits = asks == form.YesNo
			text, kept = "true", capabilities.Bool(true)
		case *huh.Select[string]:
			fits = asks == form.Choice
		case *huh.MultiSelect[string]:
			fits = asks == form.Choices
			kept = capabilities.Strings("a")
		case *huh.Text:
			fits = asks == form.Lines
		case *huh.Input:
			fits = asks != form.YesNo && asks != form.Choice && asks != form.Choices && asks != form.Lines && asks != ""
			if asks == form.Secret {
				kept = capabilities.Null()
			}
		}
		if !fits {
			t.Errorf("%s is asked for by a %T", f.Name, asked)
		}
		again := []events.Field{f}
		Remember(again, []events.FieldText{{Name: f.Name, Text: text}})
		if !again[0].Default.Equal(kept) {
			t.Errorf("%s: %v is remembered", f.Name, again[0].Default.Text())
		}
	}
}
