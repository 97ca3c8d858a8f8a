package gateway

import (
	"testing"

	"parley/actors"
	"parley/capabilities"
	"parley/events"
)

func TestHostileTextIsShownAsText(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>"'` + "\u202egpj.exe\u200b"
	h.guest("<b>joe")
	asked := h.ask(actors.Ask{
		Title: evil, Description: "javascript:alert(3) " + evil,
		Fields: []events.Field{
			{Name: "action", Label: evil, Help: evil, Placeholder: evil, Default: capabilities.String(evil), Example: capabilities.String(evil)},
			{Name: "submit", Label: "javascript:alert(4)", Type: events.Select, Options: []events.Option{{Value: evil, Label: evil, Description: evil}}},
			{Name: "<i>", Label: "", Type: events.Radio, Options: []events.Option{{Value: evil}, {Value: "b", Label: "\u2066x\u2069"}}},
			{Name: "elements", Label: "\u0000\u001b[31m"},
		},
	})
	if _, err := h.fae.Send(t.Context(), "HOST", `<a href="javascript:alert(5)">hi</a> `+evil); err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.open("/agents")
	b.reads(".agent", `<b>joe`)
	b.open("/")
	b.reads(".heading", `<script>alert(1)</script><img src=x onerror=alert(2)>"'\u{202e}gpj.exe\u{200b}`)
	b.reads(".help", `\u{202e}gpj.exe`)
	b.reads(".text", `<a href="javascript:alert(5)">hi</a>`)
	if found := b.text(`document.querySelectorAll('#main :is(script, img, iframe), #main [onerror], a[href^="javascript:"]').length`); found != "0" {
		t.Errorf("%s elements were made of text", found)
	}
	if seen := b.text(`/[\u202a-\u202e\u2066-\u2069\u200b\u0000\u001b]/.test(document.body.innerText)`); seen != "false" {
		t.Error("the page has characters that hide")
	}
	b.set(fieldAt(1)+" select", evil)
	b.click(fieldAt(2) + " label:nth-of-type(1)")
	b.click(answerButton)
	b.reads(".state", "Answered")
	b.reads(".answers", `<img src=x onerror=alert(2)>`)
	b.checkNoFaults()
	values, _ := h.outcome(asked).Values.AsRecord()
	for _, name := range []string{"action", "submit", "<i>"} {
		if values[name].Text() != evil {
			t.Errorf("%s: %q", name, values[name].Text())
		}
	}
}

func TestOlderMessagesAreLoadedOnDemand(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for range 120 {
		if _, err := h.fae.Send(t.Context(), "HOST", "a word"); err != nil {
			t.Fatal(err)
		}
	}
	b := h.openBrowser()
	b.open("/")
	b.until(`document.querySelectorAll('#stream > li').length === 50 && scrollY > 100`)
	b.text(`scrollTo(0, 0)`)
	b.until(`document.querySelectorAll('#stream > li').length === 100`)
	b.text(`scrollTo(0, 0)`)
	b.until(`document.querySelectorAll('#stream > li').length === 120 && !document.getElementById('older')`)
	b.until(`[...document.querySelectorAll('#stream > li')].every((c, i) => Number(c.dataset.number) === i)`)
	b.checkNoFaults()
}
