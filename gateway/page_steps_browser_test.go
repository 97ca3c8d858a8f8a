package gateway

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestItemTellsItsPlaceInTheList goes through what waits by the links in the head of an item, which tells its place before and after a
// decision. Without a script it has both as well.
func TestItemTellsItsPlaceInTheList(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.shell("make a")
	h.approveIn("/srv/shop", "Bash", `{"command":"go vet"}`)
	last := h.approveIn("/srv/shop", "WebFetch", `{"url":"https://example.com"}`)
	place := regexp.MustCompile(`<span class="count">([^<]*)</span><a class="prev"( href="[^"]*")?[^>]*>.*?<a class="next"( href="[^"]*")?`)
	_, _, body := h.get("/forms/"+last.Form.String()+"?in=questions", "text/html")
	if m := place.FindStringSubmatch(body); m == nil || m[1] != "3 of 3" || m[2] == "" || m[3] != "" {
		t.Errorf("without a script it reads %q", m)
	}
	b := h.openBrowser()
	for _, width := range []int64{1440, 390} {
		b.do(chromedp.EmulateViewport(width, 844))
		b.open("/questions")
		b.live()
		b.run(`document.querySelector(".entry a").click()`) // wherever its row is by now
		b.until(`location.pathname.includes("/forms/") && document.querySelector("#alone .steps .count").textContent === "1 of 3"`)
		if width < 500 {
			b.until(`!document.querySelector("#alone .steps .prev").checkVisibility() && document.querySelector("#alone .steps .next").offsetHeight >= 44`)
		}
		b.click("#alone .steps .next")
		b.until(`document.querySelector("#alone .steps .count").textContent === "2 of 3" && document.querySelector("#alone .message, #alone > .message").innerText.includes("go vet")`)
		b.until(`document.querySelector("#alone .steps .prev").href && !document.querySelector("#alone .steps [hidden]")`)
	}
	b.do(chromedp.EmulateViewport(1440, 844))
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.press("a")
	b.until(`document.querySelector("#alone > .message").innerText.includes("example.com")`)
	b.until(`document.querySelector("#alone .steps .count").textContent === "2 of 2"`) // the row that was decided counts no more
	b.checkNoFaults()
}

// TestReviewIsSplit opens the changes of one session. There is a tree of the files, and the changes are side by side where there is room:
// what is removed beside what is added. A narrow window has them one below the other.
func TestReviewIsSplit(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for _, name := range []string{"a.go", "b.go", "sub/c.go"} {
		h.approveIn("/srv/shop", "Edit", fmt.Sprintf(`{"file_path":"/srv/shop/%s","old_string":"package shop\nvar total = 1\nvar x int\n","new_string":"package shop\nvar total = 2\nvar more = 3\nvar x int\n"}`, name))
	}
	h.shell("make last")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/questions")
	b.live()
	b.run(`[...document.querySelectorAll(".entry a")].find((a) => a.textContent.includes("3 ×")).click()`)
	b.until(`document.querySelectorAll("#alone .tree a").length === 3 && !document.getElementById("list").checkVisibility()`)
	b.reads("#alone .tree", "c.go")
	sides := `(() => {
		const block = document.querySelector("#alone .block.diff");
		const [was, is, more] = [block.querySelector(".removed"), ...block.querySelectorAll(".added")].map((e) => e.getBoundingClientRect());
		const twin = block.querySelector(".twin");
		return [is.left > was.right - 2 && Math.abs(is.top - was.top) < 2, more.top > is.top && more.left === is.left, twin.checkVisibility(), block.querySelector(".removed mark")?.textContent].join();
	})()`
	b.until(sides + ` === "true,true,true,1"`)
	if wrong := b.text(overlaps); wrong != "" {
		t.Error(wrong)
	}
	b.shotIfWanted("review-split")
	b.click(`#alone button[data-split=""]`)
	b.until(sides + `.startsWith("false,true,false")`)
	b.open("/questions")
	b.live()
	b.run(`[...document.querySelectorAll(".entry a")].find((a) => a.textContent.includes("3 ×")).click()`)
	b.until(`document.querySelector("#alone .tree") && ` + sides + `.startsWith("false,true,false")`) // the choice is kept
	b.click(`#alone button[data-split=yes]`)
	b.until(sides + ` === "true,true,true,1"`)
	b.click("#alone .tree li:last-child a")
	b.until(`document.querySelector("#alone .steps .next").href || document.querySelector("#alone .steps .prev").href`)
	b.run(`document.querySelector("#alone > .message").focus()`)
	b.press("j") // the list is not there
	b.until(`document.querySelector("#alone > .message").innerText.includes("make last") && document.getElementById("list").checkVisibility()`)
	b.do(chromedp.EmulateViewport(390, 844))
	b.open("/questions")
	b.live()
	b.run(`[...document.querySelectorAll(".entry a")].find((a) => a.textContent.includes("3 ×")).click()`)
	b.until(`document.querySelector("#alone .tree a").checkVisibility() && ` + sides + `.startsWith("false,true,false") && !document.querySelector("#alone .split-of").checkVisibility()`)
	if wrong := b.text(overlaps); wrong != "" {
		t.Error(wrong)
	}
	b.checkNoFaults()
	status, _, body := h.get("/forms/1?in=questions&like=yes", "text/html")
	if status != 200 || !strings.Contains(body, `href="#change-`) {
		t.Errorf("without a script there are no files: %d", status)
	}
}
