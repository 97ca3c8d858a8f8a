package gateway

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestReasonIsTypedAtOnce begins a denial of a call at the moment it appears, while it takes no decision yet, and while it is being
// fetched: what is typed next is the reason. Its letters are no keys, of which A would allow the call.
func TestReasonIsTypedAtOnce(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for _, command := range []string{"make", "git fetch", "npm ci"} {
		h.shell(command)
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	for when, moment := range map[string]string{
		"it appears":              `new MutationObserver((_, o) => { if (document.querySelector("#alone > .message[data-held] .bar") && alone.firstElementChild !== before) { o.disconnect(); key("d"); } }).observe(alone, { childList: true }); key("a");`,
		"the last one is decided": `key("a"); key("d"); key("a");`,
	} {
		b.until(`document.querySelector("#alone > .message[data-keys]")`)
		n := h.waitingCalls()
		b.run(`{ const alone = document.getElementById("alone"), before = alone.querySelector(":scope > .message");
			const key = (k) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: k, code: "Key" + k.toUpperCase(), bubbles: true, composed: true, cancelable: true }));` + moment + "}")
		b.until(`document.activeElement.matches("#alone > .message .why textarea") && document.querySelector("#alone > .message[data-keys]")`)
		b.press("as agreed")
		if got := h.waitingCalls(); got != n-1 {
			t.Errorf("as %s: %d calls wait, want %d", when, got, n-1)
		}
		if got := b.text(`document.activeElement.value`); got != "as agreed" {
			t.Errorf("as %s: the reason is %q", when, got)
		}
		b.fill("#alone .why textarea", "")
		b.press(kb.Escape)
	}
	b.checkNoFaults()
}

// TestKeyForAnItemThatDoesNotComeIsSaid presses D and types a reason while a decision is being sent that fails then, and while the next item
// is being fetched, which fails. The page says that D did nothing, and none of what is typed decides on the item that stays.
func TestKeyForAnItemThatDoesNotComeIsSaid(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for _, command := range []string{"make", "git fetch", "npm ci"} {
		h.shell(command)
	}
	b := h.openBrowser()
	open := `document.querySelector("#alone > .message .command")?.innerText.trim()`
	for _, c := range []struct {
		fails, begin string
		decides      int
	}{{"respond_form", "a", 0}, {"pane=item", "a", 1}, {"pane=item", "j", 0}} {
		what, left := c.fails+" after "+c.begin, h.waitingCalls()-c.decides
		b.open("/questions")
		b.live()
		b.run(`{ const ask = fetch; window.failing = []; window.fetch = (to, ...more) => (String(to).includes("` + c.fails + `") ? new Promise((_, no) => { failing.push(() => no(new TypeError("no"))); }) : ask(to, ...more)); }`)
		b.until(`document.activeElement.matches("li.message[data-keys]")`)
		first := b.text(open)
		b.press(c.begin)
		if c.begin == "a" {
			b.until(`failing.length > 0`)
		}
		b.press("dea")
		b.run(`for (const fail of failing) fail()`)
		b.reads(".toast .failure", "The next item has not come, and D did nothing.")
		b.press("a bad day\r") // goes on as if the reason were open
		b.until(`document.querySelector("#alone > .message[data-keys]:not([data-strays])")`)
		if got := b.text(open); got != first {
			t.Errorf("%s: %q is open", what, got)
		}
		if got := h.waitingCalls(); got != left {
			t.Errorf("%s: %d calls wait, want %d", what, got, left)
		}
	}
	b.checkNoFaults()
}

// TestKeysOpenTheRowWithTheFocus presses keys at a row that is not the open one: they open it, and do nothing to another item. J leads
// from the open item to the next row.
func TestKeysOpenTheRowWithTheFocus(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for _, command := range []string{"make", "git fetch", "npm ci"} {
		h.shell(command)
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.until(`document.activeElement.matches("li.message[data-keys]")`)
	open := `document.querySelector("#alone > .message .command")?.innerText.trim()`
	b.until(open + ` === "make"`)
	b.press("j")
	b.until(`document.activeElement.closest(".entry")?.textContent.includes("git fetch")`)
	b.press("a")
	b.until(open + ` === "git fetch"`)
	b.press("j")
	b.until(`document.activeElement.closest(".entry")?.textContent.includes("npm ci")`)
	b.press("d")
	b.until(open + ` === "npm ci" && document.activeElement.matches(".why textarea")`)
	b.press("as asked")
	b.until(`document.activeElement.value === "as asked"`)
	b.fill("#alone .why textarea", "")
	b.press(kb.Escape)
	b.run(`document.querySelector(".entry a").focus()`)
	b.press("s")
	b.until(open + ` === "make"`)
	if n := h.waitingCalls(); n != 3 {
		t.Errorf("%d calls wait, want 3", n)
	}
	b.checkNoFaults()
}

// TestKeysPassDecidedRows presses K at the second item while the row of the first, which was decided, still stays: the focus does not go where it
// would be lost.
func TestKeysPassDecidedRows(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for _, command := range []string{"make", "git fetch", "npm ci"} {
		h.shell(command)
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.until(`document.activeElement.matches("li.message[data-keys]")`)
	b.run(`document.querySelector(".entry").setAttribute("data-decided", "")`)
	b.press("j")
	b.until(`document.activeElement.closest(".entry")?.textContent.includes("git fetch")`)
	b.press("k")
	if got := b.text(`document.activeElement.closest(".entry")?.textContent.includes("git fetch")`); got != "true" {
		t.Errorf("the focus is at %s", b.text(`document.activeElement.outerHTML`))
	}
	b.press("j")
	b.until(`document.activeElement.closest(".entry")?.textContent.includes("npm ci")`)
	b.checkNoFaults()
}

// TestFormIsDeclinedByKey declines a form by D, a reason and Enter, and asks back by R.
func TestFormIsDeclinedByKey(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.ask(parley.Form{Title: "Which port?", Fields: []events.Field{{Name: "a", Label: "A"}}})
	h.shell("make") // a form beside calls takes no focus
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.run(`[...document.querySelectorAll(".entry a")].find((a) => a.textContent.includes("Which port")).click()`)
	b.until(`document.querySelector("#alone > .message[data-type=form][data-keys]")`)
	b.run(`document.querySelector("#alone > .message").focus()`)
	b.press("r")
	b.until(`document.activeElement.matches(".asks textarea")`)
	b.press(kb.Escape)
	b.run(`document.querySelector("#alone > .message").focus()`)
	b.press("d")
	b.until(`document.activeElement.matches(".decline input")`)
	b.press("use what is set")
	b.press(kb.Enter)
	eventually.Holds(t, "the form is declined", func() bool { o := h.message(asked).Outcome; return o != nil && o.Note == "use what is set" })
	b.checkNoFaults()
}

// longName is a name of which only the end tells several agents apart.
func longName(i int) string { return fmt.Sprintf("payments-monorepo-checkout-service-worker-%d", i) }

// TestLongNamesShowTheirEnds looks for the ends of long names wherever there is less room than they need.
func TestLongNamesShowTheirEnds(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 3 {
		a := h.guest(longName(i))
		if _, err := a.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Folder: "/srv/shop", Input: `{"command":"sudo make"}`}}); err != nil {
			t.Fatal(err)
		}
	}
	b := h.openBrowser()
	ends := `((within) => { const text = document.createTreeWalker(document.querySelector(within), NodeFilter.SHOW_TEXT), seen = [];
		for (let n; (n = text.nextNode());) {
			const m = /worker-\d$/.exec(n.data);
			if (!m) continue;
			const range = document.createRange();
			range.setStart(n, n.length - 1); range.setEnd(n, n.length);
			const r = range.getBoundingClientRect();
			let whole = r.width > 0;
			for (let e = n.parentElement; e && e !== document.body; e = e.parentElement) if (getComputedStyle(e).overflowX !== "visible") whole &&= r.right <= e.getBoundingClientRect().right + 1;
			if (whole) seen.push(n.data.at(-1));
		}
		return seen.sort().join(""); })`
	for _, width := range []int64{320, 768, 1280} {
		b.do(chromedp.EmulateViewport(width, 900))
		b.open("/questions")
		b.until(ends + `("#stream") === "012"`)
		if width == 1280 {
			b.until(ends + `("#left-agents") === "012"`)
		}
		b.open("/access")
		b.until(ends + `("[aria-labelledby=policies-head]") === "012" && ` + ends + `("[aria-labelledby=given-head]") === "012"`)
		b.open("/agents")
		b.until(ends + `("#agents") === "012"`)
	}
	for _, width := range []int64{320, 390, 1280} { // and above the open one
		b.do(chromedp.EmulateViewport(width, 900))
		b.open("/forms/0?in=questions")
		b.until(ends + `("#alone .head .route") === "0"`)
	}
	b.checkNoFaults()
}

// TestKeysAreShownFromTheFirst opens the list of keys in a low window.
func TestKeysAreShownFromTheFirst(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 500))
	b.open("/questions")
	b.live()
	b.press("?")
	b.until(`document.querySelector("dialog[open] button:focus")`)
	if got := b.text(`((d) => document.elementFromPoint(d.left + 5, d.top + 5).closest("dl") !== null && d.top > 0)(document.querySelector("dialog[open] dt").getBoundingClientRect())`); got != "true" {
		t.Error("the first key is not in view")
	}
	b.checkNoFaults()
}
