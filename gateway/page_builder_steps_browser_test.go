package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/capabilities"
	"parley/events"
)

// openBuilder opens the builder by a command, as a person does.
func (b *tab) openBuilder(line string) {
	b.t.Helper()
	b.fill("#line", line)
	b.enterLine()
	b.until(`document.querySelector('dialog.builder[open]')`)
}

// sendBuilt is the selector of the builder's send button. The preview has a similar one.
const sendBuilt = ".builder > .acts .primary"

// enterLine sends the command line.
func (b *tab) enterLine() {
	b.t.Helper()
	b.press(kb.Escape)
	b.press(kb.Enter)
}

// part returns a selector within a field of the builder, by its position from 1.
func part(i int, within string) string {
	return fmt.Sprintf(".parts > li:nth-child(%d) %s", i, within)
}

// unfold opens the details of a field.
func (b *tab) unfold(i int) {
	b.t.Helper()
	b.click(part(i, "summary"))
	b.until(fmt.Sprintf(`document.querySelector(%q).open`, part(i, "details")))
}

// paste inserts text that may have characters without a key.
func (b *tab) paste(selector, text string) {
	b.t.Helper()
	b.fill(selector, "")
	if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.t.Fatal(err)
	}
}

// choose selects an option of a menu, and fires the events of a person's choice.
func (b *tab) choose(selector, value string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`((e) => { if (!e) return false; e.value = %q; e.dispatchEvent(new Event('input', { bubbles: true })); return true })(document.querySelector(%q))`, value, selector))
}

// built returns fields of each type, with all members that a field may have.
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

// build enters a field into the builder.
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

// buildPattern sets the rules of a pattern, and types the pattern where no rule fits.
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
		b.shot(name)
	}
}

// buildScene enters an unfinished form with errors at its fields.
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
	b.reads(".part .wrong", "A name is required")
}

// jsonOf returns a field as comparable JSON, with the keys of its pattern in order.
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
