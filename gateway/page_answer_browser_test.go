package gateway

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// everyType returns a field of each type.
func everyType() []events.Field {
	colours := []events.Option{{Value: "red", Label: "Red"}, {Value: "green", Label: "Green", Description: "as grass"}, {Value: "blue"}}
	return []events.Field{
		{Name: "name", Label: "Project name", Type: events.Text, Required: true, Placeholder: "my-app", Help: "Letters and dashes"},
		{Name: "notes", Label: "Notes", Type: events.Textarea},
		{Name: "port", Label: "Port", Type: events.Number, Default: capabilities.Int(7420)},
		{Name: "agree", Label: "I agree", Type: events.Checkbox},
		{Name: "colour", Label: "Colour", Type: events.Select, Options: colours, Required: true},
		{Name: "several", Label: "Several", Type: events.Multiselect, Options: colours},
		{Name: "one", Label: "One of them", Type: events.Radio, Options: colours},
		{Name: "speed", Label: "Speed", Type: events.Buttons, Options: []events.Option{{Value: "slow"}, {Value: "fast"}}, Required: true},
		{Name: "sure", Label: "Sure?", Type: events.Confirm, Required: true},
		{Name: "day", Label: "Day", Type: events.Date},
		{Name: "key", Label: "API key", Type: events.Secret},
		{Name: "helper", Label: "Helper", Type: events.Capability},
		{Name: "site", Label: "Site", Type: events.URL},
	}
}

func TestEachFieldTypeIsAnswered(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("joe")
	asked := h.ask(parley.Form{Title: "Set up the project", Description: "Everything at once.", Fields: everyType()})
	b := h.openBrowser()
	b.open("/mail")
	b.fill(fieldAt(0)+" input", "my-app")
	b.fill(fieldAt(1)+" textarea", "two\nlines")
	b.fill(fieldAt(2)+" input", "9007199254740993") // beyond the exact range of numbers
	b.click(fieldAt(3) + " input")
	b.set(fieldAt(4)+" select", "green")
	b.click(fieldAt(5) + " label:nth-of-type(1)")
	b.click(fieldAt(5) + " label:nth-of-type(3)")
	b.click(fieldAt(6) + " label:nth-of-type(2)")
	b.click(fieldAt(7) + " label:nth-of-type(2)")
	b.click(fieldAt(8) + " label:nth-of-type(1)")
	b.set(fieldAt(9)+" input", "2026-01-31")
	b.fill(fieldAt(10)+" input", "sk-1234")
	b.fill(fieldAt(11)+" input", "joe")
	b.fill(fieldAt(12)+" input[type=url]", "example.com")
	b.click(answerButton)
	b.reads(fieldAt(12)+" .wrong", "Want an absolute http or https URL")
	b.fill(fieldAt(12)+" input", "https://example.com")
	b.click(answerButton)
	b.reads(".state", "Answered by")
	b.reads(".answers", "Red, blue")
	text := b.text(`document.body.innerText`)
	b.checkNoFaults()

	o := h.outcome(asked)
	values, _ := o.Values.AsRecord()
	want := map[string]string{
		"name": "my-app", "notes": "two\nlines", "port": "9007199254740993", "agree": "true", "colour": "green", "several": `["red","blue"]`,
		"one": "green", "speed": "fast", "sure": "Yes", "day": "2026-01-31", "key": "sk-1234", "site": "https://example.com",
	}
	for name, w := range want {
		if got := values[name].Text(); got != w {
			t.Errorf("%s: %q, want %q", name, got, w)
		}
	}
	if !values["helper"].IsRef() {
		t.Errorf("helper: %v", values["helper"].Text())
	}
	if strings.Contains(text, "sk-1234") {
		t.Error("the page shows the secret")
	}
}

func TestRefusedAnswerShowsFieldErrors(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.ask(parley.Form{Fields: []events.Field{
		{Name: "name", Label: "Name", Required: true},
		{Name: "port", Label: "Port", Type: events.Number},
		{Name: "zip", Label: "Zip", Pattern: []byte(`{"type":"string","pattern":"^[0-9]{5}$"}`)},
	}})
	b := h.openBrowser()
	b.open("/mail")
	b.fill(fieldAt(1)+" input", "eighty")
	b.click(answerButton)
	b.reads(fieldAt(0)+" .wrong", "Required") // from the page
	b.reads(fieldAt(1)+" .wrong", "Want a number")
	b.until(`document.activeElement.name === 'f0' && document.activeElement.getAttribute('aria-invalid') === 'true'`)
	b.fill(fieldAt(0)+" input", "x")
	b.reads("body", "Name")
	b.until(`document.querySelector('[data-control=f0] .wrong').textContent === ''`)
	b.fill(fieldAt(1)+" input", "80")
	b.fill(fieldAt(2)+" input", "12")
	b.click(answerButton)
	b.reads(fieldAt(2)+" .wrong", "Does not match") // from the node
	b.until(`!document.querySelector('button.primary').disabled`)
	b.fill(fieldAt(2)+" input", "12345")
	b.click(answerButton)
	b.reads(".state", "Answered")
	b.checkNoFaults()
	if got := h.outcome(asked).Values.Text(); got != `{"name":"x","port":80,"zip":"12345"}` {
		t.Error(got)
	}
}

func TestFirstAnswerOfTwoTabsWins(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("joe")
	asked := h.ask(parley.Form{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	one := h.openBrowser()
	one.open("/mail")
	two := h.tab(one.ctx)
	two.open("/questions")
	two.fill(fieldAt(0)+" input", "second")
	one.fill(fieldAt(0)+" input", "first")
	one.click(answerButton)
	one.reads(".state", "Answered by you")
	two.reads(".state", "Answered by you")
	two.reads("article", "What you typed here was not sent")
	two.until(`document.title === 'Needs you · Parley'`)
	one.checkNoFaults()
	two.checkNoFaults()
	if got := h.outcome(asked).Values.Text(); got != `{"a":"first"}` {
		t.Error(got)
	}
}

func TestFormIsAnsweredByKeyboard(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/questions")
	b.reads("#empty", "Nothing needs you.")
	lone := h.ask(parley.Form{Description: "What is your name?", Fields: []events.Field{{Name: "name", Label: "Name", Required: true}}})
	b.until(`document.activeElement.name === 'f0'`) // the person was not typing
	b.until(`document.title.startsWith('(1) ') && document.getElementById('count').textContent === '1'`)
	b.press("Ada" + kb.Enter)
	b.reads(".state", "Answered by you")
	if got := h.outcome(lone).Values.Text(); got != `{"name":"Ada"}` {
		t.Error(got)
	}

	two := h.ask(parley.Form{Description: "And more", Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B", Type: events.Textarea}}})
	b.until(`document.activeElement.name === 'f0'`)
	late := h.ask(parley.Form{Description: "Do not disturb", Fields: []events.Field{{Name: "a", Label: "A"}}})
	b.reads("#stream", "Do not disturb")
	b.until(`document.activeElement.closest('li').innerText.includes('And more')`)
	b.press("x" + kb.Escape) // with input it asks
	b.reads("dialog[open]", "Leave this form?")
	b.press(kb.Escape) // Escape means stay
	b.until(`!document.querySelector('dialog') && document.activeElement.name === 'f0'`)
	b.press(kb.Enter) // moves to the next field
	b.until(`document.activeElement.name === 'f1'`)
	b.press("y")
	b.press(kb.Enter, chromedp.ModifierCtrl) // Ctrl
	b.reads(".toast", "✓ Answered: ")
	b.reads("#alone", "Do not disturb") // the next one is open
	if got := h.outcome(two).Values.Text(); got != `{"a":"x","b":"y"}` {
		t.Error(got)
	}
	b.checkNoFaults()
	if in, err := h.node.Host().Mail().Inbox(t.Context(), view.MessageFilter{Pending: true}); err != nil || len(in.Messages) != 1 {
		t.Errorf("%v waits besides %v, %v", len(in.Messages), late.Form, err)
	}
}

// TestHeldEnterSendsNothing holds Enter down in the palette, which opens a form, and in the form.
func TestHeldEnterSendsNothing(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	for _, fields := range [][]events.Field{{{Name: "port"}}, {{Name: "zone"}, {Name: "why"}}} {
		asked := h.ask(parley.Form{Title: "Which " + fields[0].Name, Fields: fields})
		h.ask(parley.Form{Title: "Something else", Fields: fields})
		b.open("/mail")
		b.live()
		b.run(`globalThis.sent = 0; document.addEventListener('submit', (e) => { if (!e.target.matches('[method=dialog]')) sent++; }, true)`)
		b.press("k", chromedp.ModifierCtrl)
		b.until(`document.activeElement.matches('.palette input')`)
		b.press("Which " + fields[0].Name)
		b.until(`document.querySelector('.palette li[aria-selected=true]').textContent.startsWith("Which ` + fields[0].Name + `")`)
		places := []string{`document.activeElement.name === 'f0'`}
		if len(fields) > 1 {
			places = append(places, `document.activeElement.name === 'f1'`, `document.activeElement.matches('`+answerButton+`')`)
		}
		for _, place := range places {
			b.press(kb.Enter)
			b.until(place)
			b.repeat('\r', 3)
			if got := b.text(`String(` + place + ` && sent === 0)`); got != "true" {
				t.Errorf("Enter held at %s: %s", place, b.text("sent + ' forms were sent from ' + document.activeElement.outerHTML"))
			}
		}
		b.press(kb.Enter)
		b.reads(".state", "Answered by")
		h.outcome(asked)
	}
}

func TestApprovalIsDecidedByOneButton(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	permission, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"make '<b>'"}`}})
	if err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.open("/questions")
	b.holds(".context.input", `{"command":"make '<b>'"}`)
	b.until(`document.activeElement.matches('li.message')`) // never a button: a key press meant for something else must not decide
	b.click(`.ask button[value=once]`)
	b.reads(".state", "✓ Allowed once · by you")
	b.checkNoFaults()
	allowed, outcome, err := h.fae.AwaitApproval(t.Context(), capabilities.FormID(permission.Form))
	if err != nil || !allowed || outcome.Values.Text() != `{"decision":"once"}` {
		t.Errorf("%v %v %v", allowed, outcome.Values.Text(), err)
	}
}
