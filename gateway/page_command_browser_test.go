package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/web"
	"parley/mailbox/form"
)

// command types a command line, sends it and waits for its result.
func (b *tab) command(line, says string) {
	b.t.Helper()
	b.text(`document.querySelector('.said').textContent = ''`)
	b.fill("#line", line)
	b.enterLine()
	b.reads(".said", says)
}

// mail returns one message of an agent's mailbox.
func (h *pageServer) mail(of *actors.Agent, which string) view.Message {
	h.t.Helper()
	e, err := of.Message(h.t.Context(), mustRef(which))
	if err != nil {
		h.t.Fatalf("message %s: %v", which, err)
	}
	return e
}

// status returns the outcome of a message to the host, with its reason.
func (h *pageServer) status(which string) string {
	h.t.Helper()
	o := h.mail(h.node.Host(), which).Outcome
	if o == nil {
		return "open"
	}
	return strings.TrimSpace(string(o.Status) + " " + o.Note)
}

func TestEachSlashCommand(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	joe := h.guest("joe dee")
	host := h.node.Host()
	asked := h.ask(parley.Form{Fields: []events.Field{{Name: "a"}}}) // 0
	h.ask(parley.Form{Fields: []events.Field{{Name: "a"}}})          // 1
	h.ask(parley.Form{Fields: []events.Field{{Name: "a"}}})          // 2
	for range 2 {                                                    // 3, 4
		if _, err := h.fae.Requests().Send(t.Context(), parley.Request{To: "HOST", Text: "a helper"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.fae.Send(t.Context(), "HOST", "take @me:@self"); err != nil { // 5
		t.Fatal(err)
	}
	newest := func(of *actors.Agent) view.Message {
		t.Helper()
		in, err := of.Mail().Inbox(t.Context(), view.MessageFilter{})
		if err != nil || len(in.Messages) == 0 {
			t.Fatalf("%v %v", in, err)
		}
		return in.Messages[len(in.Messages)-1]
	}
	b := h.openBrowser()
	b.open("/mail")
	for _, c := range []struct {
		line, says string
		came       func() string // the result, read from the mailboxes
		want       string
	}{
		{`/respond-form 0 a:b:c`, "Done.", func() string { return h.outcome(asked).Values.Text() }, `{"a":"b:c"}`},
		{`/decline 1 not today`, "Done.", func() string { return h.status("1") }, "declined not today"},
		{`/forward 2 "joe dee"`, "Done.", func() string { return fmt.Sprint(newest(joe).AnswerNeeded, newest(joe).Description) }, "trueConfigure the project"},
		{`/resolve 3 fae`, "Done.", func() string { return h.status("3") }, "answered"},
		{`/reject 4 "no such helper"`, "Done.", func() string { return h.status("4") }, "declined no such helper"},
		{`/adopt 5 me friend`, "Done.", func() string {
			held, err := host.Names().Show(t.Context(), "friend", false)
			ref, isRef := held.AsRef()
			return fmt.Sprint(isRef && ref.Target == h.fae.ID(), err)
		}, "true <nil>"},
		{`/reply 5 thank you`, "Done.", func() string {
			return fmt.Sprint(newest(h.fae).Text, newest(h.fae).ReplyTo == h.mail(host, "5").MessageID)
		}, "thank youtrue"},
		{`/send fae it's "done", see @peer:friend and a@b.c`, "Handed over: @peer:friend.", func() string {
			ref, _ := newest(h.fae).Edges["peer"].AsRef()
			return fmt.Sprint(newest(h.fae).Text, ref.Target == h.fae.ID())
		}, `it's "done", see @peer and a@b.ctrue`},
		{`/form fae "What is it?" a:A b:B:C`, "Asked, as number 8.", func() string {
			e := newest(h.fae)
			return fmt.Sprint(e.Description, jsonOf(t, e.Fields))
		}, `What is it?[{"label":"A","name":"a","required":true},{"label":"B:C","name":"b","required":true}]`},
		{`/cancel 8 changed my mind`, "Done.", func() string { return h.status("8") }, "cancelled changed my mind"},
		{`/request fae a reviewer of "this"`, "Asked, as number 9.", func() string { return newest(h.fae).Type + " " + newest(h.fae).Description }, `request a reviewer of "this"`},
		{`/names`, "friend", nil, ""},
		{`/dismiss 5`, "Done.", func() string { return fmt.Sprint(h.mail(host, "5").Dismissed) }, "true"},
		{`/help`, "/respond-form NUMBER FIELD:VALUE …", nil, ""},
	} {
		b.command(c.line, c.says)
		b.until(`document.getElementById('line').value === ''`)
		if c.came == nil {
			continue
		}
		if got := c.came(); got != c.want {
			t.Errorf("%s: %q, want %q", c.line, got, c.want)
		}
	}
	b.checkNoFaults()
}

func TestRefusedCommandKeepsItsText(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.ask(parley.Form{Fields: []events.Field{{Name: "port", Type: events.Number}}})
	if _, err := h.fae.Send(t.Context(), "HOST", "take @me:@self"); err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.open("/mail")
	for line, says := range map[string]string{
		`/fly`:                        "There is no /fly",
		`hello`:                       "Begin with a command",
		`/send`:                       "It goes: /send NAME TEXT",
		`/send nobody hi`:             "nobody",
		`/respond-form 0 port:eighty`: "want a number",
		`/respond-form 0 port`:        "put a colon",
		`/respond-form 0 ports:1`:     "no such field",
		`/respond-form 7 a:b`:         "7",
		`/form fae What? a`:           "put a colon",
		`/form fae What? a:A a:B`:     "this name stands twice",
		`/request nobody a helper`:    "nobody",
		`/resolve 0 fae`:              "request",
		`/reject 0`:                   "request",
		`/decline 1`:                  "form",
		`/cancel 0`:                   "0",
		`/forward 0 nobody`:           "nobody",
		`/reply 9 hi`:                 "9",
		`/adopt 1 you`:                "you",
		`/adopt 1 me a/b/c`:           "a/b/c",
		`/dismiss x`:                  "x",
		`/names fae/x/y`:              "fae",
		`/help me`:                    "It goes: /help",
	} {
		b.command(line, says)
		b.until(fmt.Sprintf(`document.querySelector('.said.failed') && document.getElementById('line').value === %q && document.getElementById('line').getAttribute('aria-invalid')`, line))
	}
	b.command(`/send fae @a:fae @a:HOST`, "give each an edge name of its own") // with its hint
	b.checkNoFaults()
}

// offers types a text, and waits until exactly these words are offered.
func (b *tab) offers(typed string, words ...string) {
	b.t.Helper()
	b.fill("#line", typed)
	b.until(fmt.Sprintf(`[...document.querySelectorAll('parley-command .suggestions b')].map((e) => e.textContent).join('\n') === %q`, strings.Join(words, "\n")))
}

// takes waits until the command line has a text.
func (b *tab) takes(line string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.getElementById('line').value === %q`, line))
}

func TestCommandsAreCompleted(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("joe dee")
	h.ask(parley.Form{Fields: []events.Field{
		{Name: "host name"}, {Name: "zone", Label: "Where", Type: events.Select, Options: []events.Option{{Value: "eu west"}, {Value: "us"}}},
		{Name: "tls", Type: events.Checkbox}, {Name: "helper", Type: events.Capability},
	}}) // 0
	if _, err := h.fae.Requests().Send(t.Context(), parley.Request{To: "HOST", Text: "a helper"}); err != nil { // 1
		t.Fatal(err)
	}
	if _, err := h.fae.Send(t.Context(), "HOST", "take @me:@self and @you:@host"); err != nil { // 2
		t.Fatal(err)
	}
	if _, err := h.fae.Send(t.Context(), "HOST", "no more"); err != nil { // 3
		t.Fatal(err)
	}
	if _, err := h.node.Host().Ask(t.Context(), parley.Form{To: "fae", Description: "Mine", Fields: []events.Field{{Name: "a"}}}); err != nil { // 4
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.open("/mail")

	b.offers("/re", "/respond-form", "/request", "/resolve", "/reject", "/reply")
	b.offers("/forw", "/forward")
	b.press(kb.Tab)
	b.takes("/forward ")
	b.reads(".suggestions", "Configure the project")
	b.press(kb.ArrowDown)
	b.press(kb.ArrowDown)
	b.press(kb.Enter)
	b.takes("/forward 0 ")
	b.reads(".suggestions", "joe dee")
	b.press("jo")
	b.until(`document.querySelectorAll('.suggestions li').length === 1`)
	b.press(kb.Tab)
	b.takes(`/forward 0 "joe dee" `)

	b.offers("/decline ", "1", "0")
	b.offers("/resolve ", "1")
	b.offers("/reject ", "1")
	b.offers("/cancel ", "4")
	b.offers("/reply ", "3", "2", "1", "0")
	b.offers("/dismiss 3", "3")
	b.offers("/adopt ", "2")
	b.offers("/adopt 2 ", "me", "you")
	b.reads(".suggestions", "agent")
	b.press(kb.ArrowUp)
	b.press(kb.Enter)
	b.takes("/adopt 2 you ")

	b.offers("/respond-form 0 ", "host name:", "zone:", "tls:", "helper:")
	b.reads(".suggestions", "Where, select")
	b.press(kb.Tab)
	b.takes(`/respond-form 0 "host name":`)
	b.press("web ")
	b.offers(`/respond-form 0 "host name":web zone:`, "zone:eu west", "zone:us")
	b.press(kb.Tab)
	b.takes(`/respond-form 0 "host name":web "zone:eu west" `)
	b.offers("/respond-form 0 tls:t", "tls:true")
	b.offers("/respond-form 0 helper:jo", "helper:joe dee")
	b.press(kb.Tab)
	b.takes(`/respond-form 0 "helper:joe dee" `)
	b.offers("/respond-form 99 ")
	b.command(`/respond-form 0 "host name":web "zone:eu west" tls:true "helper:joe dee"`, "Done.")

	b.offers("/send fae look at @peer:f", "fae")
	b.press(kb.Tab)
	b.takes("/send fae look at @peer:fae ")
	b.offers("/send fae look at @f", "fae")
	b.offers("/send fae look at me@f")
	b.offers("/form j", "joe dee")
	b.fill("#line", "/form ")
	b.reads(".suggestions li:first-child", "build a form …")
	b.press(kb.ArrowDown)
	b.press(kb.Enter)
	b.until(`document.querySelector('dialog.builder[open]')`)
	b.checkNoFaults()
}

func TestCommandLineShowsHostileTextAsText(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const evil = `<img src=x onerror=alert(1)>` + "\u202egpj.exe\u200b"
	const shown = `<img src=x onerror=alert(1)>\u{202e}gpj.exe\u{200b}`
	h.guest("<b>joe")
	h.ask(parley.Form{Title: evil, Description: evil, Fields: []events.Field{{Name: "<i>", Label: evil, Type: events.Select, Options: []events.Option{{Value: evil, Label: evil}}}}})
	b := h.openBrowser()
	b.open("/mail")
	b.offers("/send <", `<b>joe`)
	b.press(kb.Tab)
	b.takes("/send <b>joe ") // the inserted word is the unescaped name
	b.offers("/decline ", "0")
	b.reads(".suggestions", shown)
	b.offers("/respond-form 0 ", "<i>:")
	b.reads(".suggestions", shown)
	b.offers("/respond-form 0 <i>:", "<i>:"+shown)
	b.paste("#line", "/send <x>\u202e hi")
	b.enterLine()
	b.reads(".said.failed", `<x>`)
	if found := b.text(`document.querySelectorAll('parley-command :is(img, i, script)').length + ' ' + /[\u202e\u200b]/.test(document.querySelector('parley-command').innerText)`); found != "0 false" {
		t.Errorf("of text was made: %s", found)
	}
	b.checkNoFaults()
}

// TestPageValidatesAsTheNode compares the page's validation with the node's.
func TestPageValidatesAsTheNode(t *testing.T) {
	t.Parallel()
	options := []events.Option{{Value: "a"}, {Value: "b"}, {Value: strings.Repeat("x", 50)}}
	fields := []events.Field{
		{Name: "t", Type: events.Text, Required: true}, {Name: "d", Required: true, Default: capabilities.String("x")}, {Name: "n", Type: events.Number},
		{Name: "c", Type: events.Checkbox}, {Name: "cs", Type: events.Checkbox, Options: options}, {Name: "s", Type: events.Select, Options: options},
		{Name: "m", Type: events.Multiselect, Options: options, Required: true}, {Name: "r", Type: events.Radio, Options: options},
		{Name: "y", Type: events.Confirm}, {Name: "day", Type: events.Date}, {Name: "k", Type: events.Secret}, {Name: "p", Pattern: []byte(`{}`)}, {Name: "u", Type: events.URL},
	}
	answers := []string{
		`{}`, `{"t":"x","m":["a"]}`, `{"t":"","d":"","m":[]}`, `{"t":5,"d":null,"n":"5","c":"yes","cs":"a","s":"z","m":"a","r":["a"],"y":"Maybe","k":1,"p":[1]}`,
		`{"t":"x","n":1.5,"c":false,"cs":["a","b"],"s":"b","m":["a","a"],"r":"","y":"No","day":"2024-02-29","zz":1}`,
		`{"t":"x","m":["q"],"day":"2023-02-29"}`, `{"t":"x","m":["a"],"day":"31.1.2026"}`, `{"t":"x","m":["a"],"day":"2026-1-031"}`, `{"t":"x","m":["a"],"day":"2026-04-31","n":true}`,
		`{"t":"x","m":["a"],"day":"0000-01-01","u":"https://example.com"}`, `{"t":"x","m":["a"],"day":"1900-02-29"}`,
	}
	for _, url := range []string{
		"example.com", "https:example.com", "https:///a", "https://", "https://joe@:80/", "https://[::1]:8080/ü?q#c", "HTTP://a", "ftp://a", "https://a:65536", "https://a/ b",
		"https://a/\u202e", "https://a/\u00a0", " https://a", "javascript:alert(1)", "https://a/" + strings.Repeat("ü", 1020), "https://a/" + strings.Repeat("a", 2038),
	} {
		answers = append(answers, fmt.Sprintf(`{"t":"x","m":["a"],"u":%q}`, url))
	}
	answers = append(answers, `{"t":"x","m":["a"],"u":1}`)
	schema, err := form.Compile(fields)
	if err != nil {
		t.Fatal(err)
	}
	specs := make([]string, len(fields))
	for i, f := range schema.Fields() {
		specs[i] = web.FieldSpec(f)
	}
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.text(fmt.Sprintf(`import(%q).then((m) => { window.check = m.validateValues })`, h.path(h.server.site.Assets.URL("validate.js"))))
	b.until(`window.check`)
	for _, a := range answers {
		var values map[string]capabilities.Value
		if err := json.Unmarshal([]byte(a), &values); err != nil {
			t.Fatal(err)
		}
		_, err := schema.Check(values)
		want := map[string]string{}
		if err != nil {
			want = parley.AsError(err).Fields
		}
		var got map[string]string
		if err := json.Unmarshal([]byte(b.text(fmt.Sprintf(`JSON.stringify(check([%s], %s))`, strings.Join(specs, ","), a))), &got); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s\npage: %v\nnode: %v", a, got, want)
		}
	}
}

// TestKeyOfInputMethodSendsNothing presses what Safari sends when Enter confirms a composition: the composition has ended, and the
// code of the key alone tells. In each place where a key acts it does nothing.
func TestKeyOfInputMethodSendsNothing(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approve("shell", `{"command":"make"}`)
	b := h.openBrowser()
	const confirm = `(at, key) => {
		at.dispatchEvent(new CompositionEvent('compositionstart', { bubbles: true }));
		at.dispatchEvent(new CompositionEvent('compositionend', { bubbles: true, data: '日本' }));
		return at.dispatchEvent(new KeyboardEvent('keydown', { key, keyCode: 229, bubbles: true, cancelable: true, composed: true }));
	}`
	left := func(selector, key string) {
		t.Helper()
		b.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
		if got := b.text(fmt.Sprintf(`(%s)(document.querySelector(%q), %q)`, confirm, selector, key)); got != "true" {
			t.Errorf("%s at %s is handled", key, selector)
		}
	}
	b.open("/agents/fae")
	b.fill("#line", "日本")
	left("#line", "Enter")
	b.open("/forms/" + p.Form.String())
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	for _, key := range []string{"a", "d", "e", "Escape"} {
		left("#alone > .message", key)
	}
	b.click(asking(p) + " .why summary")
	b.fill(asking(p)+" .why textarea", "日本")
	left(asking(p)+" .why textarea", "Enter")
	left(asking(p)+" .why textarea", "Escape")
	b.press("k", chromedp.ModifierCtrl)
	left(".palette input", "Enter")
	left(".palette input", "ArrowDown")
	if n := h.waitingCalls(); n != 1 {
		t.Error("a key of an input method decides")
	}
	b.checkNoFaults()
}
