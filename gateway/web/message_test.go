package web

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/call/calltest"
	"parley/mailbox/form"
)

// fragment returns the HTML of a card.
func fragment(t *testing.T, c card) string {
	t.Helper()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.templates.ExecuteTemplate(&b, "message", c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestApprovalsShowNoMarkdown(t *testing.T) {
	m := view.Message{Type: string(events.Approval), Number: 1, Permission: &parley.Permission{Tool: "bash", Input: "echo *a*\n\n**b**"}, Date: capabilities.At(time.Now())}
	c := newCard("", "", m, nil, nil)
	if html := fragment(t, c); !strings.Contains(html, "<p class=\"context input\">echo *a*\n\n**b**</p>") || strings.Contains(html, "<em>") || strings.Contains(html, "<strong>b") {
		t.Error(html)
	}
	if c.Context() != "" {
		t.Errorf("an approval is taken apart: %q", c.Context())
	}
}

// asSent matches the attributes and controls that carry a value as it is sent back.
var asSent = regexp.MustCompile(`(value|data-spec|data-as|data-says|href|action|name)="[^"]*"|<textarea[^<]*`)

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
		Route:    &view.Route{Reminded: 1, Steps: []view.RouteStep{{Name: evil, Cause: events.Escalated}, {Name: evil}}},
		Votes:    &view.Votes{Need: 2, Have: 1, Cast: []view.Vote{{ByName: evil, Note: evil, Outcome: events.VoteDeclined}}, Waiting: []view.Party{{Name: evil}}},
		Revision: 2, Amendment: &view.Amendment{At: capabilities.At(time.Now()), Note: evil, Changes: []string{evil}},
	}
	for _, row := range form.Types {
		m.Fields = append(m.Fields, field(row.Name))
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
	approval.Permission = &parley.Permission{Tool: evil, Input: evil, Folder: evil, Reason: evil, Part: evil}
	input := func(members map[string]any) view.Message {
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		m := view.Message{
			Type: string(events.Approval), Number: 1, Date: m.Date, Permission: &parley.Permission{Tool: evil, Input: string(text), Reason: evil, Part: evil}, AnswerNeeded: true,
			Fields: []events.Field{{Name: "decision", Type: events.Buttons, Options: []events.Option{{Value: "deny"}, {Value: "once"}}}, {Name: "reason", Type: events.Textarea}},
		}
		m.Fields = append(m.Fields, events.Field{Name: "rule", Type: events.Select, Options: []events.Option{{Value: "call", Label: "exactly this call, in /" + evil}, {Value: evil}}})
		return m
	}
	message := view.Message{Type: "message", Number: 2, Date: m.Date, FromName: evil, Text: evil, Edges: m.Edges}
	for what, c := range map[string]card{
		"waiting":  newCard("", evil, waiting, nil, name),
		"refused":  newCard("", evil, waiting, refused, name),
		"answered": newCard("", evil, answered, nil, name),
		"request":  newCard("", evil, request, nil, name),
		"approval": newCard("", evil, approval, nil, name),
		"message":  newCard("", evil, message, nil, name),
		"command":  newCard("", evil, input(map[string]any{"command": "sudo " + evil + " && rm '" + evil + "'", "description": evil}), nil, name),
		"edit":     newCard("", evil, input(map[string]any{"file_path": evil, "old_string": "a " + evil, "new_string": "b " + evil}), nil, name),
		"write":    newCard("", evil, input(map[string]any{"file_path": "/" + evil, "content": evil}), nil, name),
		"values":   newCard("", evil, input(map[string]any{evil: evil, "long": strings.Repeat(evil+"\n", 100)}), nil, name),
	} {
		html := fragment(t, c)
		if strings.Contains(html, "<script") {
			t.Errorf("%s: markup of an agent stands in %s", what, html)
		}
		for _, hidden := range []string{"\u202e", "\u200b"} {
			if rest := asSent.ReplaceAllString(html, ""); c.Approval != nil && strings.Contains(rest, hidden) {
				t.Errorf("%s: %q stands in %s", what, hidden, rest)
			}
		}
		if !strings.Contains(html, "&lt;script&gt;") {
			t.Errorf("%s: the text is not shown", what)
		}
	}
}

// TestOtherIsAnOptionCard draws a choice with Other, and the words for it as part of the choice.
func TestOtherIsAnOptionCard(t *testing.T) {
	t.Parallel()
	fields, err := form.WidgetFields([]form.Widget{
		{Type: events.Radio, Label: "Colour", Options: []form.WidgetOption{{Label: "red"}}, Other: true}, {Type: events.Confirm, Label: "Sure?"},
	})
	if err != nil {
		t.Fatal(err)
	}
	drawn := drawFields("k", fields, nil)
	if c := drawn[0].Choices[1]; c.Label != "Other…" || c.Value != form.OtherOption || c.Description == "" {
		t.Errorf("%+v", c)
	}
	if !drawn[1].Words || drawn[0].Words || drawn[2].Words || drawn[2].Other {
		t.Errorf("%+v", drawn)
	}
}

// TestVotesAreShown shows who has answered a form that needs several, and what has become of the reader's own answer.
func TestVotesAreShown(t *testing.T) {
	now := capabilities.At(time.Now())
	m := view.Message{
		Type: "form", Number: 1, Date: now, Description: "Deploy?", Received: true,
		Votes: &view.Votes{Need: 2, Have: 1, Own: view.VoteStands, Cast: []view.Vote{{ByName: "bob", Outcome: events.VoteDeclined, At: now, Note: "not today"}}, Waiting: []view.Party{{Name: "eve"}}},
	}
	html := fragment(t, newCard("", "", m, nil, nil))
	for _, want := range []string{"1 of 2 answered", "No answer yet", "eve", "Declined", "not today", `value="withdraw"`, "You answered · waiting for <bdi"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in %s", want, html)
		}
	}
	if state := newRow("", local{}, m, nil).State(); state != "◐ Voted · 1 of 2" {
		t.Errorf("in the list: %s", state)
	}
	own, to := capabilities.ID{ULID: [16]byte{1}}, capabilities.ID{ULID: [16]byte{2}}
	called := m
	called.Type, called.Permission, called.ForwardedTo = string(events.Approval), &parley.Permission{Tool: "Bash", Input: `{"command":"ls"}`}, []view.Forwarded{{Party: view.Party{ID: to, Name: "nora"}}}
	called.Votes = &view.Votes{Need: 2, Have: 1, Own: view.VoteStands, Cast: []view.Vote{{By: own, Outcome: "once", At: now}}}
	c := newCard("", "", called, nil, nil)
	c.Own = own
	if html := fragment(t, c); !strings.Contains(html, "You approved · waiting for <bdi") || strings.Contains(html, "Allowed") {
		t.Errorf("the first vote on a call: %s", html)
	}
	m.Votes.Own, m.AnswerNeeded = view.VoteVoid, true
	if html = fragment(t, newCard("", "", m, nil, nil)); !strings.Contains(html, "answer again") || strings.Contains(html, `value="withdraw"`) {
		t.Errorf("a void vote: %s", html)
	}
}

// TestHostileCallsAreShownOnPage draws calls that hide what they do.
func TestHostileCallsAreShownOnPage(t *testing.T) {
	t.Parallel()
	raw := regexp.MustCompile(`(?s)<details class="raw">.*?</details>|<dl class="digests">.*?</dl>|<textarea.*?</textarea>|<div class="notes">\s*</div>`)
	for _, c := range calltest.Hostile() {
		m := view.Message{Type: string(events.Approval), Number: 1, Date: capabilities.At(time.Now()), Permission: &parley.Permission{Tool: c.Tool, Input: c.Input, Folder: "/srv/shop"}, AnswerNeeded: true, Fields: []events.Field{
			{Name: "decision", Type: events.Buttons, Options: []events.Option{{Value: "deny"}, {Value: "once"}}}, {Name: "reason", Type: events.Textarea},
		}}
		page := raw.ReplaceAllString(fragment(t, newCard("", "", m, nil, nil)), "")
		for _, text := range append(c.Shows, "/srv/shop") {
			if !strings.Contains(page, text) {
				t.Errorf("%s: %q is not shown:\n%.3000s", c.Name, text, page)
			}
		}
		if c.Forges && strings.Contains(c.Input, "description") && !strings.Contains(page, `<p class="aside says">says: “`) {
			t.Errorf("%s: the words of the caller have no label:\n%.3000s", c.Name, page)
		}
		if strings.Contains(page, strings.Repeat("\n", 12)) || strings.Contains(page, strings.Repeat(" ", 100)) {
			i := max(strings.Index(page, strings.Repeat("\n", 12)), strings.Index(page, strings.Repeat(" ", 100)))
			t.Errorf("%s: blanks push the rest away: %q", c.Name, page[max(0, i-200):min(len(page), i+100)])
		}
	}
}

// TestProgressIsShown draws messages that were sent: how far each has come, who says so, and what is overdue. What another node says
// of how it was seen is text.
func TestProgressIsShown(t *testing.T) {
	t.Parallel()
	now := capabilities.At(time.Now())
	m := view.Message{Type: "message", Number: 1, Date: now, Text: "hello", Sent: true, ToName: "bob"}
	if html := fragment(t, newCard("", "", m, nil, nil)); !strings.Contains(html, "Not delivered yet") {
		t.Errorf("on its way: %s", html)
	}
	m.State, m.AckBy, m.Overdue = events.Shown, now, true
	m.Receipts = []view.Receipt{{ByName: "bob", Reader: capabilities.ID{ULID: [16]byte{1}}, ReaderName: "session", State: events.Shown, At: now, How: "<b>seen</b>", Known: view.KnownByNode}}
	html := fragment(t, newCard("", "", m, nil, nil))
	for _, want := range []string{"Shown to session (&lt;b&gt;seen&lt;/b&gt;), its node says", "Overdue: to be acknowledged by"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in %s", want, html)
		}
	}
	if state := newRow("", local{}, m, nil).State(); state != "Overdue" {
		t.Errorf("in the list: %s", state)
	}
	if m.Overdue = false; newRow("", local{}, m, nil).State() != "shown" {
		t.Errorf("in the list: %s", newRow("", local{}, m, nil).State())
	}
}
