package gateway

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// edits opens changes of one session that are shown as a review, one for each name.
func (h *pageServer) edits(names ...string) (all []view.Permitted) {
	h.t.Helper()
	for _, name := range names {
		all = append(all, h.approveIn("/srv/shop", "Edit", fmt.Sprintf(`{"file_path":"/srv/shop/%s","old_string":"package shop\nvar total = 1\nvar x int\n","new_string":"package shop\nvar total = 2\nvar more = 3\nvar x int\n"}`, name)))
	}
	return all
}

// reasonOf returns the reason of a decision.
func (h *pageServer) reasonOf(p view.Permitted) string {
	h.t.Helper()
	_, o, err := h.fae.AwaitApproval(h.t.Context(), capabilities.FormID(p.Form))
	if err != nil {
		h.t.Fatal(err)
	}
	_, reason := mailbox.ReadDecision(o.Values)
	return reason
}

// TestCommentsGoWithADenial writes comments on lines of a review by keys alone: several, of which one is changed and one removed before the
// decision. Each denied call has those on its own file. An allow sends none, and says so first.
func TestCommentsGoWithADenial(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openPageServer(t)
	all := h.edits("a.go", "b.go", "sub/c.go")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/questions")
	b.live()
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	at := func(file, line string) {
		t.Helper()
		b.until(fmt.Sprintf(`((l) => l && l.closest(".block").querySelector(".path").textContent.includes(%q) && (l.dataset.new ?? "−" + l.dataset.old) === %q)(document.querySelector("#alone .line.at"))`, file, line))
	}
	typing := `document.activeElement.matches("#alone .remark textarea")`
	b.press("n")
	at("a.go", "1")
	b.press("n")
	at("a.go", "−2")
	b.press("c")
	b.until(typing)
	b.press("Why remove it?")
	b.press(kb.Enter, chromedp.ModifierCtrl)
	b.until(`document.activeElement.matches("#alone > .message") && document.querySelector("#alone .remark .remark-text").textContent === "Why remove it?"`)
	b.reads("#alone .of-seen", "0 of 3 seen · 1 comment")
	b.reads("#alone .choices button[value=deny]", "with 1 comment")
	b.press(kb.ArrowDown)
	at("a.go", "2")
	b.press(kb.ArrowDown)
	at("a.go", "3")
	b.press("c")
	b.until(typing)
	b.press("Call it <b>count</b>.")
	b.press(kb.Enter)
	b.press("And say why.")
	b.press(kb.Enter, chromedp.ModifierCtrl)
	b.reads("#alone .choices button[value=deny]", "with 2 comments")
	b.press("n")
	at("b.go", "1")
	b.press("n")
	at("b.go", "−2")
	b.press("c")
	b.until(typing)
	b.press("Not this one")
	b.press(kb.Enter, chromedp.ModifierCtrl)
	b.reads("#alone .choices button[value=deny]", "with 3 comments")
	if wrong := b.text(overlaps); wrong != "" {
		t.Error(wrong)
	}
	if wrong := b.violations(string(source)); wrong != "" {
		t.Error(wrong)
	}
	b.shotIfWanted("comments-1440")

	// One is changed, and one removed: by C and Escape, which leaves it, and by an emptied text.
	b.press("c")
	b.until(typing)
	b.press(" at all")
	b.press(kb.Escape)
	b.until(`[...document.querySelectorAll("#alone .remark .remark-text")].some((e) => e.textContent === "Not this one")`)
	b.press("c")
	b.until(typing)
	b.press(kb.Backspace)
	b.run(`document.activeElement.select()`)
	b.press(kb.Backspace)
	b.press(kb.Enter, chromedp.ModifierCtrl)
	b.until(`document.querySelectorAll("#alone .remark").length === 2`)
	b.reads("#alone .choices button[value=deny]", "with 2 comments")
	b.press("p")
	at("b.go", "1")
	b.press("p")
	at("a.go", "−2")
	b.press("c")
	b.until(typing)
	b.press(" Keep it.")
	b.press(kb.Enter, chromedp.ModifierCtrl)

	// They are there when the page is loaded again, side by side and one below the other.
	b.open("/questions")
	b.live()
	b.until(`[...document.querySelectorAll("#alone .remark .remark-text")].map((e) => e.textContent).join("|") === "Why remove it? Keep it.|Call it <b>count</b>.\nAnd say why."`)
	b.run(`document.querySelector(".entry > a").click()`)
	b.until(`document.body.dataset.view === "item" && document.querySelectorAll("#alone .remark").length === 2`)
	b.until(`((old, now) => old.right <= now.left + 2)(...[...document.querySelectorAll("#alone .remark")].map((e) => e.getBoundingClientRect()))`)
	b.shotIfWanted("comments-split-1440")
	for _, width := range []int64{390, 768, 1280} {
		b.do(chromedp.EmulateViewport(width, 844))
		b.prefer("dark")
		b.until(`document.documentElement.scrollWidth <= innerWidth`)
		if wrong := b.text(overlaps); wrong != "" {
			t.Errorf("at %d: %s", width, wrong)
		}
		b.shotIfWanted(fmt.Sprintf("comments-%d-dark", width))
	}
	b.do(chromedp.EmulateViewport(1280, 800))
	b.prefer("light")
	b.run(`document.querySelector("#item").scrollTop = 1e6`)
	b.until(`!document.querySelector("#alone .choices button[value=once][data-unseen]")`)
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.run(`document.querySelector("#alone > .message").focus()`)

	// What is allowed has no reason: the first press says that they are not sent.
	b.press("a")
	b.reads("#alone .failure", "Your 2 comments are not sent when you allow.")
	if n := h.waitingCalls(); n != 3 {
		t.Fatalf("%d wait", n)
	}
	b.press("d")
	b.until(`document.activeElement.matches(".why textarea")`)
	b.press(kb.Enter)
	b.reads(".toast", "✕ Denied, 3 calls: Edit a.go")
	b.reads(".toast", "and 1 more")
	for i, want := range []string{
		"/srv/shop/a.go:2 (removed)\n> − var total = 1\nWhy remove it? Keep it.\n\n/srv/shop/a.go:3\n> + var more = 3\nCall it <b>count</b>.\nAnd say why.",
		"See the comments on /srv/shop/a.go.",
		"See the comments on /srv/shop/a.go.",
	} {
		if reason := h.reasonOf(all[i]); reason != want {
			t.Errorf("%d: the reason is\n%s\nand not\n%s", i, reason, want)
		}
	}
	b.until(`Object.keys(localStorage).every((k) => !k.includes("comments/"))`)
	b.checkNoFaults()
}

// TestCommentsOnWholeFilesGoWithADenial comments on files by the button in their heads, and by Shift C. Each denied call has that on its own file,
// before those on its lines, and it is there after a reload.
func TestCommentsOnWholeFilesGoWithADenial(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openPageServer(t)
	all := h.edits("a.go", "sub/b.go", "c.go")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/questions")
	b.live()
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	typing := `document.activeElement.matches("#alone .remark textarea")`
	b.press("n")
	b.press("n")
	b.until(`document.querySelector("#alone .line.at")?.dataset.old === "2"`)
	b.press("c")
	b.until(typing)
	b.press("Why?")
	b.press(kb.Enter, chromedp.ModifierCtrl)
	b.press("C", chromedp.ModifierShift)
	b.until(typing + ` && document.activeElement.ariaLabel === "Comment on all of a.go"`)
	b.press("This belongs <b>elsewhere</b>.")
	b.press(kb.Enter, chromedp.ModifierCtrl)
	b.until(`document.activeElement.matches("#alone > .message") && document.querySelector("#alone .line.at")?.dataset.old === "2"`)
	b.reads("#alone .choices button[value=deny]", "with 2 comments")
	b.run(`document.querySelectorAll("#alone .path button")[1].focus()`)
	b.until(`document.activeElement.ariaLabel === "Comment on all of b.go"`)
	b.press(kb.Enter)
	b.until(typing)
	b.press("Split it.")
	b.press(kb.Enter, chromedp.ModifierCtrl)
	b.reads("#alone .of-seen", "3 comments")
	b.click("#alone .path button") // goes on with the one that is there
	b.until(typing)
	b.press(kb.Escape)
	b.open("/questions")
	b.live()
	b.until(`[...document.querySelectorAll("#alone .remark .on")].map((e) => e.textContent).join("|") === "Your comment on all of a.go|Your comment on a.go, removed line 2|Your comment on all of b.go"`)
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		b.do(chromedp.EmulateViewport(size[0], size[1]))
		for _, path := range []string{"/questions", "/forms/" + all[0].Form.String() + "?in=questions&like=yes"} {
			if size[0] == 390 && path == "/questions" {
				continue
			}
			b.open(path)
			b.live()
			b.until(`document.querySelectorAll("#alone .remark").length === 3`)
			for _, theme := range []string{"light", "dark"} {
				b.prefer(theme)
				if beside := b.text(`[...document.querySelectorAll("#alone .path + .remark")].filter((e) => e.getBoundingClientRect().top < e.previousElementSibling.getBoundingClientRect().bottom).length`); beside != "0" {
					t.Errorf("%s at %d, %s: %s comments are not below the heads of their files", path, size[0], theme, beside)
				}
				if wrong := b.text(overlaps); wrong != "" {
					t.Errorf("%s at %d, %s: %s", path, size[0], theme, wrong)
				}
				if wrong := b.violations(string(source)); wrong != "" {
					t.Errorf("%s at %d, %s: %s", path, size[0], theme, wrong)
				}
				b.shotIfWanted(fmt.Sprintf("file-comments-%d-%d-%s", len(path), size[0], theme))
			}
		}
	}
	if small := b.text(`[...document.querySelectorAll("#alone .path button")].filter((e) => e.getBoundingClientRect().height < 44).length`); small != "0" {
		t.Errorf("%s buttons are lower than a finger needs", small)
	}
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/questions")
	b.live()
	b.until(`document.querySelector("#alone > .message[data-keys]") && document.querySelectorAll("#alone .remark").length === 3`)
	b.press("d")
	b.until(`document.activeElement.matches(".why textarea")`)
	b.press(kb.Enter)
	b.reads(".toast", "✕ Denied, 3 calls")
	for i, want := range []string{
		"/srv/shop/a.go (whole file)\nThis belongs <b>elsewhere</b>.\n\n/srv/shop/a.go:2 (removed)\n> − var total = 1\nWhy?",
		"/srv/shop/sub/b.go (whole file)\nSplit it.",
		"See the comments on /srv/shop/a.go, /srv/shop/sub/b.go.",
	} {
		if reason := h.reasonOf(all[i]); reason != want {
			t.Errorf("%d: the reason is\n%s\nand not\n%s", i, reason, want)
		}
	}
	b.checkNoFaults()
}

// TestCommentsGoWithADenialFromTheList denies selected rows: the open review with comments, which are sent, and then a call with a comment that is
// not open. The first press says that this one is not sent, and decides nothing.
func TestCommentsGoWithADenialFromTheList(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	review := h.edits("a.go", "b.go", "c.go")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	write := func(card, text string) {
		t.Helper()
		b.until(`document.querySelector("` + card + `[data-keys] .path button")`)
		b.click(card + " .path button")
		b.until(`document.activeElement.matches("#alone .remark textarea")`)
		b.press(text)
		b.press(kb.Enter, chromedp.ModifierCtrl)
		b.until(`document.activeElement.matches("#alone > .message")`)
	}
	waits := func(want int) {
		t.Helper()
		if n := h.waitingCalls(); n != want {
			t.Fatalf("%d wait and not %d", n, want)
		}
	}
	b.open("/questions")
	b.live()
	write("#alone > [data-review]", "Not like this.")
	other := h.shell("make clean")
	b.until(`document.querySelectorAll("#stream .pick").length === 2`)
	b.run(`document.querySelector("#alone section.member [name=of]").click()`) // what is selected in the review is for its own buttons
	b.run(`document.querySelectorAll("#stream .pick").forEach((p) => p.click()); document.querySelector("#stream .pick").focus()`)
	b.press("d")
	b.until(`document.activeElement.matches("#bulk-reason")`)
	b.reads(".bulk button[value=deny]", "Deny with 1 comment")
	b.press("Later")
	b.press(kb.Enter)
	b.reads(".toast", "✕ Denied, 4 calls")
	for i, want := range []string{"Later\n\n/srv/shop/a.go (whole file)\nNot like this.", "Later", "Later"} {
		if reason := h.reasonOf(review[i]); reason != want {
			t.Errorf("%d: the reason is\n%s\nand not\n%s", i, reason, want)
		}
	}
	if reason := h.reasonOf(other); reason != "Later" {
		t.Errorf("the other one's reason is %q", reason)
	}
	b.until(`Object.keys(localStorage).every((k) => !k.includes("comments/"))`)

	all := h.edits("d.go")
	other = h.shell("make dist")
	b.open("/forms/" + all[0].Form.String() + "?in=questions")
	b.live()
	write("#alone > .message", "Why?")
	b.open("/forms/" + other.Form.String() + "?in=questions")
	b.takesKeys(asking(other))
	b.until(`document.querySelectorAll("#stream .pick").length === 2`)
	b.run(`document.querySelectorAll("#stream .pick").forEach((p) => p.click()); document.querySelector("#stream .pick").focus()`)
	b.reads(".bulk .picked", "2 selected")
	if text := b.text(`document.querySelector(".bulk button[value=deny]").textContent`); text != "Deny" {
		t.Errorf("the button says %q", text)
	}
	b.press("d")
	b.until(`document.activeElement.matches("#bulk-reason")`)
	b.press("No")
	b.press(kb.Enter)
	b.reads(".toast", "1 comment is not sent: its call is not open. Press again to deny, or open it.")
	waits(2)
	b.press(kb.Enter) // too soon after the first
	waits(2)
	b.shotIfWanted("comments-list-1440")
	b.until(`document.activeElement.value === "No" && performance.now() - document.getElementById("bulk").toldAt > 800`)
	b.press(kb.Enter)
	b.reads(".toast", "✕ Denied, 2 calls")
	if reason := h.reasonOf(all[0]); reason != "No" {
		t.Errorf("the reason is %q", reason)
	}
	b.until(`Object.keys(localStorage).every((k) => !k.includes("comments/"))`)

	// An allow sends none, and says so.
	all = h.edits("e.go")
	b.open("/forms/" + all[0].Form.String() + "?in=questions")
	b.live()
	write("#alone > .message", "Hm.")
	b.until(`document.querySelectorAll("#stream .pick").length === 1`)
	b.run(`document.querySelector("#stream .pick").click(); document.querySelector("#stream .pick").focus()`)
	b.reads(".bulk button[value=once]", "Allow once")
	b.press("a")
	b.reads(".toast", "1 comment is not sent when you allow. Press again to allow, or deny.")
	waits(1)
	b.until(`performance.now() - document.getElementById("bulk").toldAt > 800`)
	b.press("a")
	b.reads(".toast", "✓ Allowed once")
	b.checkNoFaults()
}

// TestCommentsGoWithADenialOfAll denies all calls of an agent from below one with a comment, which goes with it; and from below another one,
// where the first press says that the comment does not.
func TestCommentsGoWithADenialOfAll(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	const all = "#alone button.together"
	comment := func() (commented, other view.Permitted) {
		t.Helper()
		commented, other = h.edits("a.go")[0], h.shell("make dist")
		b.open("/forms/" + commented.Form.String() + "?in=questions")
		b.live()
		b.until(`document.querySelector("#alone > .message[data-keys] .path button")`)
		b.click("#alone > .message .path button")
		b.until(`document.activeElement.matches("#alone .remark textarea")`)
		b.press("Why?")
		b.press(kb.Enter, chromedp.ModifierCtrl)
		b.until(`document.activeElement.matches("#alone > .message")`)
		return commented, other
	}
	wantReasons := func(of map[string]view.Permitted) {
		t.Helper()
		for want, p := range of {
			if got := h.reasonOf(p); got != want {
				t.Errorf("the reason is %q and not %q", got, want)
			}
		}
		b.until(`Object.keys(localStorage).every((k) => !k.includes("comments/"))`)
	}
	commented, other := comment()
	b.click(all)
	wantReasons(map[string]view.Permitted{"/srv/shop/a.go (whole file)\nWhy?": commented, "": other})

	commented, other = comment()
	b.open("/forms/" + other.Form.String() + "?in=questions")
	b.takesKeys(asking(other))
	b.click(all)
	b.reads("#alone .failure", "1 comment on calls that are not open is not sent. Press again to deny, or open them.")
	b.shotIfWanted("comments-all-1440")
	if n := h.waitingCalls(); n != 2 {
		t.Fatalf("%d wait and not 2", n)
	}
	b.until(`performance.now() - document.querySelector("` + all + `").toldAt > 800`)
	b.click(all)
	for _, p := range []view.Permitted{commented, other} {
		if reason := h.reasonOf(p); reason != "" {
			t.Errorf("the reason is %q", reason)
		}
	}
	b.checkNoFaults()
}

// TestCommentsAreNotSentWithAnAllow allows a change with a comment by a second press, and denies another one, opened alone, with a reason and a
// comment made by a click at a line's number.
func TestCommentsAreNotSentWithAnAllow(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	all := h.edits("a.go", "b.go")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	write := func(p view.Permitted, text string) {
		t.Helper()
		b.open("/forms/" + p.Form.String() + "?in=questions")
		b.takesKeys(asking(p))
		at := b.place(asking(p) + " .line.added")
		left := b.text(fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().left + 50`, asking(p)+" .line.added"))
		var x float64
		if _, err := fmt.Sscan(left, &x); err != nil {
			t.Fatal(err)
		}
		b.do(chromedp.MouseClickXY(x, at[1]))
		b.until(`document.activeElement.matches("#alone .remark textarea")`)
		b.press(text)
		b.press(kb.Enter, chromedp.ModifierCtrl)
		b.reads(asking(p)+" .choices button[value=deny]", "Deny with 1 comment")
	}
	write(all[0], "fine")
	b.press("a")
	b.reads(asking(all[0])+" .failure", "Your comment is not sent when you allow.")
	b.press("a") // too soon after the first
	if n := h.waitingCalls(); n != 2 {
		t.Fatalf("%d wait", n)
	}
	b.until(fmt.Sprintf(`((ask) => ask && performance.now() - ask.toldAt > 800)(document.querySelector(%q))`, asking(all[0])+" parley-ask"))
	b.press("a")
	b.reads(".toast", "✓ Allowed once: ")
	if o := h.outcomeOf(all[0].Form); strings.Contains(o, "fine") {
		t.Errorf("the comment was sent: %s", o)
	}
	write(all[1], "No.")
	b.press("d")
	b.until(`document.activeElement.matches(".why textarea")`)
	b.press("Ask first")
	b.press(kb.Enter)
	b.reads("#news", "✕ Denied: ") // it is on screen, and needs no toast
	if reason := h.reasonOf(all[1]); reason != "Ask first\n\n/srv/shop/b.go:2\n> + var total = 2\nNo." {
		t.Errorf("the reason is %q", reason)
	}
	b.checkNoFaults()
}
