package slack

import (
	"slices"
	"testing"

	slackapi "github.com/slack-go/slack"

	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/form/formtest"
)

// A dialog has an element for a field of each type, but for those that are left to the page.
func TestEachFieldTypeHasAnElement(t *testing.T) {
	t.Parallel()
	onPage := []form.Control{form.Secret, form.Date, form.Reference, form.File}
	for _, f := range formtest.EachType() {
		if element, ok := elementOf(f).(*slackapi.URLTextInputBlockElement); ok != (f.Type == events.URL) {
			t.Errorf("%s: %+v", f.Name, element)
		}
		if left := elementOf(f) == nil; left != slices.Contains(onPage, form.ControlOf(&f)) {
			t.Errorf("%s: it is left to the page: %v", f.Name, left)
		}
	}
}
