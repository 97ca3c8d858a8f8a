package gateway

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/web"
)

// openEmpty opens a page with the node's policy and none of its scripts, like a page of an app behind the same proxy. It
// inserts an element of the module, and records the element's events in window.fired.
func (b *tab) openEmpty(element string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url+"/forms/77"), chromedp.WaitReady("main.refusal"))
	b.run(fmt.Sprintf(`window.fired = [];
		addEventListener('securitypolicyviolation', (e) => fired.push('violation ' + e.violatedDirective));
		import(%q).then((m) => {
			window.parley = m;
			const holder = document.createElement('div');
			holder.innerHTML = %q;
			window.element = holder.firstElementChild;
			for (const one of holder.children) for (const name of ['submit', 'cancel', 'settled']) one.addEventListener(name, (e) => {
				const { values, reason, outcome } = e.detail;
				fired.push(name + ' ' + JSON.stringify(values ?? reason ?? outcome.status, (_, v) => typeof v === "bigint" ? String(v) : v));
				if (window.prevents) e.preventDefault();
			});
			document.body.append(holder);
		});`, b.path(web.ElementsPath), element))
}

// within returns an expression for an element in the shadow tree.
func within(selector string) string {
	return fmt.Sprintf("window.element?.shadowRoot.querySelector(%q)", selector)
}

func (b *tab) typeWithin(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`((e) => { e?.focus(); e?.select?.(); return e })(%s)`, within(selector)))
	b.press(text)
}

func (b *tab) clickWithin(selector string) {
	b.t.Helper()
	b.until(within(selector))
	b.run(within(selector) + ".click()")
}

func (b *tab) setWithin(selector, value string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`((e) => { if (e) e.value = %q; return e })(%s)`, value, within(selector)))
}

func (b *tab) readsWithin(selector, words string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%s?.innerText.includes(%q)", within(selector), words))
}

const answerPart = "[part~=answer]"

func TestElementsShowFormInAnotherPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.ask(parley.Form{Title: "<b>Set up</b>", Fields: []events.Field{
		{Name: "name", Label: "Name", Required: true},
		{Name: "port", Label: "Port", Type: events.Number, Default: capabilities.Int(9007199254740993)},
		{Name: "sure", Label: "Sure?", Type: events.Confirm, Required: true},
		{Name: "several", Label: "Several", Type: events.Multiselect, Options: []events.Option{{Value: "red"}, {Value: "blue"}}},
		{Name: "agree", Label: "I agree", Type: events.Checkbox, Default: capabilities.Bool(true)},
	}})
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="` + asked.Form.String() + `"></parley-form>`)
	b.until(`window.element?.shadowRoot.querySelector('form[part=form]')`)
	if got := b.text(`element.shadowRoot.querySelector('[part=title]').textContent`); got != "<b>Set up</b>" {
		t.Errorf("the title is %q", got)
	}
	const answer = `element.shadowRoot.querySelector('[part~=answer]').click()`
	const errors = `[...element.shadowRoot.querySelectorAll('.field > [part=wrong]')].map((e) => e.textContent).join()`
	b.run(answer)
	if got := b.text(errors); got != "Required,,Required,," {
		t.Errorf("wrong: %s", got)
	}
	b.until(`element.shadowRoot.activeElement?.name === 'f0'`)
	b.press("my-app")
	b.run(`element.shadowRoot.querySelector('[name=f2][value=Yes]').click(); element.shadowRoot.querySelectorAll('[name=f3]')[1].click();`)
	b.run(`window.prevents = true; ` + answer)
	if got, want := b.text(`fired.join('; ')`), `submit {"name":"my-app","port":"9007199254740993","sure":"Yes","several":["blue"],"agree":true}`; got != want {
		t.Errorf("fired %s, want %s", got, want)
	}
	b.run(`window.prevents = false; ` + answer)
	b.until(`fired.length === 3 && element.shadowRoot.querySelector('[part=state]')?.innerText.includes('Answered by you')`)
	if got := b.text(`fired.at(-1)`); got != `settled "answered"` {
		t.Errorf("the last it fired is %s", got)
	}
	if got := b.text(`fired.length`); got != "3" {
		t.Errorf("it fired %s times", got)
	}
	b.checkNoFaults()
	if got, want := h.outcome(asked).Values.Text(), `{"agree":true,"name":"my-app","port":9007199254740993,"several":["blue"],"sure":"Yes"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestElementsShowOpenQuestions(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	decide := []events.Field{{Name: "go", Label: "Go?", Type: events.Confirm, Required: true}}
	first := h.ask(parley.Form{Title: "First", Fields: decide})
	b := h.openBrowser()
	b.openEmpty(`<parley-questions></parley-questions>`)
	const forms = `[...(window.element?.shadowRoot.querySelectorAll('[part=question] > *') ?? [])].map((f) => f.shadowRoot)`
	b.until(forms + `[0]?.querySelector('[part~=answer]')`)
	second := h.ask(parley.Form{Title: "Second", Fields: decide})
	b.until(forms + `[1]?.querySelector('[part=decline]')`) // it arrived while the page was open
	b.run(forms + `[0].querySelector('[part~=answer][value=Yes]').click()`)
	b.until(forms + `.length === 1`)
	b.run(forms + `[0].querySelector('[part=decline]').click()`)
	b.until(forms + `.length === 0 && element.shadowRoot.textContent === 'No questions right now.'`)
	if got, want := b.text(`fired.join('; ')`), `submit {"go":"Yes"}; settled "answered"; cancel ""; settled "declined"`; got != want {
		t.Errorf("fired %s, want %s", got, want)
	}
	if got := b.text(`JSON.stringify(parley.validateValues([{ name: 'a', required: true }], {}))`); got != `{"a":"required"}` {
		t.Error(got)
	}
	b.checkNoFaults()
	if got := h.outcome(first).Values.Text(); got != `{"go":"Yes"}` {
		t.Error(got)
	}
	if got := h.outcome(second).Status; got != view.StatusDeclined {
		t.Error(got)
	}
}

// appPage is a page of another app, with a strict policy of its own.
const appPage = `<!doctype html><title>An app</title><script type="module" src="/parley/elements.js"></script>
<parley-form base="/parley" form="0"></parley-form>`

func TestElementsAnswerBehindAProxy(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.ask(parley.Form{Fields: []events.Field{{Name: "name", Label: "Name", Required: true}}})
	node, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	app := http.NewServeMux()
	app.Handle("/parley/", http.StripPrefix("/parley", &httputil.ReverseProxy{ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(node)
		r.Out.Header.Del("Cookie")
		r.Out.Header.Set("Authorization", "Bearer "+h.token)
	}}))
	app.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'")
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(appPage)) // the client may have gone away
	})
	proxy := httptest.NewServer(app)
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() }) // after the browser, whose streams end first
	b := h.openBrowser()
	b.do(chromedp.Navigate(proxy.URL + "/"))
	b.until(`document.querySelector('parley-form').shadowRoot?.querySelector('input')`)
	b.run(`document.querySelector('parley-form').focus()`)
	b.press("Fae")
	b.press("\r")
	b.until(`document.querySelector('parley-form').shadowRoot.querySelector('[part=state]')?.innerText.includes('Answered by you')`)
	b.checkNoFaults()
	if got := h.outcome(asked).Values.Text(); got != `{"name":"Fae"}` {
		t.Error(got)
	}
}
