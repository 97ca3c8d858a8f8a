package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestToastSaysWhatWasDecided decides calls and a form. The toast names each: a long command without its middle, and what would turn the
// text around as its code.
func TestToastSaysWhatWasDecided(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	long := h.shell("git push origin main " + strings.Repeat("--option ", 12) + "to-the-end")
	turned := h.shell("echo \u202eniam")
	h.ask(parley.Form{Title: "Which port?", Fields: []events.Field{{Name: "port", Required: true}}})
	h.ask(parley.Form{Title: "The last one", Fields: []events.Field{{Name: "why", Required: true}}})
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/forms/" + long.Form.String() + "?in=questions")
	b.allowByKey(asking(long))
	b.reads(".toast .deed-done", "✓ Allowed once: git push origin main")
	b.reads(".toast .deed-done", "--option to-the-end")
	if got := b.text(`document.querySelector(".toast bdi").textContent.length`); got != "67" {
		t.Errorf("the command has %s characters in the toast", got)
	}
	b.takesKeys(asking(turned))
	b.shotIfWanted("toast-1280")
	b.press("d")
	b.until(`document.activeElement.matches(".why textarea")`)
	b.press(kb.Enter)
	b.reads(".toast .deed-done", "✕ Denied: echo ")
	if got := b.text(`[...document.querySelectorAll(".toast")].some((e) => e.textContent.includes("\u202e"))`); got != "false" {
		t.Error("a toast turns its text around")
	}
	b.until(`document.querySelector("#alone input[name=f0]")`)
	b.fill("#alone input[name=f0]", "8080")
	b.press("\r", chromedp.ModifierCtrl)
	b.reads(".toast .deed-done", "✓ Answered: Which port?")
	b.reads("#news", "✓ Answered: Which port?")
	b.checkNoFaults()
}

// TestDecisionIsSaidOnce allows a call in the list of what needs a person and one that is alone in its page, and listens to what a screen reader
// is told: how each ended, once.
func TestDecisionIsSaidOnce(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	calls := []view.Permitted{h.shell("make"), h.shell("git fetch")}
	b := h.openBrowser()
	for _, c := range []struct{ at, want string }{
		{"/forms/" + calls[0].Form.String() + "?in=questions", "✓ Allowed once: make"},
		{"/forms/" + calls[1].Form.String(), "✓ Allowed once · by you"},
	} {
		b.open(c.at)
		b.live()
		b.until(`document.querySelector("#alone > .message[data-keys]")`)
		b.run(`window.said = []; new MutationObserver(() => { const text = document.getElementById("news").textContent; if (text) said.push(text); }).observe(document.getElementById("news"), { childList: true })`)
		b.press("a")
		b.reads("#news", c.want)
		b.run(`new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); })`)
		if got := b.text(`said.length + " " + said.join(" | ")`); !strings.HasPrefix(got, "1 "+c.want) {
			t.Errorf("%s: it is said %q", c.at, got)
		}
	}
	b.checkNoFaults()
}

// TestSnoozeAsksNothing snoozes a form into which a secret is typed, which no draft keeps.
func TestSnoozeAsksNothing(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.ask(parley.Form{Title: "The key of the shop", Fields: []events.Field{{Name: "note"}, {Name: "key", Type: events.Secret, Required: true}}})
	h.ask(parley.Form{Title: "Which port?", Fields: []events.Field{{Name: "port", Required: true}}})
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/questions")
	b.live()
	b.until(`document.querySelector("#alone .secret input")`)
	b.fill("#alone .secret input", "hunter2")
	b.run(`document.querySelector('#alone .tools button[value=snooze-4]').click()`)
	b.until(`document.querySelector("dialog") || document.querySelector("#alone .heading").textContent === "Which port?"`)
	if got := b.text(`Boolean(document.querySelector("dialog"))`); got != "false" {
		t.Fatal("what was snoozed asks whether to leave it")
	}
	b.reads(".toast", "Snoozed: The key of the shop")
	b.click(".toast p button") // Undo
	b.reads("#alone .heading", "The key of the shop")
	b.checkNoFaults()
}

// TestBadgesCountRows counts identical calls once: in the title, in the rail, and at the foot of a narrow window, whatever page is open.
func TestBadgesCountRows(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for range 3 {
		h.shell("make")
	}
	h.shell("git push origin main")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	counts := `[document.title.split(" ")[0], ...[...document.querySelectorAll(".badge")].map((e) => e.hidden ? "none" : e.innerText.trim().split(/\s/)[0])].join()`
	b.open("/questions")
	b.until(counts + ` === "(2),2,2"`)
	b.reads("#left-agents .number", "2")
	b.until(`document.querySelectorAll(".entry").length === 2 && document.querySelector("nav.filters .number").textContent === "2"`)
	b.do(chromedp.EmulateViewport(390, 844))
	b.prefer("dark")
	for _, page := range []string{"/mail", "/agents", "/history", "/settings"} {
		b.open(page)
		b.until(counts + ` === "(2),2,2" && document.querySelector(".tabbar .badge").checkVisibility()`)
	}
	b.shotIfWanted("badge-390-dark")
	h.shell("git push origin next")
	b.until(counts + ` === "(3),3,3"`)
	b.checkNoFaults()
}

// TestOneStateOfAnAgent compares the state of an agent in the rail, in the table of agents and on its own page, while it waits for the
// reader and once it does not.
func TestOneStateOfAnAgent(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.shell("make")
	b := h.openBrowser()
	state := func(want string) {
		t.Helper()
		b.open("/agents")
		b.reads(fmt.Sprintf(".agent[data-part=%q] .standing", h.fae.ID().String()), want)
		b.until(fmt.Sprintf(`document.querySelector('#left-agents h2:has(+ a[data-part=%q])').textContent.trim() === %q`, h.fae.ID().String(), want))
		b.open("/agents/fae")
		b.reads(".agent-head .standing", want)
	}
	state("Waiting for you")
	h.decide(p, "once")
	state("Idle")
	b.checkNoFaults()
}

// TestPassedOnMailNamesItsAuthor opens the mail of a group, which has passed on what an agent sent to it.
func TestPassedOnMailNamesItsAuthor(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	host, ctx := h.node.Host(), t.Context()
	team, ann := h.guest("team"), h.guest("ann")
	for to, what := range map[string]string{"fae": "know @team", "team": "know @ann"} {
		if _, err := host.Send(ctx, to, what); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "the group has its member", func() bool {
		_, err := team.SetMember(ctx, mailbox.SetMember{Agent: ann.ID().String(), In: true})
		return err == nil
	})
	eventually.Holds(t, "the message is sent", func() bool {
		_, err := h.fae.Send(ctx, team.ID().String(), "the build is green")
		return err == nil
	})
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/mail?as=team")
	b.reads(".entry .from", "fae to ann")
	b.run(`[...document.querySelectorAll(".entry a")].find((a) => a.innerText.includes("fae to ann")).click()`)
	b.until(`[...document.querySelectorAll("#alone .post .by")].some((e) => /^fae by .* to ann/.test(e.innerText.replaceAll("\n", " ")))`)
	if got := b.text(`document.querySelectorAll("#alone .initials.own").length`); got != "0" {
		t.Error("what fae sent is the reader's")
	}
	b.shotIfWanted("passed-on")
	b.checkNoFaults()
}

// TestClaimIsPressed claims a form that two hosts may answer, each on a page of its own, takes it over and releases it. Its button is in the
// bar, in line with the others and on the screen. What was typed stays.
func TestClaimIsPressed(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1280, 390} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			h := openPageServer(t)
			ops := h.second()
			form := h.askBoth(ops, parley.Form{Title: "Which port?", Description: strings.Repeat("It has to be free.\n", 60), Fields: []events.Field{{Name: "port", Required: true}, {Name: "why"}}})
			o := &pageServer{t: t, server: h.server, node: h.node, fae: h.fae, url: "http://" + h.server.Address(), token: makeToken(t, ops, "read", "ask", "answer", "admin")}
			at := "/forms/" + form.Form.String() + "?in=questions"
			one, other := h.openBrowser(), o.openBrowser()
			for _, b := range []*tab{one, other} {
				b.do(chromedp.EmulateViewport(width, 800))
				b.open(at)
				b.reads("#alone .claims", "I am on it")
			}
			one.until(`(([claim, decline, bar]) => claim.bottom <= innerHeight && claim.bottom <= bar.bottom && Math.abs(claim.height - decline.height) < 1 && claim.left >= bar.left && claim.width > 40)
				(["#alone .claims", "#alone .acts .act > summary", "#alone .bar"].map((e) => document.querySelector(e).getBoundingClientRect()))`)
			one.fill("#alone [name=f1]", "nginx")
			one.shotIfWanted(fmt.Sprintf("claim-%d", width))
			one.click("#alone .claims")
			one.reads("#alone .claims", "I am not on it any more")
			one.reads("#alone .claimed", "You are on it, until")
			one.reads(".toast", "You are on it: Which port?")
			if got := one.text(`document.querySelector("#alone [name=f1]").value`); got != "nginx" {
				t.Errorf("what was typed is %q", got)
			}
			other.reads("#alone .claims", "Take it over")
			other.reads("#alone .claimed", "is on it, until")
			other.click("#alone .claims")
			other.reads("#alone .claims", "I am not on it any more")
			one.reads("#alone .claims", "Take it over")
			one.reads("#alone .claimed", "ops is on it")
			other.click("#alone .claims")
			other.reads("#alone .claims", "I am on it")
			one.reads("#alone .claims", "I am on it")
			one.shotIfWanted(fmt.Sprintf("claim-released-%d", width))
			one.fill("#alone [name=f0]", "80")
			one.run(`document.querySelector("#alone button[value=answer]").click()`)
			if o := h.outcome(form); o.Values.Text() != `{"port":"80","why":"nginx"}` {
				t.Error(o.Values.Text())
			}
			other.until(`!document.querySelector("#alone .claims")`)
			one.checkNoFaults()
			other.checkNoFaults()
		})
	}
}

// TestToastIsAtTheEdgeOfAReview decides the call before a review, whose buttons are below its files and not below the toast.
func TestToastIsAtTheEdgeOfAReview(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.shell("rm -rf build")
	for _, file := range []string{"a", "b", "c"} {
		h.approveIn("/srv/shop", "Write", fmt.Sprintf(`{"file_path":"/srv/shop/app/%s.ts","content":"1"}`, file))
	}
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/questions")
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.press("a")
	b.until(`document.querySelector("#alone [data-review]") && document.querySelector(".toast .deed-done")`)
	b.until(`innerHeight - document.querySelector(".toast").getBoundingClientRect().bottom < 40`)
	b.checkNoFaults()
}

// TestNoToastIsAboutTheOpenItem snoozes a question and takes that back, which opens it, and opens one of which a toast tells.
func TestNoToastIsAboutTheOpenItem(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.shell("make")
	asked := h.ask(parley.Form{Title: "Which port?", Fields: []events.Field{{Name: "port", Required: true}}})
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/forms/" + asked.Form.String() + "?in=questions")
	b.live()
	b.run(`document.querySelector("#alone > .message").focus()`)
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.press("s")
	b.reads(".toast", "Snoozed")
	b.reads(".badge", "1")
	b.run(`document.querySelector(".toast .deed-done button").click()`) // the toast moves as the next item opens
	card := `document.querySelector("#alone > .message").id`
	b.until(`document.querySelector("#alone > .message .heading").innerText === "Which port?" && document.querySelector(".badge").innerText.startsWith("2")`)
	h.shell("npm ci")
	b.reads(".toast .what", "npm ci")
	if got := b.text(`[...document.querySelectorAll(".toast")].some((t) => t.dataset.key === ` + card + `)`); got != "false" {
		t.Error("a toast is about what was opened by taking back")
	}
	b.click(".toast a")
	b.until(`document.querySelector("#alone .command")?.innerText.trim() === "npm ci" && !document.querySelector(".toast .what")`)
	b.checkNoFaults()
}
