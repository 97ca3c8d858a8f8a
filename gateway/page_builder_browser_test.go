package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

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
	b.fill(in("name"), f.Name)
	if f.Label != "" {
		b.fill(in("label"), f.Label)
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
			b.fill(in(name), words)
		}
	}
	if !f.Example.IsNull() {
		b.fill(in("example"), f.Example.Text())
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
	b.fill(at+"[name=value]", o.Value)
	if o.Label != "" {
		b.fill(at+"[name=label]", o.Label)
		b.fill(at+"[name=description]", o.Description)
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
		b.fill(at, f.Default.Text())
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
			b.fill(at, fmt.Sprint(value))
		default:
			b.fill(part(i, "[name=pattern]"), string(f.Pattern))
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

var _ = slices.Contains[[]string]
var _ = strings.Contains

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
