package web

import (
	"strings"
	"testing"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// fragment returns the HTML of a card.
func fragment(t *testing.T, c card) string {
	t.Helper()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	html, err := s.fragment(c)
	if err != nil {
		t.Fatal(err)
	}
	return html
}

func TestApprovalsShowNoMarkdown(t *testing.T) {
	c := card{Message: view.Message{Type: string(events.Approval), Number: 1, Title: "bash", Description: "echo *a*\n\n**b**", Date: capabilities.At(time.Now())}}
	if html := fragment(t, c); !strings.Contains(html, "<p class=\"context input\">echo *a*\n\n**b**</p>") {
		t.Error(html)
	}
	if c.Title = ""; c.Heading() != c.Description || c.Context() != "" {
		t.Errorf("an approval is taken apart: %q, %q", c.Heading(), c.Context())
	}
}

// Whatever an agent writes, and wherever it is shown, it is text: no markup, and no characters that do not show.
func TestForeignTextIsEscaped(t *testing.T) {
	const evil = "<script>x</script>\u202e\u200b"
	field := func(kind events.FieldType) events.Field {
		return events.Field{
			Name: evil, Label: evil, Type: kind, Help: evil, Placeholder: evil,
			Default: capabilities.String(evil), Example: capabilities.String(evil), Options: []events.Option{{Value: evil, Label: evil, Description: evil}},
		}
	}
	m := view.Message{
		Type: "form", Number: 1, Date: capabilities.At(time.Now()), FromName: evil, ToName: evil, Title: evil, Description: evil, Text: evil,
		AnswerNeeded: true, Edges: map[string]capabilities.Value{evil: capabilities.String(evil)},
	}
	for _, kind := range []events.FieldType{
		"", events.Text, events.Textarea, events.Number, events.Checkbox, events.Select, events.Multiselect, events.Radio, events.Buttons,
		events.Confirm, events.Date, events.Secret, events.Capability,
	} {
		m.Fields = append(m.Fields, field(kind))
	}
	name := func(capabilities.Ref) string { return evil }
	waiting := m
	refused := &refusedAnswer{Wrong: evil, Fields: map[string]string{evil: evil}}
	answered := m
	answered.AnswerNeeded = false
	answered.Outcome = &view.Outcome{
		Status: view.StatusAnswered, Note: evil, ByName: evil, Values: capabilities.Record(map[string]capabilities.Value{evil: capabilities.String(evil)}),
	}
	request, approval := waiting, waiting
	request.Type, approval.Type = "request", string(events.Approval)
	message := view.Message{Type: "message", Number: 2, Date: m.Date, FromName: evil, Text: evil, Edges: m.Edges}
	for what, c := range map[string]card{
		"waiting":  newCard("", evil, waiting, nil, name),
		"refused":  newCard("", evil, waiting, refused, name),
		"answered": newCard("", evil, answered, nil, name),
		"request":  newCard("", evil, request, nil, name),
		"approval": newCard("", evil, approval, nil, name),
		"message":  newCard("", evil, message, nil, name),
	} {
		html := fragment(t, c)
		if strings.Contains(html, "<script") {
			t.Errorf("%s: markup of an agent stands in %s", what, html)
		}
		if !strings.Contains(html, "&lt;script&gt;") {
			t.Errorf("%s: the text is not shown", what)
		}
	}
}
