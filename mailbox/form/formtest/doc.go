// Package formtest has a field of each type, for tests of what draws, reads or translates fields: each has to know every
// row of form.Types.
package formtest

import (
	"parley/events"
	"parley/mailbox/form"
)

// EachType returns fields of each type, as a compiled form has them: without options and with two, where the type takes
// these. Their names tell their types.
func EachType() []events.Field {
	var all []events.Field
	for _, row := range form.Types {
		if row.Takes != form.NeedsOptions {
			all = append(all, events.Field{Name: "plain-" + string(row.Name), Type: row.Name, Options: row.Given})
		}
		if row.Takes != form.NoOptions {
			all = append(all, events.Field{Name: "options-" + string(row.Name), Type: row.Name, Options: []events.Option{{Value: "a"}, {Value: "b"}}})
		}
	}
	return all
}
