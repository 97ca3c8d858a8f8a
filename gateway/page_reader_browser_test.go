package gateway

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/actors"
	"parley/events"
)

// What a reader may need of a page: a narrow window, no motion, the keyboard alone, and that nothing typed is lost.

func TestNothingIsWiderThanANarrowWindow(t *testing.T) {
	h := openPageServer(t)
	h.fillScene()
	long := strings.Repeat("without-a-space", 12)
	if _, err := h.node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: long, Title: long, Labels: map[string]string{"label": long}}); err != nil {
		t.Fatal(err)
	}
	option := []events.Option{{Value: long, Label: long, Description: long}, {Value: "b"}}
	h.ask(actors.Ask{Title: long, Description: long + "\n\n```\n" + long + "\n```\n", Fields: []events.Field{
		{Name: "a", Label: long, Help: long, Placeholder: long}, {Name: "b", Type: events.Select, Options: option, Label: long},
		{Name: "c", Type: events.Buttons, Options: option, Label: long}, {Name: "d", Type: events.Multiselect, Options: option, Label: long},
	}})
	if _, err := h.fae.Send(t.Context(), "HOST", long); err != nil {
		t.Fatal(err)
	}
	h.approve(long, `{"command":"`+long+`"}`)
	h.give()
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(320, 700))
	for _, path := range []string{"/", "/questions", "/agents", "/agents/fae", "/agents/" + long, "/agents/SELF", "/forms/0", "/forms/9"} {
		b.open(path)
		b.live()
		if wide := b.text(`[...document.querySelectorAll('body *')].filter((e) => !e.closest('.sr, .skip, pre, .input, table') && e.getBoundingClientRect().right > innerWidth + 1)
			.map((e) => e.tagName + '.' + e.className).slice(0, 5).join() + (document.documentElement.scrollWidth > innerWidth ? ' scrolls' : '')`); wide != "" {
			t.Errorf("%s is wider than its window: %s", path, wide)
		}
	}
	b.checkNoFaults()
}

func TestNothingMovesForWhoWantsNoMotion(t *testing.T) {
	h := openPageServer(t)
	b := h.openBrowser()
	for motion, want := range map[string]string{"reduce": "false", "no-preference": "true"} {
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: motion}},
		})
		if err != nil {
			t.Fatal(err)
		}
		b.open("/")
		b.live()
		b.run(`window.moves = undefined; new MutationObserver(() => { window.moves = document.getAnimations().length > 0; }).observe(document.getElementById('stream'), { childList: true })`)
		if _, err := h.fae.Send(t.Context(), "HOST", "a word"); err != nil {
			t.Fatal(err)
		}
		b.until(`window.moves !== undefined`)
		if got := b.text(`window.moves`); got != want {
			t.Errorf("%s: something moves: %s", motion, got)
		}
	}
	b.checkNoFaults()
}

func TestEscapeAsksOnlyWhereSomethingWasTyped(t *testing.T) {
	h := openPageServer(t)
	h.ask(actors.Ask{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	b := h.openBrowser()
	b.open("/questions")
	b.until(`document.activeElement.name === 'f0'`)
	b.press(kb.Escape)
	b.until(`document.activeElement.matches('li.message') && !document.querySelector('dialog')`)
	b.fill(fieldAt(0)+" input", "half")
	b.press(kb.Escape)
	b.reads("dialog[open]", "Leave this form?")
	b.click(`dialog button[value=keep]`)
	b.until(`!document.querySelector('dialog') && document.querySelector('[name=f0]').value === 'half' && document.activeElement.matches('li.message')`)
	b.open("/questions")
	b.until(`document.querySelector('[name=f0]').value === 'half'`)
	b.fill(fieldAt(0)+" input", "more")
	b.press(kb.Escape)
	b.reads("dialog[open]", "Leave this form?")
	b.click(`dialog button[value=discard]`)
	b.until(`document.querySelector('[name=f0]').value === ''`)
	b.open("/questions")
	b.until(`document.querySelector('[name=f0]').value === ''`)
	b.checkNoFaults()
}

func TestADraftIsSentAfterARestartAndAReload(t *testing.T) {
	browserPath(t)
	k := &restartingNode{t: t, folder: t.TempDir(), address: "127.0.0.1:0"}
	k.start()
	t.Cleanup(func() { k.stop() })
	h := &pageServer{t: t, server: k.server, node: k.node, url: "http://" + k.address, token: makeToken(t, k.node.Host(), "read", "ask", "answer", "admin")}
	h.fae = h.guest("fae")
	asked := h.ask(actors.Ask{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B", Type: events.Textarea}}})
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.fill(fieldAt(0)+" input", "half")
	b.fill(fieldAt(1)+" textarea", "a form")
	k.stop()
	b.reads("#connection", "Reconnecting")
	k.start()
	h.node = k.node
	var err error
	if h.fae, err = k.node.ActAs(t.Context(), "fae"); err != nil {
		t.Fatal(err)
	}
	b.until(`document.getElementById('connection').textContent === '' && document.querySelector('[name=f0]').value === 'half'`)
	b.open("/questions")
	b.until(`document.querySelector('[name=f0]').value === 'half' && document.querySelector('[name=f1]').value === 'a form'`)
	b.click(answerButton)
	b.reads(".state", "Answered")
	b.checkNoFaults()
	if got := h.outcome(asked).Values.Text(); got != `{"a":"half","b":"a form"}` {
		t.Error(got)
	}
}
