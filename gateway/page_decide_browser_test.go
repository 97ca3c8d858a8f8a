package gateway

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/events"
)

// longCommand returns the input of a shell that runs so many lines, the last of which deletes.
func longCommand(lines int) string {
	var b strings.Builder
	for i := range lines - 1 {
		fmt.Fprintf(&b, `echo step %d\n`, i)
	}
	return `{"command":"` + b.String() + `python3 wipe.py --all"}`
}

// allowByKey presses A at the open call until it is allowed: it scrolls while there is more to see.
func (b *tab) allowByKey(card string) {
	b.t.Helper()
	once := fmt.Sprintf(`document.querySelector(%q)`, card+" button[value=once]")
	for range 100 {
		b.until(fmt.Sprintf(`document.querySelector(%q)`, card+"[data-keys]"))
		before := b.text(`document.querySelector("#item").scrollTop`)
		if b.text(once+`.matches("[data-keys] button:not([data-unseen])")`) == "true" {
			b.press("a")
			b.confirm(card)
			return
		}
		b.press("a")
		b.until(once + `?.matches(":not([data-unseen])") || document.querySelector("#item").scrollTop !== ` + before)
	}
	b.t.Fatal("the end of the call never came into view")
}

// confirm takes the second step of a call of high risk, once it may be taken.
func (b *tab) confirm(card string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`((words, card) => !card?.matches("[data-waits]") || !words || !words.hidden)(document.querySelector(%q), document.querySelector(%q))`, card+" .sure", card))
	if b.text(fmt.Sprintf(`Boolean(document.querySelector(%q))`, card+"[data-waits] .sure:not([hidden])")) == "true" {
		b.until(`(window.first ??= performance.now()) && performance.now() - first > 800`)
		b.press("a")
	}
}

// inView is an expression that reports whether the last line of the open call is on the screen, above the bar of buttons.
const inView = `(([line, bar]) => { const r = line.getBoundingClientRect(); return r.top >= 0 && r.bottom <= Math.min(innerHeight, bar.getBoundingClientRect().top) + 1; })
	([[...document.querySelectorAll("#alone .line")].at(-1), document.querySelector("#alone .bar")])`

// TestCallIsAllowedOnceItsEndWasShown opens a call that is longer than the window.
func TestCallIsAllowedOnceItsEndWasShown(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{390, 1280} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			h := openPageServer(t)
			p := h.approve("shell", longCommand(301))
			b := h.openBrowser()
			b.do(chromedp.EmulateViewport(width, 800))
			b.open("/forms/" + p.Form.String() + "?in=questions")
			once := asking(p) + " button[value=once]"
			b.reads(once, "Scroll to the end to allow")
			b.until(`document.querySelector("#alone .bar").getBoundingClientRect().bottom <= innerHeight + 1`) // Deny is always there
			for _, value := range []string{"once"} {
				b.until(fmt.Sprintf(`document.querySelector(%q).disabled`, asking(p)+" button[value="+value+"]"))
			}
			b.until(fmt.Sprintf(`!document.querySelector(%q).disabled`, asking(p)+" button[value=deny]"))
			b.run(fmt.Sprintf(`document.querySelector(%q).click()`, once))
			b.until(fmt.Sprintf(`document.querySelector(%q)`, asking(p)+"[data-keys]"))
			b.press("a")
			b.until(`document.querySelector("#item").scrollTop > 0`)
			if b.text(inView) != "false" || h.waitingCalls() != 1 {
				t.Fatal("one key shows the end of 301 lines, or allows them")
			}
			b.shotIfWanted(fmt.Sprintf("long-call-%d", width))
			b.run(`document.querySelector("#item").scrollTop = 1e6`)
			b.reads(once, "Allow once")
			b.until(fmt.Sprintf(`%s && !document.querySelector(%q).disabled`, inView, once))
			b.press("a") // as it comes into view: the press was meant to scroll
			if h.waitingCalls() != 1 {
				t.Fatal("a key allows what has just come into view")
			}
			b.allowByKey(asking(p))
			if !h.permitted(p) {
				t.Error("it is denied")
			}
			b.checkNoFaults()
		})
	}
}

// TestCallWithLinesInAValueIsAllowed opens a call of a tool with a value of several lines, which are all in view: none of it is folded.
func TestCallWithLinesInAValueIsAllowed(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approve("note", `{"to":"bob","text":"one\ntwo\nthree"}`)
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/forms/" + p.Form.String() + "?in=questions")
	b.allowByKey(asking(p))
	if !h.permitted(p) {
		t.Error("it is denied")
	}
	b.checkNoFaults()
}

// TestElementAllowsOnceItsEndWasShown opens the form in the element for other pages.
func TestElementAllowsOnceItsEndWasShown(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approve("shell", longCommand(301))
	b := h.openBrowser()
	b.openEmpty(`<parley-form form="` + p.Form.String() + `"></parley-form>`)
	once := within("button[value=once]")
	b.until(once + `?.disabled && ` + once + `.innerText.includes("Scroll to the end")`)
	b.run(`scrollTo(0, 1e6)`)
	b.until(once + `?.disabled === false`)
	b.clickWithin("button[value=once]")
	if b.text(`Boolean(`+within(".sure")+`)`) == "true" { // of high risk: in two steps
		b.until(`(window.first ??= performance.now()) && performance.now() - first > 800`)
		b.clickWithin("button[value=once]")
	}
	if !h.permitted(p) {
		t.Error("it is denied")
	}
	b.checkNoFaults()
}

// TestPickedCallsAreAllowedOnceShown picks two calls in a list.
func TestPickedCallsAreAllowedOnceShown(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	short := h.approve("shell", `{"command":"make"}`) // the first of the list
	long := h.approve("shell", strings.ReplaceAll(longCommand(120), "python3 wipe.py --all", "echo end"))
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.until(`!document.querySelector("#alone button[value=once]").disabled`) // the short one is open, and shown
	b.run(`document.querySelectorAll(".pick").forEach((p) => p.click())`)
	b.reads(".bulk button[value=once]", "Open 1 to allow")
	b.until(`document.querySelector(".bulk button[value=once]").disabled && !document.querySelector(".bulk button[value=deny]").disabled`)
	b.run(`document.querySelector("#rows").focus()`)
	b.press("a") // opens the one that was not shown
	b.reads("#alone .heading", "echo step 0")
	b.run(`document.querySelector("#item").scrollTop = 1e6`)
	b.reads(".bulk button[value=once]", "Allow once")
	b.press("a")
	b.reads(".toast", "✓ Allowed once, 2 calls")
	b.until(`((toast) => { const words = document.createRange(); words.selectNodeContents(toast.querySelector(".deed-done")); return words.getBoundingClientRect().left - toast.getBoundingClientRect().left >= 8; })
		([...document.querySelectorAll(".toast")].at(-1))`) // its words keep off its edge
	if !h.permitted(long) || !h.permitted(short) {
		t.Error("it is denied")
	}
	b.reads("#empty", "Nothing needs you")
	b.until(`!document.querySelector("#alone .message[data-waits]")`)
	b.checkNoFaults()
}

// TestPartOfCallCannotBeAllowed opens a list beside which a part of a call is shown, with and without a script.
func TestPartOfCallCannotBeAllowed(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approve("shell", longCommand(3000))
	_, _, body := h.get("/questions", "text/html")
	if strings.Contains(body, `value="once" class="choice`) || strings.Contains(body, `value="always" class="choice`) || !strings.Contains(body, "Show the whole call to allow") {
		t.Error("a part of a call has a button that allows")
	}
	pick := url.Values{"id": {p.Form.String()}, "of": {p.Form.String() + " " + strings.Repeat("0", 64)}}.Encode()
	if status, _, body := h.postForm("/questions", url.Values{"do": {"once"}, "pick": {pick}}); status != http.StatusBadRequest || !strings.Contains(body, "where the whole of it is shown") {
		t.Errorf("several are allowed unseen: %d\n%s", status, body)
	}
	if status, _, _ := h.postForm("/forms/"+p.Form.String(), url.Values{"do": {"together"}, "decision": {"once"}, "of": {p.Form.String() + " x"}}); status != http.StatusUnprocessableEntity && status != http.StatusBadRequest {
		t.Errorf("all of an agent are allowed unseen: %d", status)
	}
	b := h.openBrowser()
	b.open("/questions")
	b.reads("#alone .see", "Show the whole call to allow")
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.press("a")
	b.reads("#alone button[value=once]", "Scroll to the end to allow")
	if n := h.waitingCalls(); n != 1 {
		t.Errorf("%d wait", n)
	}
	b.checkNoFaults()
}

// TestDecisionActsAtOnce holds the response to a decision back: the page says what happened once that is durable, and not
// before.
func TestDecisionActsAtOnce(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	first, second := h.approve("shell", `{"command":"one"}`), h.approve("shell", `{"command":"two"}`)
	b := h.openBrowser()
	b.open("/forms/" + first.Form.String() + "?in=questions")
	b.live()
	b.run(`const ask = fetch;
		window.gone = new Promise((f) => { window.release = f; });
		window.fetch = async (to, ...more) => {
			const came = await ask(to, ...more);
			if (/rpc/.test(to) && !/mark_read|draft/.test(to)) { window.came = true; await gone; }
			return came;
		};`)
	b.click(asking(first) + " button[value=once]")
	b.until(`window.came`)
	if !h.permitted(first) {
		t.Error("it is denied")
	}
	if got := b.text(`document.querySelectorAll(".toast").length + " " + document.querySelector("#alone .message").id.length`); !strings.HasPrefix(got, "0 ") {
		t.Errorf("the page says what it does not know: %s", got)
	}
	b.run(`window.release()`)
	b.reads(".toast", "✓ Allowed once")
	b.reads("#alone .heading", "run two") // the next one opens
	if got := b.text(`[...document.querySelectorAll(".toast button")].map((e) => e.textContent).join()`); got != "×" {
		t.Errorf("the toast offers %q", got)
	}
	b.until(fmt.Sprintf(`document.querySelector(%q)`, asking(second)+"[data-keys]"))
	b.repeat('a', 3) // a key that is held was pressed for another
	if n := h.waitingCalls(); n != 1 {
		t.Error("a key that is held allows")
	}
	b.checkNoFaults()
}

// TestDecidedRowStaysWithItsOutcome allows and denies calls and answers a form by keys: each row says how that ended, at its place, while the next
// item is open already. It leaves then, with a heading that has no other row.
func TestDecidedRowStaysWithItsOutcome(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.shell("make")
	h.shell("git fetch")
	h.ask(parley.Form{Title: "Which port?", Fields: []events.Field{{Name: "port"}}})
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	rows := `[...document.querySelectorAll("#stream .group, #stream .entry")].map((r) => r.matches(".group") ? "(" + r.firstElementChild.innerText + ")" : r.querySelector(".what").innerText.trim() + (r.matches("[data-decided]") ? " " + (r.querySelector(".state")?.innerText ?? "") : "")).join(", ")`
	open := func(what string) {
		b.until(`document.querySelector("#alone > .message[data-waits][data-keys]")?.innerText.includes("` + what + `")`)
	}
	open("make")
	b.run(`window.seen = []; new MutationObserver(() => { const now = ` + rows + `; if (seen.at(-1) !== now) seen.push(now); }).observe(document.getElementById("stream"), { childList: true, subtree: true, attributes: true })`)
	b.press("a")
	open("git fetch")
	b.until(rows + ` === "(Agents are stopped on these), git fetch, (Can wait), Which port?"`)
	b.press("d")
	b.until(`document.activeElement.matches(".why textarea")`)
	b.press("no\r")
	open("Which port?")
	b.until(rows + ` === "(Can wait), Which port?"`)
	b.fill("#alone .field input", "80")
	b.press(kb.Enter)
	b.until(rows + ` === "" && !document.getElementById("empty").hidden`)
	for _, want := range []string{
		"(Agents are stopped on these), make ✓ Allowed once, git fetch, (Can wait), Which port?", "(Agents are stopped on these), git fetch ✕ Denied, (Can wait), Which port?", "(Can wait), Which port? ✓ Answered",
	} {
		if b.text(fmt.Sprintf("seen.includes(%q)", want)) != "true" {
			t.Errorf("the list never was %q, but\n%s", want, b.text(`seen.join("\n")`))
		}
	}
	b.checkNoFaults()
}

// TestCountsSayThatThereAreMore asks more than a page looks at: the counts have a plus, and nothing counts the others as questions to somebody else.
func TestCountsSayThatThereAreMore(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 501 {
		h.ask(parley.Form{Title: fmt.Sprint("Question ", i), Fields: []events.Field{{Name: "a"}}})
	}
	for path, all := range map[string][]string{
		"/questions": {"<title>(500+) ", `id="count">500+<`, `All <span class="number">500+<`, "1 of 500+"},
		"/agents":    {"<strong>500+</strong> waiting for an answer", "<strong>500+</strong> questions open", "Answer 500+<"},
	} {
		_, _, body := h.get(path, "text/html")
		body = html.UnescapeString(body)
		for _, want := range all {
			if !strings.Contains(body, want) {
				t.Errorf("%s has no %q", path, want)
			}
		}
		if strings.Contains(body, "for others") {
			t.Errorf("%s says that questions are for others", path)
		}
	}
	b := h.openBrowser()
	b.open("/history")
	b.live()
	b.reads("#count", "500+")
	b.until(`document.title.startsWith("(500+) ")`)
	b.checkNoFaults()
}

// outcomeOf returns the outcome of an approval, as its asker sees it, in text.
func (h *pageServer) outcomeOf(form capabilities.ID) string {
	h.t.Helper()
	_, o, err := h.fae.AwaitApproval(h.t.Context(), capabilities.FormID(form))
	if err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprintf("%+v", o)
}

// TestReasonNeverGoesWithAllow begins a denial, goes back, and allows; then it allows with the reason still there.
func TestReasonNeverGoesWithAllow(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const reason = "no, that is dangerous"
	b := h.openBrowser()
	for i, back := range []bool{true, false} {
		p := h.approve("shell", fmt.Sprintf(`{"command":"make %d"}`, i))
		b.open("/forms/" + p.Form.String())
		b.click(asking(p) + " .why summary")
		b.fill(asking(p)+" .why textarea", reason)
		if !back { // what is allowed is not in view while a denial is begun
			b.run(fmt.Sprintf(`document.querySelector(%q).click()`, asking(p)+" button[value=once]"))
			if h.waitingCalls() != 1 {
				t.Error("it is allowed where a denial was begun")
			}
		}
		b.click(asking(p) + " .why summary")
		b.until(`document.querySelector(".why textarea").value === ""`)
		b.click(asking(p) + " button[value=once]")
		b.reads(asking(p)+" .state", "✓ Allowed once")
		if o := h.outcomeOf(p.Form); strings.Contains(o, "dangerous") {
			t.Errorf("the reason goes with what is allowed: %s", o)
		}
	}
	plain := h.approve("shell", `{"command":"make plain"}`)
	if status, _, body := h.postForm("/forms/"+plain.Form.String(), url.Values{"f0": {"once"}, "f1": {reason}}); status != http.StatusSeeOther {
		t.Fatalf("%d %s", status, body)
	}
	if o := h.outcomeOf(plain.Form); strings.Contains(o, "dangerous") {
		t.Errorf("the reason of a plain form goes with what is allowed: %s", o)
	}
	b.checkNoFaults()
}

// TestKeysDecideOnLandingView opens all mail, where signing in leads, with an approval beside the list.
func TestKeysDecideOnLandingView(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approve("shell", `{"command":"make"}`)
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/mail")
	b.live()
	b.until(`document.activeElement === document.body && document.querySelector("#alone > .message[data-keys]")`)
	b.press("a")
	b.reads("#alone .state", "✓ Allowed once")
	if !h.permitted(p) {
		t.Error("it is denied")
	}
	other := h.approve("shell", `{"command":"make other"}`)
	b.open("/mail")
	b.live()
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.run(`document.querySelectorAll(".entry > a")[1].focus()`) // of another message
	b.press("a")
	b.run(`document.querySelector("#search").focus()`)
	b.press("a")
	b.until(`document.querySelector("#search").value === "a"`)
	b.do(chromedp.EmulateViewport(390, 800)) // the list alone is shown
	b.run(`document.activeElement.blur()`)
	b.press("a")
	if n := h.waitingCalls(); n != 1 {
		t.Errorf("a key allowed what it was not for: %v", other.Form)
	}
	b.checkNoFaults()
}

// lie is an expression for what covers something, or is faint: each part of the rail and each button of the bar that is in
// view has to be what a click at its middle hits.
const lie = `(() => {
	const wrong = [];
	for (let e = document.querySelector("main"); e; e = e.parentElement) if (getComputedStyle(e).opacity !== "1") wrong.push(e.tagName + " is faint");
	const box = document.querySelector(".of-agents")?.getBoundingClientRect();
	const pane = document.querySelector("#item")?.getBoundingClientRect();
	for (const e of document.querySelectorAll(".brand, #search, .views a, .of-agents a, .foot > :not(:empty), #alone .choices button, .toast")) {
		if (!e.checkVisibility()) continue;
		const r = e.getBoundingClientRect(), [x, y] = [r.x + r.width / 2, r.y + r.height / 2];
		if (e.closest(".of-agents") && (y < box.top || y > box.bottom)) continue; // scrolled away
		if (e.closest("#item") && (y < pane.top || y > pane.bottom)) continue;
		const hit = document.elementFromPoint(x, y);
		if (!hit || !e.contains(hit) && !hit.contains(e)) wrong.push((e.id || e.className || e.tagName) + " " + e.innerText.slice(0, 20) + " is under " + (hit?.id || hit?.className || hit?.tagName));
	}
	return wrong.join("; ");
})()`

// TestPageStaysWholeAfterEachAct looks at the page after a decision, a denial, an error and a lost connection, with 30 agents.
func TestPageStaysWholeAfterEachAct(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{390, 1280} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			h := openPageServer(t)
			for i := range 30 {
				if _, err := h.node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: fmt.Sprintf("agent-%d", i)}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 6 {
				h.approve("shell", fmt.Sprintf(`{"command":"make step-%d"}`, i))
			}
			b := h.openBrowser()
			b.do(chromedp.EmulateViewport(width, 800))
			b.open("/questions")
			b.live()
			opened := `(() => { // a narrow window shows the list or a message
				const button = document.querySelector("#alone button[value=once]");
				if (button && button.getBoundingClientRect().width > 0) return true;
				const now = performance.now();
				if (now - (window.openedAt ?? -3000) < 3000) return false; // another click gives up what the one before opens
				window.openedAt = now;
				document.querySelector(".entry[data-waits] a")?.click();
				return false;
			})()`
			look := func(act string) {
				t.Helper()
				// As it is painted: what follows a size is placed by an observer of sizes, of which this one is the last.
				b.run(`window.painted = undefined; requestAnimationFrame(() => {
					const last = new ResizeObserver(() => { last.disconnect(); window.painted = ` + lie + `; });
					last.observe(document.body);
				})`)
				b.until(`window.painted !== undefined`)
				b.shotIfWanted(fmt.Sprintf("after-%s-%d", strings.ReplaceAll(act, " ", "-"), width))
				if wrong := b.text(`window.painted`); wrong != "" {
					t.Errorf("after %s: %s", act, wrong)
				}
				if got := b.text(`document.documentElement.scrollWidth > innerWidth`); got != "false" {
					t.Errorf("after %s the page is wider than its window", act)
				}
			}
			for i, act := range []string{"a decision", "a denial"} {
				b.until(opened)
				b.until(`document.querySelector("#alone > .message[data-keys]")`)
				b.click("#alone button[value=" + []string{"once", "deny"}[i] + "]")
				b.until(fmt.Sprintf(`document.querySelectorAll(".entry[data-waits]").length === %d && document.querySelector("#alone > .message[data-waits][data-keys]")`, 5-i))
				b.reads(".toast", []string{"Allowed once", "Denied"}[i])
				look(act)
			}
			b.run(`const ask = fetch; window.fetch = async (to, ...more) => (/rpc/.test(to) ? new Response('{"error":{"code":"QUOTA","message":"there is no room"}}', { status: 429 }) : ask(to, ...more));`)
			b.until(opened)
			b.click("#alone button[value=once]")
			b.reads("#alone .failure", "there is no room")
			look("an error")
			if err := h.server.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.until(`document.getElementById("connection").textContent`)
			look("a lost connection")
		})
	}
}

// TestNextCallOpensOnce denies a call where the next one is slow to come: what tells of the end of the call and what follows a
// press both want to open the next one. A second drawing would wipe out what the person did to the first.
func TestNextCallOpensOnce(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for i := range 4 {
		h.approve("shell", fmt.Sprintf(`{"command":"make step-%d"}`, i))
	}
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/questions")
	b.live()
	b.until(`document.querySelectorAll(".entry[data-waits]").length === 4`)
	b.run(`document.querySelectorAll(".entry[data-waits] a")[1].click()`) // one in the middle: the next is not the first
	b.until(`document.querySelectorAll(".entry[data-waits] a")[1].matches("[aria-current]") && document.querySelector("#alone > .message[data-keys]")`)
	b.run(`window.opened = [], window.waiting = []; 
		const ask = fetch, decided = encodeURIComponent(document.querySelector("#alone > .message").dataset.id);
		window.fetch = async (to, ...more) => {
			if (/pane=item/.test(to) && !to.includes(decided)) {
				opened.push(String(to));
				await new Promise((go) => { waiting.push(go); });
			}
			return ask(to, ...more);
		};`)
	b.click("#alone button[value=deny]")
	b.until(`waiting.length && document.querySelectorAll(".entry[data-waits]").length === 3 && document.querySelector("#alone > .message:not([data-waits])") && document.querySelector(".toast")`)
	b.run(`for (const go of waiting.reverse()) go()`)
	b.until(`document.querySelector("#alone > .message[data-waits][data-keys]")`)
	if got := b.text(`opened.length`); got != "1" {
		t.Errorf("opened %s times: %s", got, b.text(`opened`))
	}
	b.checkNoFaults()
}

// TestRefusalsAreReadable opens what there is not.
func TestRefusalsAreReadable(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	for _, width := range []int64{320, 390, 1280} {
		b.do(chromedp.EmulateViewport(width, 800))
		b.do(chromedp.Navigate(h.url + "/forms/4711"))
		b.reads("main", string(parley.NoSuchMessage))
		b.shotIfWanted(fmt.Sprintf("refusal-%d", width))
		if got := b.text(`document.querySelector("main").clientWidth >= Math.min(400, innerWidth - 40) && document.querySelector("h1").clientHeight < 120 && document.documentElement.scrollWidth <= innerWidth`); got != "true" {
			t.Errorf("at %d it is %s wide", width, b.text(`document.querySelector("main").clientWidth`))
		}
	}
}

// TestChosenRuleSaysItsPast checks that each rule that is offered says what was decided of the calls that it covers, and that the buttons
// which make one are of the rule that is chosen.
func TestChosenRuleSaysItsPast(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.approveIn("/srv/shop", "shell", `{"command":"git push origin main"}`), "once")
	h.decide(h.approveIn("/srv/shop", "shell", `{"command":"git push origin v1"}`), "deny")
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	next := h.approveIn("/srv/shop", "shell", `{"command":"git push origin main"}`)
	b.reads(asking(next)+" .rules", "1 past call: 1 allowed, 0 denied")
	b.reads(asking(next)+" .rules", "2 past calls: 1 allowed, 1 denied")
	b.reads(asking(next)+" button[value=always]", "exactly this call, in /srv/shop")
	b.click(fmt.Sprintf("%s .rules input[value=%q]", asking(next), h.asked(next).Permission.Offers[1].ID))
	for _, decision := range []string{"always", "never"} {
		b.reads(asking(next)+" button[value="+decision+"]", "git push to origin")
	}
	b.checkNoFaults()
}
