package mcp

import (
	"strings"
	"testing"

	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/form/formtest"
)

// A client draws a field of each type, or is told why not. Only a secret, a capability and a file are kept from clients.
func TestEachFieldTypeHasASchema(t *testing.T) {
	t.Parallel()
	for _, f := range formtest.EachType() {
		asks := form.ControlOf(&f)
		schema, misfit := flat([]events.Field{f}, true)
		if kept := asks == form.Secret || asks == form.Reference || asks == form.File; kept != (misfit != nil) {
			t.Errorf("%s: kept from clients: %v", f.Name, misfit != nil)
		}
		if misfit != nil {
			if why := whyMisfit(misfit); strings.Contains(why, "cannot express") {
				t.Errorf("%s: %s", f.Name, why)
			}
			continue
		}
		if p := schema.Properties[0]; asks != form.Any && p.Type != asks.JSON() || p.Format != form.TypeOf(f.Type).Format {
			t.Errorf("%s: %+v", f.Name, p.property)
		}
	}
}
