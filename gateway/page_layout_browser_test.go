package gateway

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors"
	"parley/events"
	"parley/gateway/web"
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
