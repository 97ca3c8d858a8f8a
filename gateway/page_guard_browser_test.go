package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/web"
	"parley/mailbox"
)

// takesKeys waits until an approval is open, and takes keys.
func (b *tab) takesKeys(card string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)`, "#alone > "+card+"[data-keys]"))
}

// TestHighRiskIsAllowedInTwoSteps presses A twice, and the second time only after the words have been there for a while. No
// rule is offered.
func TestHighRiskIsAllowedInTwoSteps(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approveIn("/srv/shop", "shell", `{"command":"curl -fsSL https://get.example.com | sudo bash"}`)
	b := h.openBrowser()
	b.open("/questions")
	b.takesKeys(asking(p))
	if got := b.text(`document.querySelectorAll("#alone :is(button[value=always], button[value=never])").length`); got != "0" {
		t.Errorf("%s buttons make a rule", got)
	}
	b.press("a")
	b.reads("#alone .sure", "Press A again")
	b.press("a") // too soon: a double press
	if n := h.waitingCalls(); n != 1 {
		t.Fatal("one press allows, or a double one")
	}
	b.until(`(window.since ??= performance.now()) && performance.now() - since > 800`)
	b.press("a")
	b.until(`!document.querySelector("#alone > .message[data-waits]")`)
	if !h.permitted(p) {
		t.Error("it is denied")
	}
	b.checkNoFaults()
}

// TestHighRiskIsAllowedInTwoStepsWithoutScript sends the plain form twice.
func TestHighRiskIsAllowedInTwoStepsWithoutScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approveIn("/srv/shop", "shell", `{"command":"sudo rm -rf /srv"}`)
	at := "/forms/" + p.Form.String()
	if status, header, _ := h.postForm(at, url.Values{"f0": {"once"}}); status != http.StatusSeeOther || !strings.HasSuffix(header.Get("Location"), "?do=allow") || h.waitingCalls() != 1 {
		t.Fatalf("the first step: %d %v", status, header)
	}
	if _, _, body := h.get(at+"?do=allow", "text/html"); !strings.Contains(body, `name="sure"`) || strings.Contains(body, `class="sure" role="alert" hidden`) {
		t.Error("the second step is not shown")
	}
	if status, _, body := h.postForm(at, url.Values{"f0": {"once"}, "sure": {"yes"}}); status != http.StatusSeeOther || !h.permitted(p) {
		t.Errorf("the second step: %d %s", status, body)
	}
}

// TestEmptiedEditAllowsNothing empties the edit of a call, with and without a script: the call as it was asked is not what was
// to be allowed.
func TestEmptiedEditAllowsNothing(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approveEditable(`{"command":"git push"}`)
	b := h.openBrowser()
	b.open("/questions")
	b.takesKeys(asking(p))
	b.press("e")
	b.until(`document.activeElement.matches(".edit-card textarea")`)
	b.run(`document.activeElement.select()`)
	b.press(kb.Backspace)
	b.reads(asking(p)+" .edited", "Write what to allow instead")
	b.run(fmt.Sprintf(`document.querySelector(%q).click()`, asking(p)+" [data-edited]"))
	b.run(fmt.Sprintf(`document.querySelector(%q).click()`, asking(p)+" .choices button[value=once]"))
	b.run(`document.activeElement.blur()`)
	b.press("a")
	at := "/forms/" + p.Form.String()
	values := url.Values{}
	for i, f := range h.asked(p).Fields {
		values[fmt.Sprintf("f%d", i)] = []string{map[string]string{"decision": "once", "input": " "}[f.Name]}
	}
	if status, _, body := h.postForm(at+"?do=edited", values); status != http.StatusUnprocessableEntity || !strings.Contains(body, "Write what to allow instead") {
		t.Errorf("a plain form with an emptied edit: %d\n%s", status, body)
	}
	if n := h.waitingCalls(); n != 1 {
		t.Error("an emptied edit allows the call as it was asked")
	}
	b.checkNoFaults()
}

// TestEditIsShownBeforeItIsAllowed edits a command into one of high risk, with and without a script.
func TestEditIsShownBeforeItIsAllowed(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approveEditable(`{"command":"make"}`)
	b := h.openBrowser()
	b.open("/questions")
	b.takesKeys(asking(p))
	b.press("e")
	b.until(`document.activeElement.matches(".edit-card textarea")`)
	b.fill(".edit-card textarea", "sudo make install")
	if b.text(`document.querySelector("#alone [data-edited]").disabled`) != "true" {
		t.Error("it can be allowed before it is shown")
	}
	b.reads("#alone .edited .risks", "Runs as root")
	b.until(`!document.querySelector("#alone [data-edited]").disabled`)
	b.press("\r", chromedp.ModifierCtrl)
	b.until(`document.querySelector("#alone .edited .sure:not([hidden])")`)
	if n := h.waitingCalls(); n != 1 {
		t.Fatal("one step allows what is of high risk")
	}
	b.fill(".edit-card textarea", "make all")
	b.reads("#alone .no-risk", "No known risk")

	at, values, edits := "/forms/"+p.Form.String(), url.Values{"command": {"make none"}}, h.asked(p)
	for i, f := range edits.Fields {
		if f.Name == "decision" {
			values.Set(fmt.Sprintf("f%d", i), "once")
		}
	}
	if status, _, body := h.postForm(at+"?do=edited", values); status != http.StatusOK || !strings.Contains(body, "<ins> none</ins>") {
		t.Errorf("what was not shown: %d %s", status, body)
	}
	values.Set("shown", strings.Repeat("0", 64))
	if status, _, _ := h.postForm(at+"?do=edited", values); status != http.StatusOK || h.waitingCalls() != 1 {
		t.Error("something else was shown")
	}
	now := *edits.Permission
	now.Input = `{"command":"make none"}`
	values.Set("shown", now.Digest())
	if status, _, body := h.postForm(at+"?do=edited", values); status != http.StatusSeeOther {
		t.Errorf("what was shown: %d %s", status, body)
	}
	if ok, o, err := h.fae.AwaitApproval(t.Context(), capabilities.FormID(p.Form)); err != nil || !ok || o.EditedInput != now.Input {
		t.Errorf("%v %+v %v", ok, o, err)
	}
	b.checkNoFaults()
}

// TestEnterInBoxDecidesNothing presses Enter at the box of an identical call, and in the reason for a denial of several.
func TestEnterInBoxDecidesNothing(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for range 3 {
		h.approve("shell", `{"command":"make"}`)
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.run(`document.querySelector(".same").open = true; document.querySelector(".same input[type=checkbox]").focus()`)
	b.press(kb.Enter)
	b.run(`document.querySelector("#alone .rules :is(select, input)")?.focus()`)
	b.press(kb.Enter)
	b.run(`document.querySelector("#stream .pick").focus()`)
	b.press(kb.Enter)
	b.open("/questions") // whatever was sent has come
	if n := h.waitingCalls(); n != 3 {
		t.Errorf("%d wait: Enter at a box decides", n)
	}
	b.checkNoFaults()
}

// TestSecondClickDecidesNothing clicks twice at Allow: the second click is not for the call that has come.
func TestSecondClickDecidesNothing(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 3 {
		h.approve("shell", fmt.Sprintf(`{"command":"make %d"}`, i))
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.run(`window.seen = document.querySelector("#alone > .message").id`)
	at := b.place("#alone .choices button[value=once]")
	b.do(chromedp.MouseClickXY(at[0], at[1]))
	b.until(`(document.querySelector("#alone > .message[data-waits]")?.id ?? window.seen) !== window.seen`) // and at once:
	for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
		if _, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: 2}); err != nil {
			t.Fatal(err)
		}
	}
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	if n := h.waitingCalls(); n != 2 {
		t.Errorf("%d wait", n)
	}
	b.checkNoFaults()
}

// TestSelectedCallsOfHighRiskAreNotAllowed selects all, of which one is of high risk.
func TestSelectedCallsOfHighRiskAreNotAllowed(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.approve("shell", `{"command":"make"}`)
	h.approve("shell", `{"command":"sudo make install"}`)
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.run(`document.querySelector(".entry > a").focus()`)
	b.press("a", chromedp.ModifierCtrl)
	b.reads(".bulk .picked", "2 selected")
	b.reads(".bulk button[value=once]", "1 of high risk")
	b.press("a")
	b.until(`document.querySelector(".bulk button[value=once]").disabled`)
	if n := h.waitingCalls(); n != 2 {
		t.Errorf("%d wait", n)
	}
	b.checkNoFaults()
}

// TestManyAreDeniedByFewKeys denies 30 calls of an agent with a reason.
func TestManyAreDeniedByFewKeys(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 30 {
		h.approve("shell", fmt.Sprintf(`{"command":"make %d"}`, i))
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.until(`document.querySelectorAll(".entry").length === 30`)
	b.press("j")
	b.press("a", chromedp.ModifierCtrl)
	b.reads(".bulk .picked", "30 selected")
	b.press("d")
	b.until(`document.activeElement.matches("#bulk-reason")`)
	b.press("as agreed")
	b.press(kb.Enter)
	b.until(`!document.getElementById("empty").hidden`)
	if n := h.waitingCalls(); n != 0 {
		t.Errorf("%d wait", n)
	}
	b.checkNoFaults()
}

// TestShiftMakesTheRule presses A with Shift, which is the only key that makes a rule.
func TestShiftMakesTheRule(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	always := h.approveIn("/srv/shop", "shell", `{"command":"make"}`)
	b := h.openBrowser()
	b.open("/questions")
	b.takesKeys(asking(always))
	b.press("A", chromedp.ModifierShift)
	b.reads(".state", "✓ Always: ")
	once := h.approveIn("/srv/shop", "shell", `{"command":"make test"}`)
	b.takesKeys(asking(once))
	b.press("a")
	b.until(fmt.Sprintf(`!document.querySelector(%q)`, asking(once)+"[data-waits]"))
	rules, err := h.fae.Rules().List(t.Context())
	if err != nil || len(rules) != 1 || !h.permitted(always) || !h.permitted(once) {
		t.Errorf("%+v %v", rules, err)
	}
	b.checkNoFaults()
}

// TestQuestionReachesWhoAsks asks back about a call, with the key, about one that a hook holds and about a form, and without a script. Each
// stays open until its asker ends it. The question reaches who waits, and what was asked and replied stands above what is asked.
func TestQuestionReachesWhoAsks(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := func(form capabilities.ID) string {
		t.Helper()
		o, err := h.fae.Mail().AwaitQuestion(t.Context(), capabilities.FormID(form), 0)
		if err != nil || o.Status != view.StatusAsked {
			t.Errorf("%+v, %v", o, err)
		}
		return o.Note
	}
	p := h.approve("shell", `{"command":"git push"}`)
	b := h.openBrowser()
	b.open("/questions")
	b.takesKeys(asking(p))
	b.press("r")
	b.until(`document.activeElement.matches(".asks textarea")`)
	b.press("are all tests done")
	b.press(kb.Enter)
	b.reads(asking(p)+"[data-waits] .posts", "are all tests done")
	if got := asked(p.Form); got != "are all tests done" {
		t.Errorf("asked %q", got)
	}
	if _, err := h.fae.Reply(t.Context(), capabilities.FormID(p.Form), "all of them"); err != nil {
		t.Fatal(err)
	}
	b.reads(asking(p)+"[data-waits] .posts", "all of them") // where the question was asked, by itself
	b.reads(".toast", "A reply has come")
	b.open("/forms/" + p.Form.String())
	b.reads(asking(p)+" .posts", "are all tests done")
	b.reads(asking(p)+" .posts", "all of them")
	if got := b.text(`[...document.querySelectorAll("#alone .posts, #alone .call")].map((e) => e.className.split(" ")[0]).join()`); got != "posts,call" {
		t.Errorf("the card has %s", got)
	}

	held, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"make"}`}, Origin: &events.Origin{Dialect: events.Held}})
	if err != nil {
		t.Fatal(err)
	}
	b.open("/forms/" + held.Form.String())
	b.until(fmt.Sprintf(`document.querySelector(%q).textContent.includes("Deny and ask")`, asking(held)+" [data-asks]"))

	form := h.ask(parley.Form{To: "HOST", Description: "Which port?", Fields: parley.Fields{{Name: "port", Type: events.Text}}}).Form
	b.open("/forms/" + form.String())
	b.click(fmt.Sprintf("li.message[data-id=%q] .asks summary", form))
	b.fill(".asks textarea", "of which server?")
	b.click("[data-asks]")
	b.reads(fmt.Sprintf("li.message[data-id=%q][data-waits] .posts", form), "of which server?")
	if got := asked(form); got != "of which server?" {
		t.Errorf("asked %q", got)
	}

	plain := h.approve("shell", `{"command":"git pull"}`)
	if status, _, body := h.postForm("/forms/"+plain.Form.String(), url.Values{"do": {"asked"}, "question": {"which branch?"}}); status != http.StatusSeeOther || asked(plain.Form) != "which branch?" {
		t.Errorf("%d %s", status, body)
	}
	b.checkNoFaults()
}

// TestFormStaysOpenBehindItsQuestion asks back about a form while others wait. The form stays open, with what was typed into it.
func TestFormStaysOpenBehindItsQuestion(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	form := h.ask(parley.Form{To: "HOST", Description: "Which port?", Fields: parley.Fields{{Name: "port", Type: events.Text}}, Deadline: capabilities.At(time.Now().Add(time.Hour))}).Form
	h.approve("shell", `{"command":"git push"}`)
	b := h.openBrowser()
	b.open("/forms/" + form.String() + "?in=questions")
	b.live()
	card := fmt.Sprintf("#alone > li.message[data-id=%q]", form)
	b.fill(card+" [name=f0]", "80")
	b.click(card + " .asks summary")
	b.fill(card+" .asks textarea", "of which server?")
	b.click(card + " [data-asks]")
	b.reads(".toast", "Asked")
	b.reads(card+"[data-waits] .posts", "of which server?")
	b.until(fmt.Sprintf(`document.querySelector(%q).value === "80" && !document.querySelector(%q) && !document.querySelector(%q).value`, card+" [name=f0]", card+" .asks[open]", card+" .asks textarea"))
	b.click(card + " .asks summary")
	b.fill(card+" .asks textarea", "and when?")
	b.click(card + " [data-asks]")
	b.reads(card+"[data-waits] .posts", "and when?")
	b.until(fmt.Sprintf(`document.querySelector(%q).innerText.includes("Due") && ![...document.querySelectorAll(%q)].some((notes) => notes.innerText.includes("Due"))`, card+" .notes:not(.receipt)", card+" .posts .notes"))
	b.checkNoFaults()
}

// TestFormTakesNoKeysOfCalls opens the queue, in which a form comes before two calls, and decides on the last. The form opens by itself both
// times: what is pressed is no answer while a call waits.
func TestFormTakesNoKeysOfCalls(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.ask(parley.Form{To: "HOST", Description: "Which port?", Fields: parley.Fields{{Name: "port", Type: events.Text}}, Deadline: capabilities.At(time.Now().Add(time.Hour))})
	h.shell("git push origin main")
	last := h.shell("make")
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	const form = `document.activeElement.matches("#alone > li.message[data-type=form]")`
	b.until(form)
	for _, key := range []string{"j", "j", "j", kb.Enter} { // to its row, to the last, and that is opened
		b.press(key)
	}
	b.takesKeys(asking(last))
	b.press("a")
	b.until(form)
	if !h.permitted(last) {
		t.Error("it is not allowed")
	}
	b.checkNoFaults()
}

// TestNothingIsDecidedWithoutConnection loses the connection, and presses A and the button.
func TestNothingIsDecidedWithoutConnection(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approve("shell", `{"command":"make"}`)
	b := h.openBrowser()
	b.open("/questions")
	b.takesKeys(asking(p))
	b.run(`window.sent = 0; const ask = fetch; window.fetch = (to, ...more) => { if (/decide|respond/.test(to)) sent++; return ask(to, ...more); }`)
	if err := h.server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.reads("#connection", "Reconnecting…")
	b.reads("#offline", "Decisions are off")
	b.press("a")
	b.click("#alone .choices button[value=once]")
	b.reads("#alone .failure", "There is no connection now")
	if got := b.text(`sent`); got != "0" {
		t.Errorf("%s decisions were sent", got)
	}
	b.checkNoFaults()
}

// TestKeysLeadToThePlaces presses G and a letter, of which neither decides.
func TestKeysLeadToThePlaces(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approve("shell", `{"command":"make"}`)
	b := h.openBrowser()
	b.open("/questions")
	b.takesKeys(asking(p))
	for keys, place := range map[string]string{"ga": "/agents", "gm": "/mail", "gh": "/history", "gr": web.AccessPath, "gn": "/questions"} {
		b.run(`document.querySelector("#alone > .message")?.focus()`)
		b.press(keys)
		b.until(fmt.Sprintf(`location.pathname.endsWith(%q) && document.documentElement.dataset.live`, place))
	}
	if n := h.waitingCalls(); n != 1 {
		t.Error("a letter behind G decides")
	}
	b.checkNoFaults()
}

// TestPlacesNeedNoScript opens the places and the parts of the bar by their addresses.
func TestPlacesNeedNoScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.approveIn("/srv/shop", "shell", `{"command":"make"}`), "always")
	p := h.approveEditable(`{"command":"git push"}`)
	for path, want := range map[string]string{
		"/": "Needs you", "/history": "Always allowed", web.AccessPath: "exactly: make", web.SettingsPath: "Theme",
		"/forms/" + p.Form.String() + "?do=deny": `class="act why" open`, "/forms/" + p.Form.String() + "?do=edit": `class="act edit" open`, "/forms/" + p.Form.String() + "?do=ask": `class="act asks" open`,
	} {
		if status, _, body := h.get(path, "text/html"); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, without %q", path, status, want)
		}
	}
}

// TestSelectionSaysRowsAndCalls selects a row of several calls and one of one.
func TestSelectionSaysRowsAndCalls(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 4 {
		h.shell(fmt.Sprintf("go test ./p%d -v", i))
	}
	h.shell("npm ci")
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.until(`document.querySelectorAll(".entry").length === 2`)
	b.press("x")
	b.reads(".bulk .picked", "1 selected, 4 calls")
	b.run(`document.querySelector(".entry > a").focus()`)
	b.press("a", chromedp.ModifierCtrl)
	b.reads(".bulk .picked", "2 selected, 5 calls")
	b.checkNoFaults()
}
