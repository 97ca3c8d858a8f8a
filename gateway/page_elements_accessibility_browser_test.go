package gateway

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestElementsAreAccessible(t *testing.T) {
	t.Parallel()
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
		b.run(forms + `.filter((r) => r.querySelector('.select')).forEach((r) => r.querySelector('button.primary').click())`) // shows the errors
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
