package gateway

import (
	"flag"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

func TestHostileTextIsShownAsText(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>"'` + "\u202egpj.exe\u200b"
	h.guest("<b>joe")
	asked := h.ask(parley.Form{
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
	b.open("/mail")
	b.reads(".heading", `<script>alert(1)</script><img src=x onerror=alert(2)>"'\u{202e}gpj.exe\u{200b}`)
	b.reads(".help", `\u{202e}gpj.exe`)
	b.reads("#stream .what", `<a href="javascript:alert(5)">hi</a>`)
	if found := b.text(`document.querySelectorAll(':is(#main, #stream) :is(script, img, iframe), #main [onerror], #stream [onerror], a[href^="javascript:"]').length`); found != "0" {
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

var messages = flag.Int("messages", 400, "number of messages in the list that a test scrolls: 10000 for the figures")

// TestListIsScrolledInBoundedMemory scrolls to the oldest message and back. The list has all messages in order, and few rows
// at a time.
func TestListIsScrolledInBoundedMemory(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.sendMany(*messages)
	b := h.openBrowser()
	b.open("/mail")
	t.Logf("first paint at %s ms, %s", b.text(`Math.round(performance.getEntriesByName('first-contentful-paint')[0]?.startTime)`), b.heap())
	t.Logf("the page takes %s", b.text(`((all) => Math.round(all.reduce((n, r) => n + r.encodedBodySize, 0) / 1024) + " KiB over the wire in " + all.length + " responses, of which " + Math.round(all[0].encodedBodySize / 1024) + " KiB of HTML"`+
		`)([...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource').filter((r) => r.name.includes('/assets/'))])`))
	b.run(`window.numbers = new Set(); window.most = 0; window.pane = document.getElementById('rows'); new MutationObserver(() => {
		const rows = [...document.querySelectorAll('#stream .entry')];
		for (const r of rows) numbers.add(Number(r.dataset.number));
		window.most = Math.max(most, rows.length);
	}).observe(document.getElementById('stream'), { childList: true, subtree: true });
	window.isSorted = () => [...document.querySelectorAll('#stream .entry')].every((r, i, all) => i === 0 || Number(r.dataset.number) < Number(all[i - 1].dataset.number));
	window.down = setInterval(() => { pane.scrollTop += 1500 }, 10)`)
	eventually.Holds(t, "the oldest message is in view", func() bool {
		return b.text(`!document.getElementById('older') && Boolean(document.querySelector('#stream .entry[data-number="0"]'))`) == "true"
	})
	t.Logf("at the end %s", b.heap())
	b.run(`clearInterval(down)`)
	if got := b.text(`isSorted() + " " + numbers.size + " " + (most < 350)`); got != fmt.Sprintf("true %d true", *messages) {
		t.Errorf("in order, rows that came, few at a time: %s", got)
	}
	for range 3 {
		b.run(`pane.scrollTop = 3400`)
		b.until(fmt.Sprintf(`document.querySelector('#stream .entry[data-number="%d"]')?.getBoundingClientRect().bottom > 0 && isSorted()`, *messages-60))
		b.run(`pane.scrollTop = pane.scrollHeight`)
		b.until(`document.querySelector('#stream .entry[data-number="0"]') && isSorted()`)
		t.Logf("once more %s", b.heap())
	}
	b.open("/mail?kind=message") // of a list that the node picks, no row is lost at the end of a part
	b.live()
	b.until(`document.querySelectorAll('#stream .entry').length >= 50`)
	b.run(`document.getElementById('rows').scrollTop = 2000`)
	b.until(`document.querySelectorAll('#stream .entry').length >= 100`)
	for i := range 2 {
		if _, err := h.fae.Send(t.Context(), "HOST", "a new word"); err != nil {
			t.Fatal(err)
		}
		b.until(fmt.Sprintf(`((all) => all[0] === %d && all.every((n, i) => n === all[0] - i))([...document.querySelectorAll('#stream .entry')].map((r) => Number(r.dataset.number)))`, *messages+i))
	}
	b.open("/mail?group=agent") // an agent has one heading, however many parts were loaded and come
	b.live()
	b.run(`document.getElementById('rows').scrollTop = 2000`)
	b.until(`document.querySelectorAll('#stream .entry').length >= 100 && document.querySelectorAll('#stream .group').length === 1`)
	if _, err := h.fae.Send(t.Context(), "HOST", "the last word"); err != nil {
		t.Fatal(err)
	}
	b.until(fmt.Sprintf(`((all) => all[0] === %d && all.length > 100 && all.every((n, i) => n === all[0] - i))([...document.querySelectorAll('#stream .entry')].map((r) => Number(r.dataset.number))) && document.querySelectorAll('#stream .group').length === 1`, *messages+2))
	b.checkNoFaults()
}

// heap returns the size of the page's heap after a collection.
func (b *tab) heap() string {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		b.t.Fatal(err)
	}
	return b.text(`Math.round(performance.memory.usedJSHeapSize / 1024) + " KiB of heap"`)
}
