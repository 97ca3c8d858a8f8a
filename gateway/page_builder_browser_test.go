package gateway

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

func TestFormIsBuiltFieldByField(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.openBuilder("/form")
	b.fill("#builder-to", "fa")
	b.reads(".combined .suggestions", "fae")
	b.press(kb.Tab)
	b.until(`document.getElementById('builder-to').value === 'fae'`)
	b.fill("[name=title]", "A new server")
	b.fill("[name=description]", "A few things I cannot know.")
	b.set("[name=deadline]", "2199-01-31T12:00")
	b.click("[name=noForward]")

	want := built()
	for i, f := range want {
		if i > 0 {
			b.click(".parts + [name=add]")
		}
		b.build(i+1, f)
	}
	b.reads(".preview .heading", "A new server")
	b.until(fmt.Sprintf(`document.querySelectorAll('.preview .field').length === %d`, len(want)))
	b.shootIfAsked("builder-all")
	b.click(sendBuilt)
	b.reads(".said", "Asked, as number 0.")
	b.until(`!document.querySelector('dialog') && document.getElementById('line').value === '' && Object.keys(localStorage).join() === 'parley.home'`)
	b.checkNoFaults()

	in, err := h.fae.Mail().Inbox(t.Context(), view.MessageFilter{Pending: true})
	if err != nil || len(in.Messages) != 1 {
		t.Fatalf("%v %v", in, err)
	}
	m := in.Messages[0]
	if m.Title != "A new server" || m.Description != "A few things I cannot know." || !m.NoForward || m.Deadline == 0 {
		t.Errorf("arrived: %+v", m)
	}
	for i, f := range want {
		if f.Type == events.Confirm && f.Options == nil {
			f.Options = []events.Option{{Value: "Yes"}, {Value: "No"}}
		}
		if got, want := jsonOf(t, m.Fields[i]), jsonOf(t, f); got != want {
			t.Errorf("field %d:\n got %s\nwant %s", i+1, got, want)
		}
	}
}

func TestBuilderIsAccessible(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.buildScene()
	for _, look := range []struct {
		name, scheme string
		width        int64
	}{{"wide", "light", 1100}, {"narrow-dark", "dark", 320}} { // both themes and both layouts
		b.do(chromedp.EmulateViewport(look.width, 900))
		b.prefer(look.scheme)
		b.shootIfAsked("builder-" + look.name)
		if found := b.violations(string(source)); found != "" {
			t.Errorf("%s:\n%s", look.name, found)
		}
		if wide := b.text(`[...document.querySelectorAll('.builder, .builder .halves, .builder .halves > *')].some((e) => e.scrollWidth > e.clientWidth)`); wide != "false" {
			t.Errorf("%s: it is wider than its window", look.name)
		}
	}
	b.checkNoFaults()
}

func TestBuilderShowsErrorsAtTheirFields(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.openBuilder(`/form nobody`)
	marked := func(name, says string) {
		t.Helper()
		b.click(sendBuilt)
		b.until(fmt.Sprintf(`((e) => e.name === %q && e.getAttribute('aria-invalid') && document.getElementById(e.getAttribute('aria-describedby')).innerText.toLowerCase().includes(%q))(document.activeElement)`, name, strings.ToLower(says)))
	}
	in := func(i int, name string) string { return part(i, "[name="+name+"]") }
	b.fill(in(1, "name"), "host")
	marked("description", "a form needs a description")
	b.fill("[name=description]", "A server")
	marked("recipient", "nobody")
	b.fill("#builder-to", "fae")
	b.set("[name=deadline]", "2001-01-31T12:00")
	marked("deadline", "has passed")
	b.set("[name=deadline]", "")

	b.fill(in(1, "name"), "a:b")
	marked("name", "the name holds a colon")
	b.paste(in(1, "name"), "a\u202eb")
	marked("name", "bidi")
	b.fill(in(1, "name"), "host")
	b.until(`!document.querySelector('.part [aria-invalid]')`) // the error is shown until it is corrected
	b.unfold(1)
	b.fill(in(1, "pattern"), `{"pattern":`)
	marked("pattern", "the pattern is not JSON")
	b.fill(in(1, "pattern"), `{"pattern":"(?=x)"}`)
	marked("pattern", "not a JSON Schema")
	b.fill(in(1, "pattern"), `{"maxLength":3}`)
	b.fill(in(1, "default"), "webby")
	marked("default", "default:")
	b.fill(in(1, "default"), "web")
	b.click(".parts + [name=add]")
	marked("name", "a name is required")
	b.fill(in(2, "name"), "host")
	b.click(sendBuilt)
	b.reads(part(1, ".wrong"), "twice")
	b.fill(in(2, "name"), "zone")
	b.choose(in(2, "type"), "select")
	marked("value", "needs options")
	b.choose(in(2, "type"), "number")
	b.unfold(2)
	b.fill(in(2, "default"), "eighty")
	marked("default", "want a number")
	b.fill(in(2, "default"), "80")
	if text := b.text(`JSON.stringify([...document.querySelectorAll('.builder :is(input, textarea, select)')].map((e) => e.value).filter(Boolean))`); !strings.Contains(text, `"A server"`) || !strings.Contains(text, `"web"`) {
		t.Errorf("what was typed is not all there: %s", text)
	}
	b.click(sendBuilt)
	b.reads(".said", "Asked, as number 0.")
	b.checkNoFaults()
}

func TestPatternMatchesItsRules(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.openBuilder("/form fae")
	b.unfold(1)
	pattern, rule := part(1, "[name=pattern]"), func(name string) string { return part(1, "[data-rule="+name+"]") }
	reads := func(want string) {
		t.Helper()
		b.until(fmt.Sprintf(`document.querySelector(%q).value.replace(/\s/g, '') === %q`, pattern, want))
	}
	b.fill(rule("minLength"), "2")
	b.fill(rule("pattern"), `^\d+$`)
	reads(`{"minLength":2,"pattern":"^\\d+$"}`)
	b.fill(pattern, `{"maxLength": 9, "not": {"const": "x"}}`)
	b.until(fmt.Sprintf(`document.querySelector(%q).value === '9' && document.querySelector(%q).value === ''`, rule("maxLength"), rule("minLength")))
	b.fill(rule("maxLength"), "8")
	reads(`{"maxLength":8,"not":{"const":"x"}}`)
	b.fill(pattern, `{"maxLength": `)
	b.until(fmt.Sprintf(`document.querySelector(%q).disabled`, rule("maxLength")))
	b.fill(pattern, `{"maxLength": 7, "not": {"const": "x"}}`)
	b.choose(part(1, "[name=type]"), "number") // rules of text do not apply to numbers
	reads(`{"not":{"const":"x"}}`)
	b.click(rule("integer"))
	b.fill(rule("minimum"), "0.5")
	reads(`{"not":{"const":"x"},"type":"integer","minimum":0.5}`)
	b.checkNoFaults()
}

func TestFormIsBuiltByKeyboard(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.openBuilder("/form fae")
	b.until(`document.activeElement.name === 'description'`)
	b.press("Two things")
	walk := func(name string, back ...chromedp.Modifier) { // presses Tab until the control has the focus
		t.Helper()
		for range 40 {
			b.press(kb.Tab, back...)
			if b.text(`document.activeElement.name`) == name {
				return
			}
		}
		t.Fatalf("Tab does not come to %s", name)
	}
	walk("name")
	b.press("one")
	b.press(kb.Enter) // Enter does not send the form
	walk("add")
	b.press(kb.Enter)
	b.until(`document.activeElement.name === 'name' && document.querySelectorAll('.parts > li').length === 2`)
	b.press("two")
	walk("type")
	b.press("sel")
	b.until(`document.querySelectorAll('.options li .option').length === 2`)
	walk("value")
	b.press("a")
	walk("value")
	b.press("b")
	b.press(kb.Enter)
	b.until(`document.querySelectorAll('.options li .option').length === 3`)
	b.press("c")
	walk("up") // the third option goes up
	b.press(kb.Enter)
	b.reads(".builder output", "Option moved to 2 of 3")
	b.until(`document.activeElement.name === 'up'`)
	b.press(kb.Enter)
	b.reads(".builder output", "Option moved to 1 of 3")
	b.until(`document.activeElement.name === 'down'`)
	walk("value", chromedp.ModifierShift)
	walk("up", chromedp.ModifierShift)
	b.press(kb.Enter)
	b.reads(".builder output", "Field moved to 1 of 2")
	b.until(`document.activeElement.name === 'down' && document.activeElement.closest('.parts > li').matches(':first-child')`)
	walk("remove")
	walk("remove")
	b.press(kb.Enter) // adds an option
	b.reads(".builder output", "Option 1 removed")
	b.until(`document.querySelectorAll('.options li .option').length === 2 && document.activeElement.name === 'value'`)
	b.press(kb.Enter, chromedp.ModifierCtrl)
	b.reads(".said", "Asked, as number 0.")
	b.until(`document.activeElement.id === 'line'`)
	b.checkNoFaults()
	if got, want := jsonOf(t, h.mail(h.fae, "0").Fields), `[{"name":"two","options":[{"value":"a"},{"value":"b"}],"type":"select"},{"name":"one","type":"text"}]`; got != want {
		t.Errorf("arrived: %s", got)
	}
}

func TestBuilderKeepsDraftUntilSentOrDiscarded(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("joe")
	b := h.openBrowser()
	b.open("/mail")
	b.openBuilder("/form fae")
	b.press(kb.Escape) // without input it does not ask
	b.until(`!document.querySelector('dialog') && document.activeElement.id === 'line' && document.getElementById('line').value === '/form fae'`)

	b.openBuilder("/form fae")
	b.fill("[name=description]", "Half a form")
	b.build(1, events.Field{Name: "zone", Type: events.Select, Required: true, Help: "where", Options: []events.Option{{Value: "eu"}, {Value: "us"}}, Default: capabilities.String("us")})
	b.open("/mail?as=fae")
	b.openBuilder("/form")
	b.until(`document.querySelector('[name=description]').value === ''`) // the draft is HOST's
	b.open("/mail")
	b.openBuilder("/form joe")
	b.until(`document.querySelector('[name=description]').value === 'Half a form' && document.getElementById('builder-to').value === 'joe'`)
	b.until(fmt.Sprintf(`document.querySelector(%q).value === 'us' && document.querySelector(%q).checked`, part(1, "[name=default]"), part(1, "[name=required]")))
	b.reads(".preview", "zone")

	leave := func(choice string) {
		t.Helper()
		b.fill("[name=title]", "T")
		b.press(kb.Escape)
		b.click("dialog.leave [value=" + choice + "]")
	}
	leave("stay")
	b.until(`!document.querySelector('dialog.leave') && document.activeElement.name === 'title' && document.querySelector('dialog.builder[open]')`)
	leave("keep")
	b.until(`!document.querySelector('dialog')`)
	b.openBuilder("/form")
	b.until(`document.querySelector('[name=description]').value === 'Half a form' && document.getElementById('builder-to').value === 'joe'`)
	leave("discard")
	b.until(`!document.querySelector('dialog') && Object.keys(localStorage).join() === 'parley.home'`)
	b.openBuilder("/form")
	b.until(`document.querySelector('[name=description]').value === '' && document.querySelectorAll('.parts > li').length === 1`)
	b.checkNoFaults()
	if in, err := h.node.Host().Mail().Inbox(t.Context(), view.MessageFilter{All: true}); err != nil || len(in.Messages) != 0 {
		t.Errorf("sent: %v %v", in, err)
	}
}

func TestBuilderShowsHostileTextAsText(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const evil = `<img src=x onerror=alert(1)><script>alert(2)</script>` + "\u202egpj.exe\u200b"
	const shown = `<img src=x onerror=alert(1)><script>alert(2)</script>\u{202e}gpj.exe\u{200b}`
	h.guest("<b>joe")
	b := h.openBrowser()
	b.open("/mail")
	b.openBuilder("/form")
	b.fill("#builder-to", "<")
	b.reads(".combined .suggestions", `<b>joe`)
	b.press(kb.Tab)
	b.paste("[name=title]", evil)
	b.paste("[name=description]", evil)
	options := []events.Option{{Value: evil, Label: evil, Description: evil}}
	b.build(1, events.Field{Name: "<i>", Label: evil, Type: events.Multiselect, Help: evil, Options: options, Example: capabilities.String(evil)})
	b.reads(".part bdi", shown)
	b.reads(part(1, ".default"), shown)
	for _, place := range []string{".heading", ".context", "legend", ".choice", ".describe", ".sample"} {
		b.reads(".preview "+place, shown)
	}
	if found := b.text(`document.querySelectorAll('.builder :is(img, script, i, [onerror])').length + ' ' + /[\u202a-\u202e\u200b]/.test(document.querySelector('.builder').innerText)`); found != "0 false" {
		t.Errorf("of text was made: %s", found)
	}
	b.click(sendBuilt)
	b.reads(".said", "Asked, as number 0.")
	b.checkNoFaults()
	if m := h.mail(h.node.Host(), "0"); m.Title != evil || m.Fields[0].Label != evil || m.ToName != "<b>joe" {
		t.Errorf("sent: %+v", m)
	}
}

// TestPressedPreviewStaysUntilReleased has the form change between the press and the release of the preview's button.
func TestPressedPreviewStaysUntilReleased(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail?as=fae")
	b.openBuilder("/form HOST What?")
	b.build(1, events.Field{Name: "port", Type: events.Number, Required: true})
	b.reads(".preview .field", "required")
	b.run(`const ask = fetch;
		window.fetch = async (to, ...more) => { const got = await ask(to, ...more); if (String(to).includes('/preview')) window.drawn = true; return got; };`)
	at := b.place(".preview button.primary")
	b.mouse(input.DispatchMouseEventTypeMousePressed, at)
	b.run(`const title = document.querySelector('[name=title]'); title.value = 'Which one'; title.dispatchEvent(new Event('input', { bubbles: true }))`)
	b.until(`window.drawn`)
	b.run(`document.querySelector('.preview form').addEventListener('submit', () => { window.answered = true })`)
	b.mouse(input.DispatchMouseEventTypeMouseReleased, at)
	b.until(`window.answered`)
	b.reads(".preview .heading", "Which one")
	b.checkNoFaults()
}

func TestPreviewSendsNothing(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail?as=fae") // the host acts as the guest
	b.openBuilder("/form HOST What?")
	b.build(1, events.Field{Name: "port", Type: events.Number, Required: true})
	b.reads(".preview .field", "required") // the last drawing, which would take the refusal away
	b.click(".preview button.primary")
	b.reads(".preview .wrong", "Required")
	b.fill(".preview .field input", "80")
	b.press(kb.Enter)
	b.reads(".preview .hint", "Nothing was sent")
	b.click(".parts + [name=add]")
	b.reads(".preview .hint", "left out")
	b.until(`document.querySelectorAll('.preview .field').length === 1`)
	if in, err := h.node.Host().Mail().Inbox(t.Context(), view.MessageFilter{All: true}); err != nil || len(in.Messages) != 0 {
		t.Errorf("sent: %v %v", in, err)
	}
	b.click(part(2, "[name=remove]"))
	b.click(sendBuilt)
	b.reads(".said", "Asked, as number 0.")
	b.checkNoFaults()
	if m := h.mail(h.node.Host(), "0"); m.From != h.fae.ID() || m.Description != "What?" || len(m.Fields) != 1 {
		t.Errorf("arrived: %+v", m)
	}
}
