package gateway

import (
	"fmt"
	"html"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/events"
	"parley/internal/eventually"
)

// TestPaletteFindsWhatTheNodeHas opens the palette by its key and by a click, and by keys alone goes to an agent that the page does not name, to a
// question that it does not list, to a place, to what a reason says, and to the rules of an agent.
func TestPaletteFindsWhatTheNodeHas(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 31 { // more than the rail names, and newer
		h.guest(fmt.Sprintf("k%02d", i))
	}
	h.ask(parley.Form{To: "HOST", Title: "Which <b>vendor</b> for lot 3?", Fields: []events.Field{{Name: "vendor"}}})
	h.decideBecause(h.shell("git push").Form, "deny", "use the staging mirror")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 900))
	search := func(text, group, found string) {
		t.Helper()
		b.until(`document.activeElement.matches(".palette input")`)
		b.press(text)
		b.until(`[...document.querySelectorAll(".palette ul[aria-label='` + group + `'] li")].some((e) => e.textContent.includes("` + found + `"))`)
		for range 20 {
			if b.text(`document.querySelector(".palette li[aria-selected=true]").textContent.includes("`+found+`")`) == "true" {
				break
			}
			b.press(kb.ArrowDown)
		}
		b.press(kb.Enter)
	}
	open := func() {
		t.Helper()
		b.open("/settings")
		b.live()
		b.press("k", chromedp.ModifierCtrl)
	}
	open()
	search("vendor lot", "Needs you", "Which <b>vendor</b>")
	b.until(`location.pathname.includes("/forms/") && document.querySelector("#alone .heading").textContent.includes("Which <b>vendor</b>")`)
	open()
	search("staging", "Found in mail and decisions", "“use the staging mirror”")
	b.reads("#alone .outcome", "use the staging mirror")
	open()
	search("rules fae", "Do", "See rules of fae")
	b.until(`location.pathname.endsWith("/agents/fae") && location.search === "?tab=rules"`)
	open()
	search("fae", "Go to", "fae")
	b.until(`location.pathname.endsWith("/agents/fae") && !location.search`)
	open()
	search("topi", "Go to", "Topics")
	b.until(`location.pathname.endsWith("/topics")`)
	open()
	search("mirror", "Found in mail and decisions", "All decisions")
	b.until(`location.pathname.endsWith("/history") && location.search === "?q=mirror" && document.querySelectorAll(".decisions .entry").length === 1`)
	b.live()
	b.click(".search") // a click has it too
	b.until(`document.activeElement.matches(".palette input")`)
	b.press("staging")
	b.until(`[...document.querySelectorAll(".palette mark")].some((e) => e.textContent === "staging")`)
	b.shotIfWanted("find")
	if wrong := b.text(overlaps); wrong != "" {
		t.Error(wrong)
	}
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	if wrong := b.violations(string(source)); wrong != "" {
		t.Error(wrong)
	}
	b.press(kb.Escape)
	b.until(`!document.querySelector("dialog")`)
	b.checkNoFaults()
}

// TestPaletteDecidesByItsWordsAlone opens the palette over a call. Enter alone goes to a place, and so does the name of the agent that asks: the call
// waits still. The word of the decision denies it.
func TestPaletteDecidesByItsWordsAlone(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	call := h.shell("git push")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 900))
	marked := func(typed, want string) {
		t.Helper()
		b.open("/forms/" + call.Form.String() + "?in=questions")
		b.live()
		b.press("k", chromedp.ModifierCtrl)
		b.until(`document.activeElement.matches(".palette input")`)
		b.press(typed)
		b.until(`document.querySelector(".palette li[aria-selected=true]").firstElementChild.textContent === "` + want + `"`)
		b.press(kb.Enter)
	}
	marked("", "Needs you")
	b.until(`location.pathname.endsWith("/questions")`)
	marked("fae", "fae")
	b.until(`location.pathname.endsWith("/agents/fae")`)
	marked("push", "git push")
	b.until(`!document.querySelector("dialog")`)
	if n := h.waitingCalls(); n != 1 {
		t.Errorf("%d calls wait", n)
	}
	b.open("/forms/" + call.Form.String() + "?in=questions")
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.press("k", chromedp.ModifierCtrl)
	b.until(`document.activeElement.matches(".palette input")`)
	b.press("deny")
	b.until(`document.querySelector(".palette li[aria-selected=true]").textContent.startsWith("Deny")`)
	b.press(kb.Enter)
	eventually.Holds(t, "it is denied", func() bool { return h.waitingCalls() == 0 })
	b.checkNoFaults()
}

// TestFindIsAPage reads what is found without a script, for a reader who may see all and for a guest, and asks with words that are none.
func TestFindIsAPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.shell("make <b>")
	text := func(query string) string {
		status, _, body := h.get("/find?q="+query, "text/html")
		if status != 200 {
			t.Fatal(query, status, body)
		}
		_, body, _ = strings.Cut(body, `id="found"`)
		body, _, _ = strings.Cut(body, "</main>")
		if strings.Contains(body, "make <b>") {
			t.Error("a command is read as HTML")
		}
		return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString("<"+body, " "))), " ")
	}
	for query, want := range map[string]string{
		"":           "",
		"+":          "",
		"make":       "Needs you make <b> fae Found in mail and decisions All mail with “make” All decisions with “make”",
		"FA":         "Go to fa e Waiting for you Needs you make <b> fae Found in mail and decisions All mail with “FA” All decisions with “FA”",
		"access+fae": "Do See access of fae Found in mail and decisions All mail with “access fae” All decisions with “access fae”",
		"%22+*":      "",
	} {
		if got := text(query); got != want {
			t.Errorf("%q finds %s", query, got)
		}
	}
	h.token = makeToken(t, h.fae, "read")
	if got := text("fae"); strings.Contains(got, "Go to") {
		t.Errorf("a guest is led to %s", got)
	}
	if status, _, _ := h.postForm("/find", nil); status != 400 {
		t.Errorf("by POST: %d", status)
	}
}
