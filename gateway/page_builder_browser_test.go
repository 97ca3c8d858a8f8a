package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/actors"
	"parley/capabilities"
	"parley/events"
)

// openBuilder opens the builder as a person does: with a command.
func (b *tab) openBuilder(line string) {
	b.t.Helper()
	b.fill("#line", line)
	b.enterLine()
	b.until(`document.querySelector('dialog.builder[open]')`)
}

// sendBuilt is the button that sends what was built. The preview has one that looks the same.
const sendBuilt = ".builder > .acts .primary"

// enterLine sends what stands in the message box.
func (b *tab) enterLine() {
	b.t.Helper()
	b.press(kb.Escape)
	b.press(kb.Enter)
}

// part is the selector of what is in a field of the builder, by its place from 1.
func part(i int, within string) string {
	return fmt.Sprintf(".parts > li:nth-child(%d) %s", i, within)
}

// unfold opens the part of a field that is not shown at first.
func (b *tab) unfold(i int) {
	b.t.Helper()
	b.click(part(i, "summary"))
	b.until(fmt.Sprintf(`document.querySelector(%q).open`, part(i, "details")))
}

// paste puts text into an input at once, with characters that no keyboard has.
func (b *tab) paste(selector, text string) {
	b.t.Helper()
	b.fill(selector, "")
	if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.t.Fatal(err)
	}
}

// choose chooses in a menu as a person does, so that the page hears of it.
func (b *tab) choose(selector, value string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`((e) => { if (!e) return false; e.value = %q; e.dispatchEvent(new Event('input', { bubbles: true })); return true })(document.querySelector(%q))`, value, selector))
}

func TestAFormIsBuiltFieldByField(t *testing.T) {
	h := openParlour(t)
	b := h.openBrowser()
	b.open("/")
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
	b.until(`!document.querySelector('dialog') && document.getElementById('line').value === '' && localStorage.length === 0`)
	b.isFine()

	in, err := h.fae.Inbox(t.Context(), actors.View{Pending: true})
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

// built are fields of each type, with everything that a field may have.
func built() []events.Field {
	options := []events.Option{{Value: "a", Label: "The first", Description: "as it was"}, {Value: "b"}}
	text := capabilities.String
	return []events.Field{
		{Name: "host", Label: "Host name", Type: events.Text, Required: true, Default: text("web-1"), Placeholder: "web-…", Help: "Letters and dashes", Example: text("web-7"), Pattern: []byte(`{"maxLength":20,"minLength":3,"pattern":"^[a-z0-9-]+$"}`)},
		{Name: "notes", Type: events.Textarea, Default: text("none")},
		{Name: "port", Label: "Port: TCP", Type: events.Number, Default: capabilities.Int(9007199254740993), Example: capabilities.Int(80), Pattern: []byte(`{"minimum":1,"type":"integer"}`)},
		{Name: "tls", Type: events.Checkbox, Default: capabilities.Bool(true)},
		{Name: "zone", Type: events.Select, Options: options, Default: text("b")},
		{Name: "many", Type: events.Multiselect, Options: options, Default: capabilities.Strings("a", "b"), Pattern: []byte(`{"minItems":1}`)},
		{Name: "ticks", Type: events.Checkbox, Options: options, Default: capabilities.Strings("b")},
		{Name: "one", Type: events.Radio, Options: options},
		{Name: "speed", Type: events.Buttons, Options: options, Required: true},
		{Name: "sure", Type: events.Confirm, Default: text("No")},
		{Name: "day", Type: events.Date, Default: text("2026-02-28")},
		{Name: "key", Type: events.Secret, Help: "It is sealed."},
		{Name: "helper", Type: events.Capability},
		{Name: "any", Default: capabilities.Strings("x"), Pattern: []byte(`{"type":"array"}`)},
	}
}

// build makes up a field, the way it would be typed.
func (b *tab) build(i int, f events.Field) {
	b.t.Helper()
	in := func(name string) string { return part(i, "[name="+name+"]") }
	b.paste(in("name"), f.Name)
	if f.Label != "" {
		b.paste(in("label"), f.Label)
	}
	b.choose(in("type"), string(f.Type))
	if f.Required {
		b.click(in("required"))
	}
	for n, o := range f.Options {
		b.buildOption(i, n, o)
	}
	b.unfold(i)
	for name, words := range map[string]string{"placeholder": f.Placeholder, "help": f.Help} {
		if words != "" {
			b.paste(in(name), words)
		}
	}
	if !f.Example.IsNull() {
		b.paste(in("example"), f.Example.Text())
	}
	b.buildDefault(i, f)
	b.buildPattern(i, f)
}

func (b *tab) buildOption(i, n int, o events.Option) {
	b.t.Helper()
	at := part(i, fmt.Sprintf(".options li:nth-child(%d) ", n+1))
	if b.text(fmt.Sprintf(`Boolean(document.querySelector(%q))`, at)) == "false" {
		b.click(part(i, ".options [name=add]"))
	}
	b.paste(at+"[name=value]", o.Value)
	if o.Label != "" {
		b.paste(at+"[name=label]", o.Label)
		b.paste(at+"[name=description]", o.Description)
	}
}

func (b *tab) buildDefault(i int, f events.Field) {
	b.t.Helper()
	at := part(i, ".default [name=default]")
	if list, ok := f.Default.AsList(); ok && f.Type != "" {
		for _, v := range list {
			b.click(at + fmt.Sprintf("[value=%s]", v.Text()))
		}
		return
	}
	switch {
	case f.Default.IsNull():
	case f.Type == events.Checkbox:
		b.click(at)
	case f.Type == events.Select || f.Type == events.Confirm || f.Type == events.Date:
		b.choose(at, f.Default.Text())
	default:
		b.paste(at, f.Default.Text())
	}
}

// buildPattern sets the rules that there are for a pattern, and types it itself where there is none.
func (b *tab) buildPattern(i int, f events.Field) {
	b.t.Helper()
	if len(f.Pattern) == 0 {
		return
	}
	rules := map[string]any{}
	fromJSON(b.t, f.Pattern, &rules)
	for rule, value := range rules {
		at := part(i, fmt.Sprintf("[data-rule=%s]", rule))
		switch {
		case rule == "type" && value == "integer":
			b.click(part(i, "[data-rule=integer]"))
		case b.text(fmt.Sprintf(`Boolean(document.querySelector(%q))`, at)) == "true":
			b.paste(at, fmt.Sprint(value))
		default:
			b.paste(part(i, "[name=pattern]"), string(f.Pattern))
		}
	}
}

func (b *tab) shootIfAsked(name string) {
	b.t.Helper()
	if *screenshots != "" {
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(*screenshots+"/"+name+".png", picture, 0o600)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// buildScene has a form half-built, with what is wrong said at its fields.
func (b *tab) buildScene() {
	b.t.Helper()
	b.openBuilder("/form fae")
	b.fill("[name=title]", "Where shall it run?")
	b.fill("[name=description]", "I would set up the server today.")
	b.build(1, events.Field{Name: "host", Label: "Host name", Type: events.Text, Required: true, Default: capabilities.String("Web 1"), Help: "Letters and dashes", Pattern: []byte(`{"minLength":3,"pattern":"^[a-z0-9-]+$"}`)})
	b.click(".parts + [name=add]")
	b.build(2, events.Field{Name: "zone", Label: "Zone", Type: events.Radio, Options: []events.Option{{Value: "eu", Label: "Europe", Description: "Frankfurt"}, {Value: "us"}, {Value: "eu"}}})
	b.click(".parts + [name=add]")
	b.click(sendBuilt)
	b.reads(".part > .wrong", "A name is required")
}

func TestNobodyIsLeftOutOfBuildingAForm(t *testing.T) {
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openParlour(t)
	b := h.openBrowser()
	for _, look := range []struct {
		name, scheme string
		width        int64
	}{{"wide", "light", 1100}, {"dark", "dark", 1100}, {"narrow", "light", 320}, {"narrow-dark", "dark", 320}} {
		b.do(chromedp.EmulateViewport(look.width, 900))
		b.prefer(look.scheme)
		b.open("/")
		b.run(`localStorage.clear()`)
		b.buildScene()
		b.shootIfAsked("builder-" + look.name)
		if found := b.violations(string(source)); found != "" {
			t.Errorf("%s:\n%s", look.name, found)
		}
		if wide := b.text(`[...document.querySelectorAll('.builder, .builder .halves, .builder .halves > *')].some((e) => e.scrollWidth > e.clientWidth)`); wide != "false" {
			t.Errorf("%s: it is wider than its window", look.name)
		}
	}
	b.isFine()
}

// jsonOf gives a field as JSON that compares: with the keys of its pattern in order.
func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&plain); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(plain); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func fromJSON(t *testing.T, text []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

func TestTheBuilderSaysWhatIsWrongWhereItIsWrong(t *testing.T) {
	h := openParlour(t)
	b := h.openBrowser()
	b.open("/")
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
	b.until(`!document.querySelector('.part [aria-invalid]')`) // it is said as long as it is so
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
	b.isFine()
}

func TestAPatternAndItsRulesAreOne(t *testing.T) {
	h := openParlour(t)
	b := h.openBrowser()
	b.open("/")
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
	b.choose(part(1, "[name=type]"), "number") // the rules of text are none of numbers
	reads(`{"not":{"const":"x"}}`)
	b.click(rule("integer"))
	b.fill(rule("minimum"), "0.5")
	reads(`{"not":{"const":"x"},"type":"integer","minimum":0.5}`)
	b.isFine()
}

func TestAFormIsBuiltByKeyboardAlone(t *testing.T) {
	h := openParlour(t)
	b := h.openBrowser()
	b.open("/")
	b.openBuilder("/form fae")
	b.until(`document.activeElement.name === 'description'`)
	b.press("Two things")
	walk := func(name string, back ...chromedp.Modifier) { // with Tab, until it is there
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
	b.enter() // nothing is sent half-made
	walk("add")
	b.enterButton()
	b.until(`document.activeElement.name === 'name' && document.querySelectorAll('.parts > li').length === 2`)
	b.press("two")
	walk("type")
	b.press("sel")
	b.until(`document.querySelectorAll('.options li .option').length === 2`)
	walk("value")
	b.press("a")
	walk("value")
	b.press("b")
	b.enter()
	b.until(`document.querySelectorAll('.options li .option').length === 3`)
	b.press("c")
	walk("up") // the third option goes up
	b.enterButton()
	b.reads(".builder output", "Option moved to 2 of 3")
	b.until(`document.activeElement.name === 'up'`)
	b.enterButton()
	b.reads(".builder output", "Option moved to 1 of 3")
	b.until(`document.activeElement.name === 'down'`)
	walk("value", chromedp.ModifierShift)
	walk("up", chromedp.ModifierShift)
	b.enterButton()
	b.reads(".builder output", "Field moved to 1 of 2")
	b.until(`document.activeElement.name === 'down' && document.activeElement.closest('.parts > li').matches(':first-child')`)
	walk("remove")
	walk("remove")
	b.enterButton() // an option
	b.reads(".builder output", "Option 1 removed")
	b.until(`document.querySelectorAll('.options li .option').length === 2 && document.activeElement.name === 'value'`)
	b.press(kb.Enter, chromedp.ModifierCtrl)
	b.reads(".said", "Asked, as number 0.")
	b.until(`document.activeElement.id === 'line'`)
	b.isFine()
	if got, want := jsonOf(t, h.mail(h.fae, "0").Fields), `[{"name":"two","options":[{"value":"a"},{"value":"b"}],"type":"select"},{"name":"one","type":"text"}]`; got != want {
		t.Errorf("arrived: %s", got)
	}
}

// enterButton presses Enter on a button, as a keyboard does.
func (b *tab) enterButton() {
	b.t.Helper()
	b.press(kb.Enter)
}

func TestWhatIsBuiltIsKeptUntilItIsSentOrDiscarded(t *testing.T) {
	h := openParlour(t)
	h.guest("joe")
	b := h.openBrowser()
	b.open("/")
	b.openBuilder("/form fae")
	b.press(kb.Escape) // nothing was typed, and nothing is asked
	b.until(`!document.querySelector('dialog') && document.activeElement.id === 'line' && document.getElementById('line').value === '/form fae'`)

	b.openBuilder("/form fae")
	b.fill("[name=description]", "Half a form")
	b.build(1, events.Field{Name: "zone", Type: events.Select, Required: true, Help: "where", Options: []events.Option{{Value: "eu"}, {Value: "us"}}, Default: capabilities.String("us")})
	b.open("/")
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
	b.until(`document.activeElement.name === 'title' && document.querySelector('dialog.builder[open]')`)
	leave("keep")
	b.until(`!document.querySelector('dialog')`)
	b.openBuilder("/form")
	b.until(`document.querySelector('[name=description]').value === 'Half a form' && document.getElementById('builder-to').value === 'joe'`)
	leave("discard")
	b.until(`!document.querySelector('dialog') && localStorage.length === 0`)
	b.openBuilder("/form")
	b.until(`document.querySelector('[name=description]').value === '' && document.querySelectorAll('.parts > li').length === 1`)
	b.isFine()
	if in, err := h.node.Host().Inbox(t.Context(), actors.View{All: true}); err != nil || len(in.Messages) != 0 {
		t.Errorf("sent: %v %v", in, err)
	}
}

func TestHostileWordsAreTextInTheBuilder(t *testing.T) {
	h := openParlour(t)
	const evil = `<img src=x onerror=alert(1)><script>alert(2)</script>` + "\u202egpj.exe\u200b"
	const shown = `<img src=x onerror=alert(1)><script>alert(2)</script>\u{202e}gpj.exe\u{200b}`
	h.guest(`<b>` + "\u202e" + `joe`)
	b := h.openBrowser()
	b.open("/")
	b.openBuilder("/form")
	b.fill("#builder-to", "<")
	b.reads(".combined .suggestions", `<b>\u{202e}joe`)
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
	b.isFine()
	if m := h.mail(h.node.Host(), "0"); m.Title != evil || m.Fields[0].Label != evil || m.ToName != "<b>\u202ejoe" {
		t.Errorf("sent: %+v", m)
	}
}

func TestAPreviewCanBeTriedAndSendsNothing(t *testing.T) {
	h := openParlour(t)
	b := h.openBrowser()
	b.open("/")
	b.openBuilder("/form fae What?")
	b.build(1, events.Field{Name: "port", Type: events.Number, Required: true})
	b.reads(".preview .heading", "What?")
	b.click(".preview button.primary")
	b.reads(".preview .wrong", "Required")
	b.fill(".preview .field input", "80")
	b.press(kb.Enter)
	b.reads(".preview .hint", "Nothing was sent")
	b.click(".parts + [name=add]")
	b.reads(".preview .hint", "left out")
	b.until(`document.querySelectorAll('.preview .field').length === 1`)
	b.isFine()
	if in, err := h.node.Host().Inbox(t.Context(), actors.View{All: true}); err != nil || len(in.Messages) != 0 {
		t.Errorf("sent: %v %v", in, err)
	}
}
