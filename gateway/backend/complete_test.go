package backend

import (
	"testing"

	"parley/mailbox/form"
	"parley/mailbox/form/formtest"
)

// The shell completes the values of a field of each type that has a choice of them.
func TestEachFieldTypeHasItsCandidates(t *testing.T) {
	for _, f := range formtest.EachType() {
		want := len(f.Options)
		switch form.ControlOf(&f) {
		case form.Reference:
			continue // the names that the agent holds
		case form.YesNo:
			want = 2
		}
		if found, err := valueCandidates(t.Context(), nil, f, ""); err != nil || len(found) != want {
			t.Errorf("%s: %v, %v", f.Name, found, err)
		}
	}
}
