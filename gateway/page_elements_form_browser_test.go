package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/web"
	"parley/internal/freeport"
)

func TestElementsAnswerEachFieldType(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("joe")
	asked := h.ask(parley.Form{Title: "Set up the project", Description: "Everything **at once**.\n\n- one\n- two <img src=x onerror=alert(1)>", Fields: everyType()})
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="0"></parley-form>`)
	b.typeWithin("[name=f0]", "my-app")
	b.typeWithin("[name=f1]", "two\nlines")
	b.typeWithin("[name=f2]", "9007199254740993") // beyond the exact range of numbers
	b.clickWithin("[name=f3]")
	b.setWithin("[name=f4]", "green")
	b.clickWithin("[name=f5][value=red]")
	b.clickWithin("[name=f5][value=blue]")
	b.clickWithin("[name=f6][value=green]")
	b.clickWithin("[name=f7][value=fast]")
	b.clickWithin("[name=f8][value=Yes]")
	b.setWithin("[name=f9]", "2026-01-31")
	b.typeWithin("[name=f10]", "sk-1234")
	b.until(within("#names option[value=joe]") + ` && ` + within("[name=f11]") + `.list.id === 'names'`) // the names to choose from
	b.typeWithin("[name=f11]", "joe")
	b.typeWithin("[name=f12]", "https://example.com")
	if got := b.text(within("[part=description]") + ".innerHTML"); !strings.Contains(got, "<strong>at once</strong>") || !strings.Contains(got, "<li>one</li>") || strings.Contains(got, "<img") {
		t.Errorf("the context is %s", got)
	}
	b.clickWithin(answerPart)
	b.readsWithin("[part=state]", "Answered by you")
	b.readsWithin("[part=answers]", "Red, blue")
	if strings.Contains(b.text(within("article")+".innerText"), "sk-1234") {
		t.Error("the element shows the secret")
	}
	if got := b.text(within("time") + ".dateTime.slice(0, 4) > '2000' && !" + within("input, textarea, select, button")); got != "true" {
		t.Error("what has ended does not say when, or can still be filled in")
	}
	b.checkNoFaults()
	values, _ := h.outcome(asked).Values.AsRecord()
	for name, want := range map[string]string{
		"name": "my-app", "notes": "two\nlines", "port": "9007199254740993", "agree": "true", "colour": "green", "several": `["red","blue"]`,
		"one": "green", "speed": "fast", "sure": "Yes", "day": "2026-01-31", "key": "sk-1234", "site": "https://example.com",
	} {
		if got := values[name].Text(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !values["helper"].IsRef() {
		t.Errorf("helper: %v", values["helper"].Text())
	}
}

func TestElementsShowRefusalsAndSendOnce(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.ask(parley.Form{Fields: []events.Field{
		{Name: "toString", Label: "What every object has"}, {Name: "zip", Label: "Zip", Pattern: []byte(`{"type":"string","pattern":"^[0-9]{5}$"}`)},
	}})
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="0"></parley-form>`)
	b.typeWithin("[name=f1]", "12")
	b.run(`const send = fetch; let count = 0; const held = []; // delays each call to the node
		window.fetch = (to, how) => (!String(to).includes('respond_form') ? send(to, how) : new Promise((go) => { count++; held.push(() => go(send(to, how))); }));
		window.sent = () => count;
		window.release = () => held.shift()();`)
	b.clickWithin(answerPart)
	b.until(`sent() === 1`)
	b.run(within("form") + `.requestSubmit(); ` + within("[part=decline]") + `.click()`)
	if got := b.text(`fired.length + ' ' + sent() + ' ' + [...element.shadowRoot.querySelectorAll('button')].every((e) => e.disabled)`); got != "1 1 true" {
		t.Errorf("while it is on its way: %s", got)
	}
	b.run(`release()`)
	b.readsWithin("[data-control=f1] .wrong", "Does not match")
	b.until(`element.shadowRoot.activeElement?.name === 'f1' && element.shadowRoot.activeElement.getAttribute('aria-describedby').endsWith('-wrong') && !` + within(answerPart) + `.disabled`)
	if got := b.text(within("[data-control=f0] .wrong") + `.textContent`); got != "" {
		t.Errorf("the other field is %q", got)
	}
	b.typeWithin("[name=f1]", "12345")
	b.clickWithin(answerPart)
	b.until(`sent() === 2`)
	b.run(`release()`)
	b.readsWithin("[part=state]", "Answered by you")
	b.checkNoFaults()
	if got := h.outcome(asked).Values.Text(); got != `{"zip":"12345"}` {
		t.Error(got)
	}
}

// TestElementsWorkBesideThePage answers a form of the node's own page by the module's element beside it. Both forms are
// amended while they are filled in, and one of the host's own is amended on the page.
func TestElementsWorkBesideThePage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	first := h.ask(parley.Form{Title: "First", Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	second := h.ask(parley.Form{Title: "Second", Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	b := h.openBrowser()
	b.open("/mail")
	b.run(`import('` + b.path(web.ElementsPath) + `').then((m) => { // the page defines parley-ask, the module parley-form
		for (const number of [0, 1]) {
			const form = document.createElement('parley-form');
			form.form = String(number);
			document.body.append(form);
		}
		window.isBoth = customElements.get('parley-ask') && customElements.get('parley-form') === m.ParleyFormElement;
		window.element = document.querySelector('parley-form');
	})`)
	b.until(`window.isBoth && document.querySelectorAll('parley-ask').length === 1`)
	b.typeWithin("[name=f0]", "by the element")
	h.relabel(h.fae, first)
	b.until(within("[part~=label]") + `?.parentElement.parentElement.innerText.includes("More of B")`)
	b.clickWithin(answerPart)
	b.reads("#stream .state", "✓ Answered")

	b.fill("parley-ask input", "by the page")
	h.relabel(h.fae, second)
	b.reads(".changed-note", "The question has changed")
	b.reads(".notes", "Revision 2, amended")
	b.until(`document.activeElement.name === 'f0' && document.activeElement.value === 'by the page' && document.querySelectorAll('[data-changed]').length === 1`)
	another := `document.querySelector('#alone > .message').dataset.revision = '7'` // no event changes it
	// In one step: a late event that draws the message once more would undo what is set before the press.
	b.run(another + `; for (const decline of document.querySelectorAll('parley-ask [value=decline]')) { decline.closest('details').open = true; decline.click() }`)
	b.reads("parley-ask .failure", "Not sent: the question was changed while you answered.")
	b.until(`document.querySelector('#alone > .message').dataset.revision === '2'`)
	b.run(another)
	b.click("parley-ask " + answerButton)
	b.reads("parley-ask .failure", "Not sent: the question was changed while you answered.")
	b.until(`document.querySelector('#alone > .message').dataset.revision === '2' && document.querySelector('parley-ask [name=f0]').value === 'by the page'`)
	b.click("parley-ask " + answerButton)
	b.until(`document.querySelectorAll('parley-form')[1].shadowRoot.querySelector('[part=state]')?.innerText.includes('Answered by you')`)
	own, err := h.node.Host().Ask(t.Context(), parley.Form{To: "fae", Title: "Mine", Description: "Which?", Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	if err != nil {
		t.Fatal(err)
	}
	b.open("/forms/" + own.Form.String())
	b.click(".amend summary")
	b.fill(".amend [name=title]", "Mine, corrected")
	b.fill(".amend [name=label]", "Another A")
	b.click(".amend button[value=amend]")
	b.reads(".amended", "Revision 2")
	b.reads(".heading", "Mine, corrected")
	b.checkNoFaults()
	if m, err := h.fae.Message(t.Context(), capabilities.FormID(own.Form)); err != nil || m.Fields[0].Label != "Another A" || m.Fields[1].Label != "B" {
		t.Errorf("amended: %+v, %v", m.Fields, err)
	}
	for asked, want := range map[view.Asked]string{first: `{"a":"by the element"}`, second: `{"a":"by the page"}`} {
		if got := h.outcome(asked).Values.Text(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// relabel changes the label of the second field of a form with fields a and b.
func (h *pageServer) relabel(by *actors.Agent, asked view.Asked) {
	h.t.Helper()
	ref, m := capabilities.FormID(asked.Form), parley.Amendment{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "More of B"}}}
	if _, err := by.Amend(h.t.Context(), ref, m); err != nil {
		h.t.Fatal(err)
	}
}

func TestElementsShowOutcomeFromElsewhere(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ctx := t.Context()
	two := []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}
	declined, cancelled := h.ask(parley.Form{Fields: two}), h.ask(parley.Form{Fields: two})
	b := h.openBrowser()
	h.ask(parley.Form{Fields: two, Deadline: capabilities.At(time.Now().Add(4 * time.Second))}) // it may expire before it is shown
	b.openEmpty(`<parley-form form="0"></parley-form><parley-form form="1"></parley-form><parley-form form="2"></parley-form>`)
	b.until(`[...document.querySelectorAll('parley-form')].filter((f) => f.shadowRoot?.querySelector('form')).length >= 2`) // several forms in one page
	b.typeWithin("[name=f0]", "half")
	if _, err := h.node.Host().Decline(ctx, capabilities.FormID(declined.Form), 0, "<i>no</i>"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.fae.Cancel(ctx, capabilities.FormID(cancelled.Form), ""); err != nil {
		t.Fatal(err)
	}
	b.until(`fired.length === 3`)
	if got := b.text(`fired.sort().join('; ')`); got != `settled "cancelled"; settled "declined"; settled "expired"` {
		t.Errorf("fired %s", got)
	}
	b.readsWithin("[part=state]", "Declined by you")
	b.readsWithin("[part=note]", "<i>no</i>")
	b.readsWithin("[part=unsent]", "not sent")
	b.until(`element.shadowRoot.activeElement?.dataset.status === 'declined'`) // the focus is kept
	b.readsWithin("[role=status]", "Declined by you")
	b.until(`document.querySelectorAll('parley-form')[1].shadowRoot.querySelector('[part=state]').innerText.includes('Cancelled by fae')`)
	b.until(`document.querySelectorAll('parley-form')[2].shadowRoot.querySelector('[part=state]').innerText.includes('Expired without an answer')`)
	b.checkNoFaults()
}

func TestElementsKeepDraftUnlessDisabled(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.ask(parley.Form{Fields: []events.Field{{Name: "name", Label: "Name"}, {Name: "key", Label: "Key", Type: events.Secret}}})
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="0"></parley-form>`)
	b.until(within("[name=f0]"))
	b.typeWithin("[name=f0]", "half")
	b.typeWithin("[name=f1]", "hush")
	h.keeps(asked, "name=half")
	b.openEmpty(`<parley-form form="0"></parley-form>`)
	b.until(within("[name=f0]") + `?.value === 'half' && !` + within("[name=f1]") + `.value`)
	b.openEmpty(`<parley-form form="0" no-draft></parley-form>`)
	b.until(within("[name=f0]"))
	b.typeWithin("[name=f0]", "not kept")
	if b.text(`element.filling.draft === undefined`) != "true" {
		t.Error("a draft is kept")
	}
	b.run(`element.noDraft = false`)
	b.until(within("[name=f0]") + `?.value === 'half'`)
	b.typeWithin("[name=f0]", "whole")
	h.keeps(asked, "name=whole")
	b.clickWithin(answerPart)
	b.readsWithin("[part=state]", "Answered")
	h.keeps(asked, "")
	if kept := b.text(`JSON.stringify(localStorage)`); kept != "{}" {
		t.Errorf("%s is left in the browser", kept)
	}
	b.checkNoFaults()
}

func TestElementsSurviveNodeRestart(t *testing.T) {
	t.Parallel()
	browserPath(t, shells...)
	k := &restartingNode{t: t, folder: t.TempDir(), address: freeport.Address(t)}
	k.start()
	t.Cleanup(func() { k.stop() })
	h := &pageServer{t: t, server: k.server, node: k.node, url: "http://" + k.address, token: makeToken(t, k.node.Host(), "read", "ask", "answer", "admin")}
	h.fae = h.guest("fae")
	asked := h.ask(parley.Form{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="0"></parley-form>`)
	b.typeWithin("[name=f0]", "half")
	k.stop()
	b.readsWithin("[part=failure]:not(form *)", "cannot be reached") // it notices by itself
	b.clickWithin(answerPart)
	b.readsWithin("form [part=failure]", "cannot be reached")

	k.start()
	h.node = k.node
	var err error
	if h.fae, err = k.node.ActAs(t.Context(), "fae"); err != nil {
		t.Fatal(err)
	}
	b.until(`!` + within("[part=failure]:not(form *)") + `.textContent`)
	b.clickWithin(answerPart)
	b.readsWithin("[part=state]", "Answered by you")
	if got := h.outcome(asked).Values.Text(); got != `{"a":"half"}` {
		t.Error(got)
	}
}

func TestElementsForwardWherePermitted(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("joe")
	hostile := "<b>bold</b>\u202eevil"
	h.ask(parley.Form{Title: hostile, Fields: []events.Field{{Name: "a", Label: hostile, Help: hostile, Placeholder: hostile, Type: events.Radio, Options: []events.Option{{Value: "x", Label: hostile, Description: hostile}}}}})
	h.ask(parley.Form{NoForward: true, Fields: []events.Field{{Name: "a"}}})
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="0"></parley-form>`)
	b.until(within("[part=title]"))
	for _, part := range []string{"title", "label", "help", "choice"} {
		if got := b.text(within("[part~="+part+"]") + ".textContent"); !strings.Contains(got, `<b>bold</b>\u{202e}evil`) {
			t.Errorf("%s: %q", part, got)
		}
	}
	b.clickWithin("[part=forward]") // without a recipient
	b.until(within("form [part=failure]") + `.textContent && !` + within("[part=forward]") + `.disabled`)
	b.setWithin("[name=to]", "joe")
	b.clickWithin("[part=forward]")
	b.readsWithin("[part=notes]", "Forwarded to joe")
	b.run(`element.form = '1'`)
	b.until(within("form") + ` && !` + within("[part=forward]"))
	b.checkNoFaults()
}

func TestElementsReportWhyTheyAreEmpty(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.ask(parley.Form{Fields: []events.Field{{Name: "a"}}})
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
	b.readsWithin("[part=state]", "Waits for an answer") // a form from fae
	if strings.Contains(b.text(`element.outerHTML`), "token") {
		t.Error("the token stands in the document")
	}
	b.checkNoFaults()
}

// TestElementsValidateAsThePage checks that the module exports the page's validation, which another test compares with the node's.
func TestElementsValidateAsThePage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.openEmpty(`<p></p>`)
	b.run(`import('` + h.path(h.server.site.Assets.URL("validate.js")) + `').then((m) => { window.page = m })`)
	b.until(`window.page && window.parley && page.validateValues === parley.validateValues && page.readTexts === parley.readTexts`)
	b.checkNoFaults()
}
