package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/web"
	"parley/mailbox"
)

func TestPagesFitNarrowWindow(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.fillScene()
	long := strings.Repeat("without-a-space", 12)
	if _, err := h.node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: long, Title: long, Labels: map[string]string{"label": long}}); err != nil {
		t.Fatal(err)
	}
	option := []events.Option{{Value: long, Label: long, Description: long}, {Value: "b"}}
	h.ask(parley.Form{Title: long, Description: long + "\n\n```\n" + long + "\n```\n", Fields: []events.Field{
		{Name: "a", Label: long, Help: long, Placeholder: long}, {Name: "b", Type: events.Select, Options: option, Label: long},
		{Name: "c", Type: events.Buttons, Options: option, Label: long}, {Name: "d", Type: events.Multiselect, Options: option, Label: long},
	}})
	if _, err := h.fae.Send(t.Context(), "HOST", long); err != nil {
		t.Fatal(err)
	}
	h.approve(long, `{"command":"`+long+`"}`)
	h.give()
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(320, 700))
	for _, path := range []string{"/mail", "/questions", "/agents", "/agents/fae", "/agents/" + long, "/agents/SELF", "/devices", "/forms/0", "/forms/9"} {
		b.open(path)
		b.live()
		if wide := b.text(`[...document.querySelectorAll('body *')].filter((e) => !e.closest('details:not([open]) > :not(summary), .entry, .filters, .sr, .skip, pre, .input, table') && e.getBoundingClientRect().right > innerWidth + 1)
			.map((e) => e.tagName + '.' + e.className).slice(0, 5).join() + (document.documentElement.scrollWidth > innerWidth ? ' scrolls' : '')`); wide != "" {
			t.Errorf("%s is wider than its window: %s", path, wide)
		}
	}
	m, err := chromedp.Call(b.ctx, cdppage.GetAppManifest, cdppage.GetAppManifestParams{})
	if err != nil || !strings.HasSuffix(m.URL, web.ManifestPath) || !strings.Contains(m.Data, `"start_url":"../../questions"`) || len(m.Errors) > 0 {
		t.Errorf("the manifest is %+v, %v", m, err)
	}
	b.checkNoFaults()
}

func TestReducedMotionStopsAnimations(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	for motion, want := range map[string]string{"reduce": "false", "no-preference": "true"} {
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: motion}},
		})
		if err != nil {
			t.Fatal(err)
		}
		b.open("/mail")
		b.live()
		b.run(`window.moves = undefined; new MutationObserver(() => { window.moves = document.getAnimations().length > 0; }).observe(document.getElementById('toasts'), { childList: true })`)
		h.ask(parley.Form{Fields: []events.Field{{Name: "a"}, {Name: "b"}}})
		b.until(`window.moves !== undefined`)
		if got := b.text(`window.moves`); got != want {
			t.Errorf("%s: something moves: %s", motion, got)
		}
	}
	b.checkNoFaults()
}

// TestWhatCountsIsNotCut looks at a list with a deadline, in whose column nothing is cut, and whose day is that of the message; at the head of an
// agent with a long name, which is one line; and at a reason for a denial: who reads it, the whole ring of its focus, and the way back beside the button.
func TestWhatCountsIsNotCut(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.fae = h.guest("translator-for-the-very-long-name-of-a-team-in-the-north")
	h.ask(parley.Form{Description: "Which port?", Fields: []events.Field{{Name: "port"}}, Deadline: capabilities.At(time.Now().Add(49 * time.Hour))})
	due := capabilities.At(time.Now().Add(90 * time.Minute))
	if _, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Input: `{"command":"sudo make install"}`, Folder: "/srv/shop"}, Deadline: due}); err != nil {
		t.Fatal(err)
	}
	h.decide(h.shell("make"), "always")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(390, 800))
	b.open("/mail")
	b.live()
	b.reads("#stream .state", "Always: exactly")
	if got := b.text(`Math.min(...[...document.querySelectorAll("#stream .ends > :first-child")].map((e) => e.offsetWidth)) > 20`); got != "true" {
		t.Error("a state leaves nothing of the beginning of a name")
	}
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/mail")
	b.live()
	if got := b.text(`[...document.querySelectorAll("#stream .group")].map((g) => g.textContent).join()`); got != "Today" {
		t.Errorf("the days of the mail are %s", got)
	}
	b.run(`document.getElementById("main").focus({ focusVisible: true })`)
	if got := b.text(`document.activeElement.matches("main:focus-visible") && getComputedStyle(document.activeElement).outlineStyle`); got != "none" {
		t.Errorf("the edge of the page has the outline %s", got)
	}
	cut := `[...document.querySelectorAll("#stream .marks *")].filter((e) => e.checkVisibility() && !e.matches(".sr") && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflow !== "visible").map((e) => e.textContent).join()`
	for _, width := range []int64{1280, 390} {
		b.do(chromedp.EmulateViewport(width, 800))
		b.open("/questions")
		b.live()
		b.reads("#stream .due", "due in 1 h")
		if got := b.text(cut); got != "" {
			t.Errorf("at %d px these are cut: %s", width, got)
		}
	}
	b.open("/settings")
	b.live()
	b.until(`[...document.querySelectorAll(".set kbd")].every((k) => k.checkVisibility())`) // "Press ? on any page", in a narrow window too
	b.open("/questions")
	b.live()
	for _, width := range []int64{1280, 390} {
		b.do(chromedp.EmulateViewport(width, 800))
		b.click("#stream .entry a")
		b.until(`document.querySelector("#alone > .message[data-keys]")`)
		if got := b.text(`document.querySelector("#alone .head .who").offsetHeight < 30`); got != "true" {
			t.Errorf("at %d px the name takes several lines", width)
		}
		b.click("#alone .why summary")
		b.reads("#alone .why label", "reads it)")
		b.until(`document.activeElement.matches(".why textarea")`)
		if got := b.text(`(() => { const at = document.activeElement.getBoundingClientRect(), panel = document.activeElement.closest(".panel").getBoundingClientRect();
			const back = document.querySelector("#alone .why summary").getBoundingClientRect(), deny = document.querySelector("#alone [value=deny]").getBoundingClientRect();
			return [at.bottom + 4 <= panel.bottom, at.left - 4 >= panel.left, back.left >= deny.right, back.top < deny.bottom && back.bottom > deny.top].join() })()`); got != "true,true,true,true" {
			t.Errorf("at %d px the reason has %s", width, got)
		}
		b.shotIfWanted(fmt.Sprintf("reason-%d", width))
		b.click("#alone .why summary")
		b.open("/questions")
		b.live()
	}
	b.checkNoFaults()
}
