package gateway

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/actors"
)

// permitted reports what was decided on an approval.
func (h *parlour) permitted(p actors.Permission) bool {
	h.t.Helper()
	allowed, _, err := h.fae.AwaitApproval(h.t.Context(), actors.Which(p.Form.String()))
	if err != nil {
		h.t.Fatal(err)
	}
	return allowed
}

// asking is the selector of the message that asks for a permission.
func asking(p actors.Permission) string {
	return fmt.Sprintf("li.message[data-id=%q]", p.Form.String())
}

func TestAlwaysIsNotAskedAgainAndAnotherInputIs(t *testing.T) {
	h := openParlour(t)
	const input = `{"command": "git push",  "cwd":"site"}`
	first := h.approve("shell", input)
	b := h.openBrowser()
	b.open("/questions")
	b.reads(asking(first)+" .heading", "shell")
	if got := b.text(fmt.Sprintf(`document.querySelector(%q).textContent`, asking(first)+" .context.input")); got != input {
		t.Errorf("it shows the input %q, want it to the letter: %q", got, input)
	}
	b.click(asking(first) + " button[value=always]")
	b.reads(asking(first)+" .state", "Answered by HOST")
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
	b.reads(asking(changed)+" .context.input", "other")
	b.click(asking(changed) + " button[value=deny]")
	b.reads(asking(changed)+" .state", "Answered by HOST")
	if h.permitted(changed) {
		t.Error("deny is leave")
	}
	b.isFine()
}

func TestAnApprovalOfACommandStandsForItsKind(t *testing.T) {
	h := openParlour(t)
	first := h.approve("shell", `{"command":"git push"}`)
	b := h.openBrowser()
	b.open("/")
	b.click(asking(first) + " button[value=always]")
	b.reads(asking(first)+" .state", "Answered by HOST")
	if !h.permitted(first) {
		t.Error("always is no leave")
	}
	for command, decided := range map[string]bool{"git push origin main": true, "git reset": false, "git push && rm -r x": false, "./git push": false} {
		if p := h.approve("shell", fmt.Sprintf(`{"command":%q}`, command)); p.Decided != decided {
			t.Errorf("%s: decided %t, want %t", command, p.Decided, decided)
		}
	}
	b.isFine()
}

func TestAStandingRuleEndsOnTheAgentsPage(t *testing.T) {
	h := openParlour(t)
	h.decide(h.approve("shell", `{"command":"git push"}`), "always")
	h.approve("shell", `{"command":"git push"}`)
	b := h.openBrowser()
	b.open("/agents/fae")
	b.reads("#rules li", "command: git push …")
	b.reads("#rules li", "used 1 time")
	b.click("#rules button[name=end]")
	b.until(`!document.querySelector("#rules")`)
	b.reads("#dossier", "every call that needs leave is asked about")
	b.until(`[...document.querySelectorAll("#log summary")].some((s) => s.textContent.includes("RuleRemoved"))`)
	b.isFine()
	if p := h.approve("shell", `{"command":"git push"}`); p.Decided {
		t.Errorf("a rule that has ended decides: %+v", p)
	}
}

func TestARuleThatIsGoneIsSaidToBe(t *testing.T) {
	h := openParlour(t)
	h.decide(h.approve("shell", `{"command":"ls"}`), "never")
	b := h.openBrowser()
	b.open("/agents/fae")
	b.reads("#rules li", "Never")
	rules, err := h.fae.Rules(t.Context())
	if err != nil || len(rules) != 1 {
		t.Fatal(rules, err)
	}
	if err := h.node.Host().RemoveRule(t.Context(), h.fae, rules[0].Rule); err != nil {
		t.Fatal(err)
	}
	b.click("#rules button[name=end]")
	b.reads(".failure", "has no rule")
	b.isFine()
}

func TestAHostileApprovalIsText(t *testing.T) {
	h := openParlour(t)
	const tool = "<script>alert(1)</script>\u202etxt.exe"
	input := "{\"path\":\"</p><img src=x onerror=alert(2)>\u202e\u200b\"}"
	p := h.approve(tool, input)
	b := h.openBrowser()
	for _, path := range []string{"/questions", "/", "/forms/" + p.Form.String()} {
		b.open(path)
		b.reads(asking(p)+" .heading", `<script>alert(1)</script>\u{202e}txt.exe`)
		b.reads(asking(p)+" .context.input", `</p><img src=x onerror=alert(2)>\u{202e}\u{200b}`)
	}
	b.click(asking(p) + " button[value=never]")
	b.reads(asking(p)+" .state", "Answered by HOST")
	if h.permitted(p) {
		t.Error("never is leave")
	}
	b.open("/agents/fae")
	b.reads("#rules .tool", `<script>alert(1)</script>\u{202e}txt.exe`)
	b.reads("#rules .shape", `</p><img src=x onerror=alert(2)>\u{202e}\u{200b}`)
	if b.text(`document.querySelectorAll("main img, main script:not([src])").length`) != "0" {
		t.Error("markup of others is in the page")
	}
	b.isFine()
}

const onTop = "dialog.approval[open] "

func TestAnApprovalThatComesStandsOnTop(t *testing.T) {
	h := openParlour(t)
	h.approve("old", `"it waited before"`)
	b := h.openBrowser()
	b.open("/")
	b.until(`document.getElementById("count").textContent === "1"`)
	b.live()
	first := h.approve("shell", `{"command":"make"}`)
	b.reads(onTop+".heading", "shell")
	b.reads(onTop+".context.input", `{"command":"make"}`)
	b.until(`document.activeElement.tagName === "TEXTAREA" && document.activeElement.closest("dialog")`)
	b.until(`new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size === document.querySelectorAll("[id]").length`)
	second := h.approve("shell", `{"command":"make install"}`)
	b.until(`document.getElementById("count").textContent === "3"`)
	b.press("because")
	b.click(onTop + "button[value=once]")
	b.reads(onTop+".context.input", "make install") // the next, once this is decided
	if !h.permitted(first) {
		t.Error("once is no leave")
	}
	b.press("not now")
	b.press(kb.Escape)
	b.until(`!document.querySelector("dialog")`)
	b.until(fmt.Sprintf(`document.querySelector(%q)`, "#stream "+asking(second)+"[data-waits]"))
	b.isFine()
	in, err := h.node.Host().Inbox(t.Context(), actors.View{Pending: true})
	if err != nil || len(in.Messages) != 2 {
		t.Errorf("%d wait, %v", len(in.Messages), err)
	}
}

func TestAnApprovalDoesNotDisturbWhoIsTyping(t *testing.T) {
	h := openParlour(t)
	b := h.openBrowser()
	b.open("/")
	b.live()
	b.fill("parley-command input", "half a word")
	p := h.approve("shell", `{"command":"make"}`)
	b.reads(asking(p)+" .context.input", "make")
	b.until(`document.getElementById("count").textContent === "1"`)
	b.until(`!document.querySelector("dialog") && document.activeElement.matches("parley-command input")`)
	b.isFine()
}

func TestAnApprovalSettledElsewhereLeavesTheTop(t *testing.T) {
	h := openParlour(t)
	b := h.openBrowser()
	b.open("/agents")
	b.live()
	p := h.approve("shell", `{"command":"make"}`)
	b.reads(onTop+".heading", "shell")
	h.decide(p, "once")
	b.until(`!document.querySelector("dialog")`)
	b.isFine()
}

// live waits until the page has been told what waits: what comes from then on is new.
func (b *tab) live() {
	b.t.Helper()
	b.until(`document.documentElement.dataset.told`)
}
