package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/internal/eventually"
)

// TestMessageIsWrittenOnPage writes a message by keys, with a file, without a command.
func TestMessageIsWrittenOnPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.live()
	b.press("c")
	b.until(`document.querySelector("h1")?.textContent === "New message" && document.documentElement.dataset.live`)
	b.until(`document.activeElement.id === "to"`) // what is typed next is for it
	b.press("nobody here")
	b.fill("#text", "the log is below")
	b.click(".write button.primary")
	b.reads(".write .failure", "nobody here")
	b.until(`document.querySelector("#text").value === "the log is below"`) // and nothing is lost
	b.live()
	b.fill("#to", "fae")
	b.fill("#subject", "The log")
	b.run(`(() => {
		const files = new DataTransfer();
		files.items.add(new File(["it works"], "restore.log", { type: "text/plain" }));
		const input = document.querySelector(".write .attach input");
		input.files = files.files;
		input.dispatchEvent(new Event("change", { bubbles: true }));
	})()`)
	b.reads(".write .clips", "restore.log")
	b.run(`document.querySelector("#text").focus()`)
	b.press("\r", chromedp.ModifierCtrl)
	b.reads("#alone .heading", "The log")
	b.reads("#alone .attachments", "restore.log")
	b.reads("#alone .post", "You")
	eventually.Holds(t, "it arrives", func() bool {
		m := h.last(h.fae)
		return m.Text == "the log is below" && m.Subject == "The log" && len(m.Files) == 1
	})
	b.checkNoFaults()
}

// TestNamesAreCompletedInMessage completes a name behind an @, in the middle of a new message and in a reply.
func TestNamesAreCompletedInMessage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	if err := h.node.Host().Names().Store(t.Context(), "branch", `"main"`); err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.open("/new?to=fae")
	b.live()
	b.until(`document.activeElement.id === "text"`)
	b.press("see  first")
	b.run(`document.activeElement.setSelectionRange(4, 4)`)
	b.press("@bra")
	b.reads(".write .suggestions li", "branch")
	b.press("\t")
	b.until(`document.querySelector("#text").value === "see @branch  first" && document.querySelector("#text").selectionStart === 12`)
	b.press("now")
	b.until(`document.querySelector(".write .suggestions").hidden`)
	b.press("\r", chromedp.ModifierCtrl)
	b.reads("#alone .post", "branch")
	b.live()
	eventually.Holds(t, "it arrives with the value", func() bool { return h.last(h.fae).Text == "see @branch now first" })
	b.fill("#alone .reply textarea", "and @bra")
	b.reads("#alone .reply .suggestions li", "branch")
	b.click("#alone .reply .suggestions li")
	b.until(`document.querySelector("#alone .reply textarea").value === "and @branch "`)
	b.checkNoFaults()
}

// TestMessageIsWrittenWithoutScript sends the plain form twice under one key.
func TestMessageIsWrittenWithoutScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	if status, _, body := h.postForm("/new", url.Values{"to": {" "}, "text": {"<b>kept</b>"}, "key": {"k"}}); status != http.StatusBadRequest || !strings.Contains(body, "to whom it goes") || !strings.Contains(body, "&lt;b&gt;kept") {
		t.Errorf("without a recipient: %d %s", status, body)
	}
	for range 2 {
		if status, _, body := h.postForm("/new", url.Values{"to": {"fae"}, "text": {"once"}, "key": {"k1"}}); status != http.StatusSeeOther {
			t.Fatalf("%d %s", status, body)
		}
	}
	eventually.Holds(t, "it arrives", func() bool { return h.last(h.fae).Text == "once" })
	if n := h.last(h.fae).Number; n != 0 {
		t.Errorf("it was sent %d times", n+1)
	}
}
