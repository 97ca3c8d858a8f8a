package compat

import (
	"slices"
	"testing"

	"parley/mailbox/form"
)

// A question may limit texts, numbers and lists of choices, of whatever type they are.
func TestEachFieldTypeHasItsLimits(t *testing.T) {
	t.Parallel()
	one, half := 1, 0.5
	all := limits{MinLength: &one, MaxLength: &one, Pattern: "a", Min: &half, Max: &half, Step: &half, Integer: true, MinSelections: &one, MaxSelections: &one}
	for _, row := range form.Types {
		limited := slices.Contains([]form.Control{form.Line, form.Lines, form.Number, form.Choices}, row.Asks)
		if got := all.of(row.Name); limited != (got != limits{}) {
			t.Errorf("%q has the limits %+v", row.Name, got)
		}
	}
}
