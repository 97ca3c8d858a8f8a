package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/actors/view"
)

// approveCalls asks fae's host about an edit of 60 lines and about a risky command line.
func (h *pageServer) approveCalls() (edit, command view.Permitted) {
	h.t.Helper()
	var added strings.Builder
	for i := range 60 {
		fmt.Fprintf(&added, "line %d <b>\n", i)
	}
	input, err := json.Marshal(map[string]string{"file_path": "/srv/shop/checkout.go", "old_string": "total := price\n", "new_string": "total := price * count\n" + added.String()})
	if err != nil {
		h.t.Fatal(err)
	}
	command = h.approveIn("/srv/shop", "Bash", `{"command":"go test ./... | tail -3 && sudo git push --force origin main","description":"Publish the fix"}`)
	edit = h.approveIn("/srv/shop", "Edit", string(input))
	return edit, command
}

func TestApprovalsAreReadAndDecidedByKeys(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	edit, command := h.approveCalls()
	b := h.openBrowser()
	b.open("/forms/" + edit.Form.String() + "?in=questions")
	b.reads(asking(edit)+" .heading", "fae wants to edit checkout.go")
	b.reads(asking(edit)+" .place", "Edit in /srv/shop")
	b.until(fmt.Sprintf(`document.querySelector(%q).innerText.replace(/\s+/g, " ").startsWith("/srv/shop/checkout.go +61 −1")`, asking(edit)+" .path"))
	b.reads(asking(edit)+" .line.added mark", "* count")
	b.holds(asking(edit)+" .line.added", "line 59 <b>")
	b.allowByKey(asking(edit))
	b.reads(".toast", "✓ Allowed once: ")
	if !h.permitted(edit) {
		t.Error("A allows nothing")
	}
	b.until(fmt.Sprintf(`document.activeElement.matches(%q)`, asking(command)+"[data-keys]"))
	b.reads(asking(command)+" .aside", "Publish the fix")
	b.reads(asking(command)+" .line:nth-child(3)", "&& sudo git push --force origin main")
	for level, words := range map[string]string{"high risk": "Runs as root", "": "network"} {
		b.reads(asking(command)+fmt.Sprintf(" [data-risk=%q]", level), words)
	}
	b.press("d")
	b.until(`document.activeElement.matches(".why textarea")`)
	b.press("a day off")
	b.press(kb.Enter)
	b.reads(asking(command)+"[data-denied] .state", "✕ Denied · a day off · by you")
	if h.permitted(command) {
		t.Error("D allows the call")
	}
	b.checkNoFaults()
}

func TestApprovalsAreAccessibleAndFit(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openPageServer(t)
	denied := h.approve("shell", `{"command":"make"}`)
	h.decide(denied, "deny")
	h.approveCalls()
	h.approve("mcp__db__query", `{"sql":"select 1","long":"`+strings.Repeat(`a line\n`, 30)+`"}`)
	b := h.openBrowser()
	for i, width := range []int64{390, 768, 1280} {
		b.do(chromedp.EmulateViewport(width, 900))
		b.prefer([]string{"light", "dark", "light"}[i])
		b.open("/forms/" + strconv.Itoa(i+1))
		b.run(`for (const d of document.querySelectorAll("details")) d.open = true`)
		if wide := b.text(`document.documentElement.scrollWidth > innerWidth`); wide != "false" {
			t.Errorf("the page is wider than %d", width)
		}
		if found := b.violations(string(source)); found != "" {
			t.Errorf("at %d:\n%s", width, found)
		}
		if *screenshots != "" {
			b.shoot(fmt.Sprintf("approvals-%d", width))
		}
	}
	b.checkNoFaults()
}

// TestItemNamesAToolAsItsRowDoes has the server and the tool of a call by MCP in words, and the name that a rule has beside them.
func TestItemNamesAToolAsItsRowDoes(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.approve("mcp__postgres__migrate", `{"table":"orders"}`)
	h.approve("Bash", `{"command":"make"}`)
	for path, want := range map[string]string{
		"/forms/0?in=questions": `<bdi class="tool" title="mcp__postgres__migrate">postgres · migrate</bdi>`,
		"/forms/1?in=questions": `<bdi class="tool" title="Bash">Bash</bdi>`,
	} {
		if _, _, body := h.get(path, "text/html"); !strings.Contains(body, want) {
			t.Errorf("%s has no %s", path, want)
		}
	}
}
