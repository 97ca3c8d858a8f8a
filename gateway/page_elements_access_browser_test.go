package gateway

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"parley/actors"
	"parley/events"
)

func TestElementsForwardWhereTheAskerLetsThem(t *testing.T) {
	h := openPageServer(t)
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
	b.checkNoFaults()
}

func TestElementsSayPlainlyWhyTheyShowNothing(t *testing.T) {
	h := openPageServer(t)
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
	b.checkNoFaults()
}

func TestElementsLeaveNobodyOut(t *testing.T) {
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openPageServer(t)
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
	b.checkNoFaults()
}

// TestElementsCheckAsThePageDoes: what the page checks is held to the node's own check, and this is the same.
func TestElementsCheckAsThePageDoes(t *testing.T) {
	h := openPageServer(t)
	b := h.openBrowser()
	b.openEmpty(`<p></p>`)
	b.run(`import('` + h.path(h.server.site.Assets.URL("validate.js")) + `').then((m) => { window.page = m })`)
	b.until(`window.page && window.parley && page.validateValues === parley.validateValues && page.readTexts === parley.readTexts`)
	b.checkNoFaults()
}
