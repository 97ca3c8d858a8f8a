package gateway

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/gateway/web"
)

// TestRulesPauseTogether pauses the rules of an agent on its page, and has all rules decide again on the page of rules and access. A token is
// revoked there.
func TestRulesPauseTogether(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openPageServer(t)
	h.decide(h.shell("make"), "always")
	h.decide(h.shell("make test"), "always")
	token := makeToken(t, h.node.Host(), "read")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/agents/fae")
	b.reads(".about", "You may write to it")
	b.shotIfWanted("agent-pause")
	b.click("button[name=pause-all]")
	b.reads("button[name=resume-all]", "Resume rules")
	if p := h.shell("make"); p.Form.IsZero() {
		t.Error("a paused rule decides")
	}
	if wrong := b.violations(string(source)); wrong != "" {
		t.Error(wrong)
	}
	b.open(web.AccessPath)
	b.reads(".pause-all button", "Resume all rules")
	b.reads("#tokens", "read")
	b.shotIfWanted("access-1440")
	b.click(".pause-all button")
	b.reads(".pause-all button", "Pause all rules")
	if p := h.shell("make test"); !p.Form.IsZero() {
		t.Error("a rule that was resumed does not decide")
	}
	if _, _, err := h.node.Credentials().Authenticate(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	b.until(`document.documentElement.dataset.live && [...document.querySelectorAll("#tokens [data-l=May]")].some((e) => e.innerText === "read")`)
	b.run(`[...document.querySelectorAll("#tokens tr")].find((r) => r.querySelector("[data-l=May]")?.innerText === "read").querySelector("button").click()`)
	b.until(`document.documentElement.dataset.live && ![...document.querySelectorAll("#tokens [data-l=May]")].some((e) => e.innerText === "read")`)
	if _, _, err := h.node.Credentials().Authenticate(t.Context(), token); err == nil {
		t.Error("the token is good still")
	}
	b.do(chromedp.EmulateViewport(390, 844))
	b.prefer("dark")
	b.shotIfWanted("access-390-dark")
	b.until(`new Set([...document.querySelectorAll("#tokens .does button")].map((e) => Math.round(e.getBoundingClientRect().right))).size === 1`) // in line
	b.until(`[...document.querySelectorAll("#tokens tbody tr")].every((r) => { const [th, of, does] = ["th", "[data-l=May]", ".does button"].map((s) => r.querySelector(s).getBoundingClientRect()); return does.top >= th.bottom - 1 && does.bottom <= r.getBoundingClientRect().bottom && does.left >= of.right - 1; })`)
	if wrong := b.violations(string(source)); wrong != "" {
		t.Error(wrong)
	}
	b.open(web.SettingsPath)
	b.shotIfWanted("settings-390-dark")
	if wrong := b.violations(string(source)); wrong != "" {
		t.Error(wrong)
	}
	b.do(chromedp.EmulateViewport(1440, 900))
	b.prefer("light")
	b.shotIfWanted("settings-1440")
	b.until(`document.querySelector(".sets > nav").checkVisibility() && document.querySelector(".sets > nav").getBoundingClientRect().right < document.querySelector("#away").getBoundingClientRect().left`)
	b.checkNoFaults()
}

// TestRowsAreSelectedByTouch has taps select rows, and not open them, until the selection ends. The menu of an item leads to its agent.
func TestRowsAreSelectedByTouch(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	first, other := h.shell("make"), h.shell("git status")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(390, 844))
	b.prefer("dark")
	b.open("/questions")
	b.live()
	b.until(`document.querySelectorAll(".entry").length === 2`)
	b.tap("#select")
	b.until(`document.querySelector("#select[aria-pressed=true]") && getComputedStyle(document.querySelector(".entry .pick")).opacity === "1"`)
	b.tap(".entry:nth-of-type(2) > a")
	b.reads(".bulk .picked", "1 selected")
	b.tap(".entry:nth-of-type(3) > a")
	b.reads(".bulk .picked", "2 selected")
	b.shotIfWanted("select-390-dark")
	if got := b.text(`document.body.dataset.view`); got != "list" {
		t.Fatal("a tap opens a row that it is to select")
	}
	b.run(`document.querySelector(".bulk .why").open = true; document.querySelector(".bulk button[value=deny]").click()`)
	b.reads(".toast", "✕ Denied, 2 calls: make, git status")
	if h.permitted(first) || h.permitted(other) {
		t.Error("it is allowed")
	}
	b.until(`document.querySelector("#select[aria-pressed=false]")`)
	h.shell("make")
	b.do(chromedp.EmulateViewport(1280, 800))
	b.prefer("light")
	b.open("/questions")
	b.live()
	b.click("#select")
	b.until(`document.querySelector("#select[aria-pressed=true]")`)
	b.click(".entry > a .what")
	b.reads(".bulk .picked", "1 selected")
	b.run(`document.querySelector("#rows").focus()`)
	b.press(kb.Escape)
	b.until(`document.querySelector("#select[aria-pressed=false]") && !document.querySelector(".pick:checked")`)
	b.click("#alone .more-of-it summary")
	b.until(`document.querySelector("#alone .more-of-it .panel").checkVisibility()`)
	b.shotIfWanted("more-1280")
	b.click(`#alone .more-of-it a[href$="/agents/fae"]`)
	b.until(`document.documentElement.dataset.live && document.querySelector("#agent[data-agent=fae]")`)
	b.checkNoFaults()
}

// TestSeenFilesAreCounted marks a file of a review as seen, which neither selects nor decides it, and stays while another is open.
func TestSeenFilesAreCounted(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for _, name := range []string{"a", "b", "c"} {
		h.approveIn("/srv/shop", "Edit", fmt.Sprintf(`{"file_path":"/srv/shop/%s.go","old_string":"old %s\n","new_string":"new %s\n"}`, name, name, name))
	}
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/questions")
	b.reads("#alone .of-seen", "0 of 3 seen")
	b.until(`document.querySelector("#alone .of-seen").checkVisibility()`)
	b.reads("#alone .of-all", "3 of 3 selected")
	b.click("#alone section.member:nth-of-type(2) .seen input")
	b.reads("#alone .of-seen", "1 of 3 seen")
	b.reads("#alone .of-all", "3 of 3 selected")
	b.until(`document.querySelectorAll("#alone .tree a[data-seen]").length === 1`)
	b.shotIfWanted("seen-1440")
	b.run(`document.querySelector(".entry > a").click()`)
	b.until(`!document.querySelector("#alone [data-review] .seen input:focus") && document.querySelector("#alone .of-seen")`)
	b.reads("#alone .of-seen", "1 of 3 seen")
	if got := b.text(`document.querySelectorAll("#alone .block.diff .line.added").length`); !strings.HasPrefix(got, "3") {
		t.Errorf("%s added lines are shown", got)
	}
	if n := h.waitingCalls(); n != 3 {
		t.Errorf("%d wait", n)
	}
	b.checkNoFaults()
}

// TestAccessListsManyAgents shows Rules and access with 30 agents of long names: each on a place of its own, none over another, nothing wider
// than the window.
func TestAccessListsManyAgents(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 30 {
		h.guest(fmt.Sprintf("claude-code-shop-%d-of-the-team", i))
	}
	b := h.openBrowser()
	for _, scheme := range []string{"light", "dark"} {
		b.prefer(scheme)
		for _, width := range []int64{1440, 390} {
			b.do(chromedp.EmulateViewport(width, 900))
			b.open("/access")
			b.live()
			if got := b.text(`[...document.querySelectorAll(".named")].map((l) => l.querySelectorAll("li").length).join()`); got != "32,32" {
				t.Errorf("at %d: %s names", width, got)
			}
			if wide := b.text(`document.documentElement.scrollWidth > innerWidth`); wide != "false" {
				t.Errorf("it is wider than its window of %d", width)
			}
			if wrong := b.text(overlaps); wrong != "" {
				t.Error(wrong)
			}
			b.shotIfWanted(fmt.Sprintf("access-many-%s-%d", scheme, width))
		}
	}
	b.checkNoFaults()
}
