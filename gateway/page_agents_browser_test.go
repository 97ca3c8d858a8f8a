package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/freeport"
	"parley/mailbox"
)

func TestAgentListIsLive(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/agents")
	b.live()
	b.until(`document.querySelectorAll('.agent').length === 2`)
	b.run(`document.querySelector('.agent summary').focus(); window.first = document.querySelector('.agent')`)
	b.until(`document.querySelector("#agent-count").textContent === "1"`)
	h.guest("joe")
	b.reads(".agent h2", "joe")
	b.until(`document.querySelector("#agent-count").textContent === "2" && document.querySelector("#agents .filters [aria-current] .number").textContent === "2"`) // rail and list count alike
	b.until(`document.querySelector('.agent') === window.first && document.activeElement.matches('.agent summary')`)                                               // unchanged elements stay
	h.ask(parley.Form{To: "HOST", Fields: []events.Field{{Name: "a"}}})
	b.reads(".agent", "1 waiting for an answer")
	b.reads(".agent", "1 question open")
	b.until(`document.activeElement.matches('.agent summary')`) // the same menu in the new element
	if err := h.node.Host().Names().Remove(t.Context(), "joe"); err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelectorAll('.agent').length === 2`)
	b.checkNoFaults()
}

// TestAgentListCountsOnceItsIndexFollows has the index of what was decided refuse writes, here as too large ones. The list says that it does not
// know the numbers, and has them once the index takes writes again, without a reload. They are those of the browser's day, and go up with a call
// that a rule decides.
func TestAgentListCountsOnceItsIndexFollows(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.shell("make first"), "always")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 900))
	west := time.Now().UTC().Hour() - 6 // where it is six o'clock, so that the day is another than the node's in most hours
	if west > 12 {
		west -= 24
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: fmt.Sprintf("Etc/GMT%+d", west)}); err != nil {
		t.Fatal(err)
	}
	b.open("/agents")
	b.live()
	today := `document.querySelector(".agent:has(h2 a[href$='/agents/fae']) .today").textContent`
	b.until(today + ` === "1 / 0"`)
	b.until(`Date.parse(document.querySelector(".agents caption").dataset.day) === new Date().setHours(0, 0, 0, 0)`)
	h.shell("make first")
	b.until(today + ` === "2 / 0"`)
	index := h.index()
	if _, err := index.ExecContext(t.Context(), fillIndex); err != nil {
		t.Fatal(err)
	}
	h.decide(h.shell("make second"), "deny")
	b.until(today + ` === "–"`)
	b.shotIfWanted("agents-behind")
	if _, err := index.ExecContext(t.Context(), freeIndex); err != nil {
		t.Fatal(err)
	}
	b.until(today + ` === "2 / 1"`)
	b.checkNoFaults()
}

func TestAgentPageIsLive(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/agents/fae")
	b.live()
	if _, err := h.fae.Send(t.Context(), "HOST", "I **begin** <b>now</b>"); err != nil {
		t.Fatal(err)
	}
	b.reads("#activity .mail strong", "begin")
	b.reads("#activity .mail", "I begin <b>now</b>")
	b.open("/agents/fae?tab=access")
	b.live()
	if err := h.fae.Names().Store(t.Context(), "note", `"kept"`); err != nil {
		t.Fatal(err)
	}
	b.reads("#holds li", "note")
	b.click(`#holds li[data-part=note] summary`)
	b.click(`button[name=remove][value=note]`)
	b.until(`!document.querySelector('#holds li[data-part=note]') && document.activeElement.id === 'main'`)
	b.open("/agents/fae?tab=rules")
	b.live()
	b.reads("#rules-head ~ p", "None")
	h.decide(h.approve("shell", `{"command":"ls"}`), "always")
	b.reads("#rules li", "shell")
	b.open("/agents/fae?tab=events")
	b.live()
	b.click("#log details summary")
	b.until(`document.querySelector('#log details').open`)
	if err := h.fae.Names().Store(t.Context(), "other", `"kept"`); err != nil {
		t.Fatal(err)
	}
	b.reads("#log li:first-child summary", "NameBound")
	b.until(`document.querySelectorAll('#log details[open]').length === 1 && !document.querySelector('#log details').open`) // the one that was opened
	b.checkNoFaults()
	if _, err := h.fae.Names().Show(t.Context(), "note", false); err == nil {
		t.Error("the name is still there")
	}
}

func TestAgentPageCatchesUpAfterRestart(t *testing.T) {
	t.Parallel()
	browserPath(t, shells...)
	k := &restartingNode{t: t, folder: t.TempDir(), address: freeport.Address(t)}
	k.start()
	t.Cleanup(func() { k.stop() })
	h := &pageServer{t: t, server: k.server, node: k.node, url: "http://" + k.address, token: makeToken(t, k.node.Host(), "read", "ask", "answer", "admin")}
	h.fae = h.guest("fae")
	b := h.openBrowser()
	b.open("/agents/fae?tab=access")
	b.live()
	k.stop()
	k.start()
	fae, err := k.node.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	if err := fae.Names().Store(t.Context(), "note", `"kept"`); err != nil { // before or after the page reconnects
		t.Fatal(err)
	}
	b.reads("#holds li", "note")
	b.checkNoFaults()
}

func TestGrantIsRevokedOnAgentPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.give()
	b := h.openBrowser()
	b.open("/agents")
	b.click(`a[href$="/agents/fae"]`)
	b.click(`.tabs a[href$="tab=access"]`)
	b.do(chromedp.WaitVisible("#grants button[name=revoke]"))
	b.reads("#grants li", "SELF to HOST")
	b.click("#grants button[name=revoke]")
	b.reads("#grants li", "revoked")
	b.until(`!document.querySelector("#grants button") && document.activeElement.id === "main"`)
	b.checkNoFaults()
	grants, err := h.fae.Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil || len(grants) != 1 || grants[0].Revoked == 0 {
		t.Errorf("%+v, %v", grants, err)
	}
}

// TestQuestionsAreCountedInRowsEverywhere has an agent make identical and similar calls and ask a question. Each place that says how
// many wait for the reader counts the rows of Needs you.
func TestQuestionsAreCountedInRowsEverywhere(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("joe")
	for range 2 {
		h.shell("make")
	}
	for i := range 3 {
		h.shell(fmt.Sprintf("go test ./p%d", i))
	}
	h.ask(parley.Form{Fields: []events.Field{{Name: "port"}}})
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 900))
	b.open("/questions")
	b.live()
	b.until(`document.querySelectorAll("#stream .entry").length === 3`)
	b.until(`document.querySelector(".badge").innerText.startsWith("3") && document.title.startsWith("(3) ")`)
	b.until(`document.querySelector("#left-agents a[href$='/agents/fae'] .number").innerText.startsWith("3")`)
	b.open("/agents")
	b.live()
	fae := `document.querySelector(".agent:has(h2 a[href$='/agents/fae'])")`
	b.until(fae + `.querySelector(".button").innerText.startsWith("Answer 3")`)
	if got := b.text(fae + `.innerText`); !strings.Contains(got, "3 questions open") {
		t.Errorf("the agent is shown as %q", got)
	}
	if got := b.text(`document.querySelector(".agent").innerText`); !strings.Contains(got, "3 waiting for an answer") {
		t.Errorf("the reader is shown as %q", got)
	}
	b.open("/agents/fae")
	b.live()
	b.reads("#agent", "3 questions open")
	asked := h.ask(parley.Form{Fields: []events.Field{{Name: "zone"}}})
	if err := h.node.Host().Forward(t.Context(), capabilities.FormID(asked.Form), "joe"); err != nil { // whose mail is the reader's too
		t.Fatal(err)
	}
	b.open("/agents")
	b.live()
	b.reads(".agent", "4 questions open")
	b.until(fae + `.querySelector(".button").innerText.startsWith("Answer 4")`)
	b.until(`document.querySelector("#left-agents a[href$='/agents/fae'] .number").innerText.startsWith("4") && document.querySelector(".badge").innerText.startsWith("4")`)
	b.checkNoFaults()
}

// TestRowOfAnAgentHasItsAct stops and starts an agent in the list, also without a script, and looks at what else a row and its menu offer.
func TestRowOfAnAgentHasItsAct(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.program("w", `read x < gate1`)
	broken := h.guest("broken")
	if err := broken.Report(t.Context(), "error", "exit 1"); err != nil {
		t.Fatal(err)
	}
	votes, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "deploy", Input: `{"to":"production"}`}, Need: 2})
	if err != nil {
		t.Fatal(err)
	}
	h.passOn(h.second(), votes.Form)
	b := h.openBrowser()
	b.open("/agents")
	b.live()
	row := func(name string) string {
		return fmt.Sprintf(`document.querySelector(".agent:has(h2 a[href$='/agents/%s'])")`, name)
	}
	act := func(name, want string) {
		t.Helper()
		b.until(fmt.Sprintf(`%s.querySelector(".does > :is(a, button)").innerText.startsWith(%q)`, row(name), want))
	}
	act("w", "Stop")
	act("broken", "Read")
	act("fae", "Vote")
	b.run(row("w") + `.querySelector(".does > button").click()`)
	act("w", "Start")
	b.until(row("w") + `.querySelector(".standing").innerText.includes("Stopped since")`)
	b.until(`document.activeElement.name === "start"`) // and the next act is at hand
	b.run(row("w") + `.querySelector(".does > button").click()`)
	act("w", "Stop")
	b.run(row("w") + `.querySelector("summary").click()`)
	if got := b.text(row("w") + `.querySelector(".panel").innerText.split("\n").join()`); got != "Mail,Activity,Rules,Access,Decisions" {
		t.Errorf("its menu has %s", got)
	}
	b.press(kb.Escape)
	b.until(`!document.querySelector(".menu[open]") && document.activeElement.ariaLabel === "More of w"`)
	b.click(".start summary") // the page runs no command: it says which
	b.reads(".start .panel", "parley run --detach --name builder -- COMMAND")
	b.shotIfWanted("agents-start")
	if wrong := b.text(overlaps); wrong != "" {
		t.Error(wrong)
	}
	b.press(kb.Escape)
	b.until(`!document.querySelector(".menu[open]") && document.activeElement.matches(".start summary")`)
	b.checkNoFaults()
	status, head, body := h.postForm("/agents/w", url.Values{"stop": {"yes"}, "from": {"agents"}})
	if status != http.StatusSeeOther || !strings.HasSuffix(head.Get("Location"), "/agents") {
		t.Errorf("without a script: %d %s %s", status, head.Get("Location"), body)
	}
	if cells := h.rowOf("/agents", "w"); len(cells) < 6 || !strings.HasPrefix(cells[5], "Start") {
		t.Errorf("stopped without a script, it is shown as %q", cells)
	}
	h.token = makeToken(t, h.node.Host(), "read")
	if cells := h.rowOf("/agents", "w"); len(cells) < 6 || strings.Contains(cells[5], "Start") {
		t.Errorf("who may only read is shown %q", cells)
	}
}
