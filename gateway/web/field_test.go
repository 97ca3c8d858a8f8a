package web

import (
	"strings"
	"testing"

	"parley/actors/view"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/form/formtest"
)

// The page has a control for a field of each type, which sends what the field takes.
func TestEachFieldTypeIsDrawn(t *testing.T) {
	t.Parallel()
	shapes := map[string]string{
		"textarea": "<textarea ", drawSwitch: `type="checkbox"`, drawChecks: `type="checkbox"`, form.Menu: "<select ", form.Radios: `type="radio"`, form.Buttons: `type="radio"`,
	}
	for _, f := range formtest.EachType() {
		more := events.Field{Name: "more"}
		html := fragment(t, newCard("", "k", view.Message{Type: "form", Number: 1, AnswerNeeded: true, Fields: []events.Field{f, more}}, nil, nil))
		kind := drawnAs(f)
		want := shapes[kind]
		if want == "" {
			want = ` type="` + form.TypeOf(f.Type).Input + `"`
		}
		_, html, _ = strings.Cut(html, `data-kind="`+kind+`"`)
		html, _, _ = strings.Cut(html, `id="k-0-wrong"`)
		if kind == "" || !strings.Contains(html, want) || !strings.Contains(html, `name="f0"`) {
			t.Errorf("%s is drawn as %q, without %s: %s", f.Name, kind, want, html)
		}
	}
}
