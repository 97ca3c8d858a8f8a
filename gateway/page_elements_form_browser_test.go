package gateway

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"parley/actors"
	"parley/capabilities"
	"parley/events"
)

func TestElementsAnswerEachTypeOfField(t *testing.T) {
	h := openParlour(t)
	h.guest("joe")
	asked := h.ask(actors.Ask{Title: "Set up the project", Description: "Everything **at once**.\n\n- one\n- two <img src=x onerror=alert(1)>", Fields: everyType()})
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="0"></parley-form>`)
	b.typeWithin("[name=f0]", "my-app")
	b.typeWithin("[name=f1]", "two\nlines")
	b.typeWithin("[name=f2]", "9007199254740993") // more than a script's number can tell
	b.clickWithin("[name=f3]")
	b.setWithin("[name=f4]", "green")
	b.clickWithin("[name=f5][value=red]")
	b.clickWithin("[name=f5][value=blue]")
	b.clickWithin("[name=f6][value=green]")
	b.clickWithin("[name=f7][value=fast]")
	b.clickWithin("[name=f8][value=Yes]")
	b.setWithin("[name=f9]", "2026-01-31")
	b.typeWithin("[name=f10]", "sk-1234")
	b.until(within("#names option[value=joe]") + ` && ` + within("[name=f11]") + `.list.id === 'names'`) // what there is to pick
	b.typeWithin("[name=f11]", "joe")
	if got := b.text(within("[part=description]") + ".innerHTML"); !strings.Contains(got, "<strong>at once</strong>") || !strings.Contains(got, "<li>one</li>") || strings.Contains(got, "<img") {
		t.Errorf("the context is %s", got)
	}
	b.clickWithin(answerPart)
	b.readsWithin("[part=state]", "Answered by HOST")
	b.readsWithin("[part=answers]", "Red, blue")
	if strings.Contains(b.text(within("article")+".innerText"), "sk-1234") {
		t.Error("the element shows the secret")
	}
	if got := b.text(within("time") + ".dateTime.slice(0, 4) > '2000' && !" + within("input, textarea, select, button")); got != "true" {
		t.Error("what has ended does not say when, or can still be filled in")
	}
	b.isFine()
	values, _ := h.outcome(asked).Values.AsRecord()
	for name, want := range map[string]string{
		"name": "my-app", "notes": "two\nlines", "port": "9007199254740993", "agree": "true", "colour": "green", "several": `["red","blue"]`,
		"one": "green", "speed": "fast", "sure": "Yes", "day": "2026-01-31", "key": "sk-1234",
	} {
		if got := values[name].Text(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !values["helper"].IsRef() {
		t.Errorf("helper: %v", values["helper"].Text())
	}
}

// TestElementsAndThePageLiveInOneDocument has a form of the node's own page answered by the module's element beside it.
func TestElementsAndThePageLiveInOneDocument(t *testing.T) {
	h := openParlour(t)
	first := h.ask(actors.Ask{Title: "First", Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	second := h.ask(actors.Ask{Title: "Second", Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	b := h.openBrowser()
	b.open("/")
	b.run(`import('/elements.js').then((m) => { // parley-ask is the page's, and parley-form is not
		for (const number of [0, 1]) {
			const form = document.createElement('parley-form');
			form.form = String(number);
			document.body.append(form);
		}
		window.isBoth = customElements.get('parley-ask') && customElements.get('parley-form') === m.ParleyFormElement;
		window.element = document.querySelector('parley-form');
	})`)
	b.until(`window.isBoth && document.querySelectorAll('parley-ask').length === 2`)
	b.typeWithin("[name=f0]", "by the element")
	b.clickWithin(answerPart)
	b.reads("#stream .state", "Answered by HOST")
	b.fill("parley-ask input", "by the page")
	b.click("parley-ask " + answerButton)
	b.until(`document.querySelectorAll('parley-form')[1].shadowRoot.querySelector('[part=state]')?.innerText.includes('Answered by HOST')`)
	b.isFine()
	for asked, want := range map[actors.Asked]string{first: `{"a":"by the element"}`, second: `{"a":"by the page"}`} {
		if got := h.outcome(asked).Values.Text(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestElementsSayWhatBecameOfAFormElsewhere(t *testing.T) {
	h := openParlour(t)
	ctx := t.Context()
	two := []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}
	declined, cancelled := h.ask(actors.Ask{Fields: two}), h.ask(actors.Ask{Fields: two})
	h.ask(actors.Ask{Fields: two, Deadline: capabilities.At(time.Now().Add(3 * time.Second))})
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="0"></parley-form><parley-form form="1"></parley-form><parley-form form="2"></parley-form>`)
	b.until(`[...document.querySelectorAll('parley-form')].filter((f) => f.shadowRoot?.querySelector('form')).length === 3`) // several in one page
	b.typeWithin("[name=f0]", "half")
	if _, err := h.node.Host().Decline(ctx, actors.Which(declined.Form.String()), "<i>no</i>"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.fae.Cancel(ctx, actors.Which(cancelled.Form.String()), ""); err != nil {
		t.Fatal(err)
	}
	b.until(`heard.length === 3`)
	if got := b.text(`heard.sort().join('; ')`); got != `settled "cancelled"; settled "declined"; settled "expired"` {
		t.Errorf("fired %s", got)
	}
	b.readsWithin("[part=state]", "Declined by HOST")
	b.readsWithin("[part=note]", "<i>no</i>")
	b.readsWithin("[part=unsent]", "not sent")
	b.until(`element.shadowRoot.activeElement?.dataset.status === 'declined'`) // the focus is not lost
	b.readsWithin("[role=status]", "Declined by HOST")
	b.until(`document.querySelectorAll('parley-form')[1].shadowRoot.querySelector('[part=state]').innerText.includes('Cancelled by fae')`)
	b.until(`document.querySelectorAll('parley-form')[2].shadowRoot.querySelector('[part=state]').innerText.includes('Expired without an answer')`)
	b.isFine()
}

func TestElementsKeepADraftUnlessTheyAreToldNot(t *testing.T) {
	h := openParlour(t)
	h.ask(actors.Ask{Fields: []events.Field{{Name: "name", Label: "Name"}, {Name: "key", Label: "Key", Type: events.Secret}}})
	b := h.openBrowser()
	for range 2 { // over a reload
		b.openEmpty(`<parley-form form="0"></parley-form>`)
		b.until(within("[name=f0]"))
		if b.text(`localStorage.length`) == "0" {
			b.typeWithin("[name=f0]", "half")
			b.typeWithin("[name=f1]", "hush")
		}
	}
	b.until(within("[name=f0]") + `.value === 'half' && !` + within("[name=f1]") + `.value`)
	if kept := b.text(`JSON.stringify(localStorage)`); strings.Contains(kept, "hush") {
		t.Error("a secret is kept")
	}
	b.run(`localStorage.clear()`)
	b.openEmpty(`<parley-form form="0" no-draft></parley-form>`)
	b.typeWithin("[name=f0]", "half")
	if kept := b.text(`localStorage.length`); kept != "0" {
		t.Errorf("%s drafts are kept", kept)
	}
	b.run(`element.noDraft = false`)
	b.typeWithin("[name=f0]", "whole")
	b.until(`localStorage.length === 1`)
	b.clickWithin(answerPart)
	b.readsWithin("[part=state]", "Answered")
	if kept := b.text(`localStorage.length`); kept != "0" {
		t.Errorf("%s drafts are left", kept)
	}
	b.isFine()
}

func TestElementsForwardWhereTheAskerLetsThem(t *testing.T) {
	h := openParlour(t)
	h.guest("joe")
	hostile := "<b>bold</b>\u202eevil"
	h.ask(actors.Ask{Title: hostile, Fields: []events.Field{{Name: "a", Label: hostile, Help: hostile, Placeholder: hostile, Type: events.Radio, Options: []events.Option{{Value: "x", Label: hostile, Description: hostile}}}}})
	h.ask(actors.Ask{NoForward: true, Fields: []events.Field{{Name: "a"}}})
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="0"></parley-form>`)
	b.until(within("[part=title]"))
	for _, part := range []string{"title", "label", "help", "choice"} {
		if got := b.text(within("[part~="+part+"]") + ".textContent"); !strings.Contains(got, `<b>bold</b>\u{202e}evil`) {
			t.Errorf("%s: %q", part, got)
		}
	}
	b.clickWithin("[part=forward]") // to nobody
	b.until(within("form [part=failure]") + `.textContent && !` + within("[part=forward]") + `.disabled`)
	b.setWithin("[name=to]", "joe")
	b.clickWithin("[part=forward]")
	b.readsWithin("[part=notes]", "Forwarded to joe")
	b.run(`element.form = '1'`)
	b.until(within("form") + ` && !` + within("[part=forward]"))
	b.isFine()
}

func TestElementsSayPlainlyWhyTheyShowNothing(t *testing.T) {
	h := openParlour(t)
	h.ask(actors.Ask{Fields: []events.Field{{Name: "a"}}})
	if _, err := h.fae.Send(t.Context(), "HOST", "hello"); err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="77"></parley-form>`)
	b.readsWithin("[part=failure]", "77")
	b.run(`element.form = '1'`)
	b.readsWithin("[part=failure]", "not a form")
	b.run(`element.base = 'http://localhost:1'`)
	b.readsWithin("[part=failure]", "have a proxy pass a path")
	if _, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	b.run(`element.form = '0'; element.base = ''`)
	b.readsWithin("[part=failure]", "without a token: parley token create")
	b.run(`element.token = ` + "`" + makeToken(t, h.fae, "read") + "`")
	b.readsWithin("[part=state]", "Waits for an answer") // it is fae's own
	if strings.Contains(b.text(`element.outerHTML`), "token") {
		t.Error("the token stands in the document")
	}
	b.isFine()
}

func TestElementsLeaveNobodyOut(t *testing.T) {
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openParlour(t)
	h.fillScene()
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(320, 900))
	for _, scheme := range []string{"light", "dark"} {
		b.prefer(scheme)
		b.openEmpty(`<parley-questions></parley-questions><parley-form form="0"></parley-form><parley-form form="1"></parley-form>`)
		b.until(`window.element`)
		b.run(`document.body.replaceChildren(element.parentElement); element.parentElement.role = 'main'; element.parentElement.insertAdjacentHTML('afterbegin', '<h1>An app</h1>')`)
		const forms = `[...(window.element?.shadowRoot.querySelectorAll('parley-form') ?? []), ...document.querySelectorAll('parley-form')].map((f) => f.shadowRoot)`
		b.until(forms + `.length === 6 && ` + forms + `.every((r) => r.querySelector('article'))`)
		b.run(forms + `.filter((r) => r.querySelector('.select')).forEach((r) => r.querySelector('button.primary').click())`) // with what is wrong
		b.until(forms + `.some((r) => r.activeElement?.getAttribute('aria-invalid') === 'true')`)
		b.run(forms + `.forEach((r) => r.querySelectorAll('details').forEach((d) => { d.open = true }))`)
		if got := b.text(`document.documentElement.scrollWidth`); got != "320" {
			t.Errorf("it takes %s pixels of 320", got)
		}
		if *screenshots != "" {
			b.shoot("elements-" + scheme)
			b.do(chromedp.EmulateViewport(320, 900))
		}
		b.run(string(source))
		b.run(`axe.run().then((r) => { window.passed = r.passes.length; window.found = r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target + " " + n.failureSummary)) })`)
		b.until(`window.found`)
		if found := b.text(`passed > 10 ? found.join("\n") : 'only ' + passed + ' rules were looked at'`); found != "" {
			t.Errorf("in %s:\n%s", scheme, found)
		}
	}
	b.isFine()
}

// TestElementsCheckAsThePageDoes: what the page checks is held to the node's own check, and this is the same.
func TestElementsCheckAsThePageDoes(t *testing.T) {
	h := openParlour(t)
	b := h.openBrowser()
	b.openEmpty(`<p></p>`)
	b.run(`import('` + h.server.page.assets.url("validate.js") + `').then((m) => { window.page = m })`)
	b.until(`window.page && window.parley && page.validateValues === parley.validateValues && page.readTexts === parley.readTexts`)
	b.isFine()
}
