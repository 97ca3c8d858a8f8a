package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// permitted reports whether an approval was allowed.
func (h *pageServer) permitted(p view.Permitted) bool {
	h.t.Helper()
	allowed, _, err := h.fae.AwaitApproval(h.t.Context(), capabilities.FormID(p.Form))
	if err != nil {
		h.t.Fatal(err)
	}
	return allowed
}

// asking returns the selector of an approval's message.
func asking(p view.Permitted) string {
	return fmt.Sprintf("li.message[data-id=%q]", p.Form.String())
}

func TestAlwaysCoversOnlyItsCalls(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const input = `{"command": "git push",  "cwd":"site"}`
	first := h.approve("shell", input)
	b := h.openBrowser()
	b.open("/questions")
	b.reads(asking(first)+" .heading", "fae wants to run git push")
	if got := b.text(fmt.Sprintf(`document.querySelector(%q).textContent`, asking(first)+" .context.input")); got != input {
		t.Errorf("it shows the input %q, want it unchanged: %q", got, input)
	}
	b.click(asking(first) + " button[value=always]")
	b.reads(asking(first)+" .state", "✓ Always: exactly this call · by you")
	if !h.permitted(first) {
		t.Error("always is no leave")
	}
	if again := h.approve("shell", input); !again.Decided || !again.Allowed || !again.Form.IsZero() {
		t.Errorf("the same call: %+v", again)
	}
	changed := h.approve("shell", `{"command": "git push",  "cwd":"other"}`)
	if changed.Decided {
		t.Fatalf("another input was decided: %+v", changed)
	}
	b.holds(asking(changed)+" .context.input", "other")
	b.click(asking(changed) + " button[value=deny]")
	b.reads(asking(changed)+" .state", "✕ Denied · by you")
	if h.permitted(changed) {
		t.Error("deny is leave")
	}
	b.checkNoFaults()
}

// TestReasonIsTypedWhereItBegins opens the reason for a denial with the mouse, and types one that has the letters of keys. No call
// is decided but by the denial, also while the focus is elsewhere.
func TestReasonIsTypedWhereItBegins(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	first, second := h.approve("shell", `{"command":"git push"}`), h.approve("shell", `{"command":"rm -rf ~"}`)
	edited, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"make"}`}, Editable: true})
	if err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	for _, p := range []view.Permitted{first, second} {
		b.open("/forms/" + p.Form.String())
		b.until(fmt.Sprintf(`document.querySelector(%q)`, asking(p)+"[data-keys]"))
		b.click(asking(p) + " .why summary")
		b.until(`document.activeElement.matches(".why textarea")`)
		b.press("as agreed, a day off")
		b.run(fmt.Sprintf(`document.activeElement.blur(); document.querySelector(%q).focus()`, asking(p)))
		b.press("a")
		b.run(`document.querySelector(".why textarea").focus()`)
		b.press(kb.Enter)
		b.reads(asking(p)+" .state", "✕ Denied · as agreed, a day off · by you")
		if h.permitted(p) {
			t.Error("the call that was denied is allowed")
		}
	}
	b.open("/forms/" + edited.Form.String())
	b.until(fmt.Sprintf(`document.querySelector(%q)`, asking(edited)+"[data-keys]"))
	for _, key := range []string{"d", "e"} { // and A before that is released
		b.run(fmt.Sprintf(`for (const key of [%q, "a"]) document.querySelector(%q).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }))`, key, asking(edited)))
		b.until(`document.querySelector(` + "`.${{d: 'why', e: 'edit'}['" + key + "']}[open]`" + `)`)
		b.run(`for (const d of document.querySelectorAll("details[open]")) d.open = false`)
	}
	b.reads(asking(edited)+" button[value=once]", "Allow once")
	if m, err := h.fae.Message(t.Context(), capabilities.FormID(edited.Form)); err != nil || m.Outcome != nil {
		t.Errorf("a key pressed before another was released decides: %+v, %v", m.Outcome, err)
	}
	b.checkNoFaults()
}

// TestRuleIsChosenByDescription checks that the Always button names the rule that it adds, and that the page shows that rule
// afterwards. Without a choice the rule covers the exact call.
func TestRuleIsChosenByDescription(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const shop, wider = "/srv/shop", "git push to origin, any branches or tags, without options, in /srv/shop"
	exact := h.approveIn(shop, "shell", `{"command":"git push origin next"}`)
	b := h.openBrowser()
	b.open("/questions")
	b.reads(asking(exact)+" button[value=always]", "exactly this call, in /srv/shop")
	b.click(asking(exact) + " button[value=always]")
	b.reads(asking(exact)+" .state", "✓ Always: exactly this call, in /srv/shop · by you")

	first := h.approveIn(shop, "shell", `{"command":"git push origin main"}`)
	b.reads(asking(first)+" button[value=always]", "exactly this call, in /srv/shop")
	b.click(fmt.Sprintf("%s .rules input[value=%q]", asking(first), h.asked(first).Permission.Offers[1].ID))
	b.reads(asking(first)+" button[value=always]", wider)
	b.reads(asking(first)+" button[value=never]", wider)
	b.click(asking(first) + " button[value=always]")
	b.reads(asking(first)+" .state", "✓ Always: "+wider+" · by you")
	if !h.permitted(first) {
		t.Error("always is no leave")
	}
	for command, decided := range map[string]bool{
		"git push origin x": true, "git push --force origin main": false, "git push origin main --exec /path": false, "git push origin main && rm -r x": false, "./git push origin main": false,
	} {
		if p := h.approveIn(shop, "shell", fmt.Sprintf(`{"command":%q}`, command)); p.Decided != decided {
			t.Errorf("%s: decided %t, want %t", command, p.Decided, decided)
		}
	}
	if p := h.approveIn("/srv/other", "shell", `{"command":"git push origin main"}`); p.Decided {
		t.Error("a rule for one folder decides in another")
	}
	b.open("/agents/fae?tab=rules")
	b.reads("#rules li", wider)
	b.checkNoFaults()
}

// TestRuleIsChosenWithoutScript sends a plain HTML form.
func TestRuleIsChosenWithoutScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approveIn("/srv/shop", "Edit", `{"file_path":"/srv/shop/src/a.go","old_string":"a","new_string":"b"}`)
	_, _, body := h.get("/forms/"+p.Form.String(), "text/html")
	const files = "any input for files src/**/*.go that are not hidden, in /srv/shop"
	offers := h.asked(p).Permission.Offers
	for i, want := range []string{"exactly this call, in /srv/shop", "any input for the file src/a.go, in /srv/shop", files} {
		if !strings.Contains(body, fmt.Sprintf(`value="%s"`, offers[i].ID)) || !strings.Contains(body, fmt.Sprintf(`data-words="%s"`, want)) {
			t.Errorf("there is no %s in\n%s", want, body)
		}
	}
	for _, wrong := range []string{"files", files, h.asked(h.approveIn("/srv/other", "Edit", `{"file_path":"/srv/other/src/a.go"}`)).Permission.Offers[2].ID} {
		status, _, body := h.postForm("/forms/"+p.Form.String(), url.Values{"f0": {"always"}, "f1": {""}, "f2": {wrong}})
		if status != http.StatusUnprocessableEntity || !strings.Contains(body, "not one of the options") || !strings.Contains(body, "the rule chosen above") {
			t.Errorf("the rule %s, which is not offered: %d\n%s", wrong, status, body)
		}
	}
	if status, _, body := h.postForm("/forms/"+p.Form.String(), url.Values{"f0": {"always"}, "f1": {""}, "f2": {offers[2].ID}}); status != http.StatusSeeOther {
		t.Fatalf("%d\n%s", status, body)
	}
	if _, _, body := h.get("/forms/"+p.Form.String(), "text/html"); !strings.Contains(body, "Always: "+files) {
		t.Errorf("the rule is not said afterwards:\n%s", body)
	}
	for file, decided := range map[string]bool{"src/b.go": true, "src/.git/b.go": false, "b.go": false, "../b.go": false} {
		if p := h.approveIn("/srv/shop", "Edit", fmt.Sprintf(`{"file_path":%q}`, file)); p.Decided != decided {
			t.Errorf("%s: decided %t, want %t", file, p.Decided, decided)
		}
	}
}

func TestRuleIsRemovedOnAgentPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.approve("shell", `{"command":"git push"}`), "always")
	h.approve("shell", `{"command":"git push"}`)
	b := h.openBrowser()
	b.open("/agents/fae?tab=rules")
	b.reads("#rules li", "exactly: git push")
	b.reads("#rules li", "used 1 time")
	b.click("#rules button[name=end]")
	b.until(`!document.querySelector("#rules")`)
	b.reads("#agent", "every call that needs leave is asked about")
	b.checkNoFaults()
	if p := h.approve("shell", `{"command":"git push"}`); p.Decided {
		t.Errorf("a rule that has ended decides: %+v", p)
	}
}

// TestRemovedRuleIsReported removes the rule while the page's own call to remove it is under way.
func TestRemovedRuleIsReported(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.approve("shell", `{"command":"ls"}`), "never")
	b := h.openBrowser()
	b.open("/agents/fae?tab=rules")
	b.reads("#rules li", "Never")
	rules, err := h.fae.Rules().List(t.Context())
	if err != nil || len(rules) != 1 {
		t.Fatal(rules, err)
	}
	b.run(`((send) => { window.fetch = (where, ...rest) => String(where).includes('remove_rule') ? new Promise((go) => { window.sends = go }).then(() => send(where, ...rest)) : send(where, ...rest) })(window.fetch)`)
	b.click("#rules button[name=end]")
	b.until(`!!window.sends`)
	if err := h.node.Host().Rules().Remove(t.Context(), h.fae, rules[0].Rule); err != nil {
		t.Fatal(err)
	}
	b.run(`window.sends()`)
	b.reads(".failure", "has no rule")
	b.checkNoFaults()
}

func TestApprovalIsShownAsText(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const tool = "<script>alert(1)</script>\u202etxt.exe"
	input := "{\"path\":\"</p><img src=x onerror=alert(2)>\u202e\u200b\"}"
	p := h.approve(tool, input)
	b := h.openBrowser()
	for _, path := range []string{"/questions", "/mail", "/forms/" + p.Form.String()} {
		b.open(path)
		b.reads(asking(p)+" .heading", `use <script>alert(1)</script>\u{202e}txt.exe`)
		b.reads(asking(p)+" .values dd", `</p><img src=x onerror=alert(2)>\u{202e}\u{200b}`)
		b.holds(asking(p)+" .context.input", `</p><img src=x onerror=alert(2)>\u{202e}\u{200b}`)
	}
	b.click(asking(p) + " button[value=never]")
	b.reads(asking(p)+" .state", "✕ Never: exactly this call · by you")
	if h.permitted(p) {
		t.Error("never is leave")
	}
	b.open("/agents/fae?tab=rules")
	b.reads("#rules .tool", `<script>alert(1)</script>\u{202e}txt.exe`)
	b.reads("#rules .shape", `</p><img src=x onerror=alert(2)>\u{202e}\u{200b}`)
	if b.text(`document.querySelectorAll("main img, main script:not([src])").length`) != "0" {
		t.Error("markup of others is in the page")
	}
	b.checkNoFaults()
}

// TestNewApprovalIsToldByToast checks that an approval that comes takes no focus, is not lost, and is opened by its toast.
func TestNewApprovalIsToldByToast(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	form := h.ask(parley.Form{Description: "Half filled", Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.fill(fieldAt(0)+" input", "half a word")
	first := h.approve("shell", `{"command":"make"}`)
	b.reads(".toast .what", "make")
	b.reads("#stream .what", "make")
	b.until(`document.getElementById("count").textContent === "2"`)
	b.until(`document.activeElement.name === "f0" && document.activeElement.value === "half a word"`)
	b.until(`new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size === document.querySelectorAll("[id]").length`)
	b.click(".toast a")
	b.reads("#alone .heading", "run make")
	b.until(`document.activeElement.matches("li.message[data-keys]")`)
	b.press("a")
	b.reads("#alone", "Half filled") // the next one, with its draft
	b.until(`document.activeElement.value === "half a word"`)
	if !h.permitted(first) {
		t.Error("once is no leave")
	}
	other := h.approve("shell", `{"command":"make install"}`)
	b.reads(".toast", "make install")
	h.decide(other, "once")
	b.until(`![...document.querySelectorAll(".toast, .entry")].some((e) => e.textContent.includes("make install"))`)
	b.open("/agents")
	b.live()
	h.approve("shell", `{"command":"make clean"}`)
	b.click(".toast a")
	b.do(chromedp.WaitReady(chromedp.CSS("#alone .message"))) // it is another page
	b.reads("#alone .heading", "run make clean")
	b.checkNoFaults()
	if in, err := h.node.Host().Mail().Inbox(t.Context(), view.MessageFilter{Pending: true}); err != nil || len(in.Messages) != 2 || in.Messages[0].MessageID != form.Form {
		t.Errorf("%d wait, %v", len(in.Messages), err)
	}
}

// TestRuleButtonsAreHiddenWhereSeveralDecide compares the buttons of an approval that one decides with those of one that needs
// two. A decision of several makes no rule and allows no other input, so nothing on the page may offer that.
func TestRuleButtonsAreHiddenWhereSeveralDecide(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	approve := func(command string, need uint32) view.Permitted {
		p, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: fmt.Sprintf(`{"command":%q}`, command), Folder: "/srv/shop"}, Editable: true, Need: need})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	several := approve("git push origin next", 2) // it is drawn as it comes
	b.reads(asking(several)+" .heading", "fae wants to run git push origin next")
	one := approve("git push origin main", 1)
	for _, c := range []struct {
		approval        view.Permitted
		buttons, others string
		commands        string
	}{
		{several, "once,deny", "asks,why", "Allow once,Deny,Deny with a reason"},
		{one, "never,once,always,deny", "asks,edit,leave,why", "Allow once,Always allow,Deny,Never allow,Deny with a reason,Edit the input,Allow more"},
	} {
		in := asking(c.approval) + " form.ask "
		b.open("/forms/" + c.approval.Form.String())
		b.live()
		b.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.value).join() === %q`, in+"button.choice:not([data-edited], .asks *, .leave *)", c.buttons))
		b.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.className.replace('act ', '')).sort().join() === %q`, in+".others > details:not(.forward)", c.others))
		b.press("k", chromedp.ModifierCtrl)
		b.until(`document.activeElement.matches('.palette input')`)
		b.until(fmt.Sprintf(`[...document.querySelectorAll('.palette li')].map((e) => e.firstElementChild.textContent).filter((t) => /^(Allow|Always|Deny|Never|Edit)/.test(t)).join() === %q`, c.commands))
	}
	b.open("/forms/" + several.Form.String())
	b.live()
	b.click(asking(several) + " button[value=once]")
	b.reads(asking(several)+" .votes", "1 of 2 approvals")
	b.until(fmt.Sprintf(`!document.querySelector(%q)`, asking(several)+" button.choice"))
	b.checkNoFaults()
}

// holds waits until the text of an element contains words, be it folded or not.
func (b *tab) holds(selector, words string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, selector, words))
}

// live waits until the page knows the open questions. Later ones are new.
func (b *tab) live() {
	b.t.Helper()
	b.until(`document.documentElement.dataset.told`)
}
