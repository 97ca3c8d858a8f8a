package editor

import (
	"testing"

	"parley/actors/view"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/form/formtest"
)

// An editor shows a field of each type: one choice as a request for permission, a secret not at all.
func TestEachFieldTypeIsAsked(t *testing.T) {
	for _, f := range formtest.EachType() {
		asks := form.ControlOf(&f)
		e := view.Message{Type: formType, Fields: []events.Field{f}}
		if options, ok := choicesOf(e); ok != (asks == form.Choice) || ok && len(options) != len(f.Options) {
			t.Errorf("%s: its choices are %v", f.Name, options)
		}
		if hasSecret(e) != (asks == form.Secret) {
			t.Errorf("%s is a secret: %v", f.Name, hasSecret(e))
		}
	}
}
