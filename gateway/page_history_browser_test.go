package gateway

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestHistoryTableIsUsedByHand moves through the table of History by keys and clicks, filters it by a menu, and reads it as cards in a narrow
// window. More lines come as it is scrolled.
func TestHistoryTableIsUsedByHand(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.shell("make first"), "always")
	for i := range 60 {
		h.decide(h.shell(fmt.Sprint("echo ", i)), "once")
	}
	h.shell("make first")
	h.decideBecause(h.shell("make last").Form, "deny", "not today")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/history")
	b.live()
	b.reads(".decisions .tally", "63 decisions")
	b.reads("#alone .outcome", "not today")
	b.until(`document.querySelector(".decisions thead").checkVisibility() && document.querySelector(".decisions .entry:has([aria-current]) .what").textContent === "make last"`)
	b.run(`document.querySelector(".decisions .entry [aria-current]").focus()`)
	b.press("j")
	at := `[...document.querySelectorAll(".decisions .entry a")].indexOf(document.activeElement)`
	first := b.text(`[...document.querySelectorAll(".decisions .entry")].findIndex((r) => r.querySelector("[aria-current]"))`)
	b.until(at + " === " + first + " + 1")
	b.press("j")
	b.until(at + " === " + first + " + 2")
	b.run(`[...document.querySelectorAll(".decisions .entry a")].find((a) => a.textContent === "echo 59").focus()`)
	b.press(kb.Enter)
	b.until(`document.querySelector("#alone .heading").textContent.includes("echo 59") && location.pathname.includes("/forms/")`)
	b.until(`document.querySelector(".decisions .entry:has([aria-current]) .what").textContent === "echo 59"`)
	b.run(`document.querySelector("#rows").scrollTo(0, 1e6)`)
	b.until(`document.querySelectorAll(".decisions .entry").length === 63`)
	b.until(`[...document.querySelectorAll(".decisions .entry")].at(-1).querySelector(".verdict").innerText.startsWith("Always allowed")`)
	b.open("/history")
	b.live()
	b.click(".decisions .filters details:nth-child(4) summary")
	b.click(`.decisions .filters details[open] a[href*="decision=denied"]`)
	b.until(`document.documentElement.dataset.live && document.querySelectorAll(".decisions .entry").length === 1`)
	b.reads(".decisions .filters details:nth-child(4) summary", "Denied")
	b.do(chromedp.EmulateViewport(390, 844))
	b.open("/history")
	b.live()
	b.until(`!document.querySelector(".decisions thead").checkVisibility() && document.querySelector(".decisions .entry").offsetHeight > 80`)
	if wrong := b.text(overlaps); wrong != "" {
		t.Error(wrong)
	}
	b.click(".decisions .filters details:nth-child(5) summary")
	if wrong := b.text(`(() => { const box = document.querySelector(".decisions details[open] .panel").getBoundingClientRect(); return box.bottom <= innerHeight + 1 && box.width === innerWidth && box.top > 0 ? "" : JSON.stringify(box) })()`); wrong != "" {
		t.Error("the menu is not at the edge: ", wrong)
	}
	b.click(`.decisions .filters details[open] a[href*="by=rules"]`)
	b.until(`document.documentElement.dataset.live && document.querySelectorAll(".decisions .entry").length === 1`)
	b.reads(".decisions .by", "Rule")
	b.checkNoFaults()
}
