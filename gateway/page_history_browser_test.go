package gateway

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/actors/view"
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

// nextMillisecond waits for it: times are in milliseconds, and those within one are in the order of numbers.
func nextMillisecond() {
	for now := time.Now().UnixMilli(); time.Now().UnixMilli() == now; {
		runtime.Gosched()
	}
}

// TestHistoryIsInTheOrderOfDecisions decides calls in another order than they were asked in, with a rule's between them. A decision that
// comes while the page is open is the first line, and the lines of a further part go on where the first part ends.
func TestHistoryIsInTheOrderOfDecisions(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	var calls []view.Permitted
	for i := range 60 {
		calls = append(calls, h.shell(fmt.Sprint("echo ", i)))
	}
	h.decide(h.shell("make"), "always")
	nextMillisecond()
	for i := range 59 {
		h.decide(calls[i], "once")
	}
	nextMillisecond()
	h.shell("make") // by the rule
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/history")
	b.live()
	lines := `[...document.querySelectorAll(".decisions .entry .what")].map((e) => e.textContent).join()`
	if got := b.text(lines); !strings.HasPrefix(got, "make,echo 58,echo 57,echo 56,") {
		t.Errorf("the lines begin as %.60s", got)
	}
	h.decideBecause(calls[59].Form, "deny", "no")
	b.until(lines + `.startsWith("echo 59,make,echo 58,")`)
	h.decide(h.shell("echo last"), "once")
	b.until(lines + `.startsWith("echo last,echo 59,make,echo 58,")`)
	b.run(`document.querySelector("#rows").scrollTo(0, 1e6)`)
	b.until(`document.querySelectorAll(".decisions .entry").length === 63`)
	if got := b.text(lines); !strings.HasSuffix(got, ",echo 2,echo 1,echo 0,make") {
		t.Errorf("the lines end as %s", got[len(got)-60:])
	}
	b.shotIfWanted("history-order")
	b.checkNoFaults()
}

// The index for searching refuses writes from fillIndex to freeIndex.
const (
	fillIndex = `CREATE TRIGGER full BEFORE UPDATE ON mailbox BEGIN SELECT zeroblob(2147483647); END`
	freeIndex = `DROP TRIGGER full`
)

// index opens the node's index for searching, as the node does, whose process this is.
func (h *pageServer) index() *sql.DB {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(h.t.TempDir()), "*", "search.db"))
	if err != nil || len(files) != 1 {
		h.t.Fatal(files, err)
	}
	index, err := sql.Open("sqlite", "file:"+files[0]+"?vfs=unix-excl&_pragma=busy_timeout(10000)")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = index.Close() })
	return index
}

// TestHistoryGoesOnOnceItsIndexFollows has the index of what was decided refuse writes, here as too large ones. The page says that decisions are
// missing, and has them and their number once the index takes writes again, without a reload.
func TestHistoryGoesOnOnceItsIndexFollows(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.shell("make first"), "once")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/history")
	b.live()
	b.reads(".decisions .tally", "1 decision")
	index := h.index()
	if _, err := index.ExecContext(t.Context(), fillIndex); err != nil {
		t.Fatal(err)
	}
	h.decide(h.shell("make second"), "once")
	b.reads(".decisions .tally", "not listed yet")
	b.shotIfWanted("history-behind")
	if got := b.text(`document.querySelectorAll(".decisions .entry").length`); got != "1" {
		t.Errorf("%s lines without the index", got)
	}
	if _, err := index.ExecContext(t.Context(), freeIndex); err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelector(".decisions .tally").innerText === "2 decisions" && document.querySelectorAll(".decisions .entry").length === 2`)
	b.open("/history?q=second")
	b.live()
	b.reads(".decisions .tally", "1 decision with “second”")
	if _, err := index.ExecContext(t.Context(), fillIndex); err != nil {
		t.Fatal(err)
	}
	h.decide(h.shell("make third"), "once")
	b.open("/history?q=fourth")
	b.live()
	b.reads("#empty", "Nothing is listed yet.")
	if _, err := index.ExecContext(t.Context(), freeIndex); err != nil {
		t.Fatal(err)
	}
	b.reads("#empty", "Nothing matches.")
	b.checkNoFaults()
}
