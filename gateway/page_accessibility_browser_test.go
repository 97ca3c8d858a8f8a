package gateway

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors"
)

// axePath returns the path of axe-core. It is required where a browser is.
func axePath(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PARLEY_AXE")
	if path == "" {
		if os.Getenv("CI") == "true" && os.Getenv("PARLEY_NO_BROWSER") == "" {
			t.Fatal("PARLEY_AXE names no axe.min.js, and the page is not to go unchecked")
		}
		t.Skip("the page is NOT checked for accessibility: PARLEY_AXE names no axe.min.js")
	}
	return path
}

func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openPageServer(t)
	h.fillScene()
	for range 5 { // from which a rule follows
		h.decide(h.approveIn("/srv/shop", "shell", `{"command":"git fetch origin"}`), "once")
	}
	if _, err := actors.TopicsOf(h.node.Host()).Make(t.Context(), "news", ""); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"The build is red", "It is the **rounding**"} {
		if _, err := actors.TopicsOf(h.fae).Post(t.Context(), "news", parley.Post{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	b := h.openBrowser()
	for scheme, paths := range map[string][]string{"light": {"/mail", "/questions", "/agents", "/devices", "/passkeys", "/agents/fae?tab=rules", "/agents/fae?tab=access", "/agents/fae?tab=events", "/agents/SELF", "/forms/0", "/forms/77", "/history", "/topics", "/new", "/access", "/settings", "/forms/8?in=questions"}, "dark": {"/topics/news", "/history?decision=allowed&days=7", "/agents/fae", "/forms/1", "/forms/8", "/done"}} {
		b.prefer(scheme)
		for _, path := range paths {
			b.do(chromedp.Navigate(b.url + path))
			b.until(`document.readyState === 'complete'`)
			if summary := map[string]string{"/agents/fae?tab=access": "#holds summary", "/agents/fae?tab=rules": "#proposed summary", "/agents/fae?tab=events": "#log summary"}[path]; summary != "" {
				b.until(`document.documentElement.dataset.live`)
				b.click(summary)
			}
			if path == "/forms/8?in=questions" {
				b.click(".ask:has(.select) button.primary") // shows the errors
				b.reads(".wrong", "Required")
			}
			b.shotIfWanted("page" + strings.NewReplacer("/", "-", "?", "-", "=", "-", "&", "-").Replace(path) + "-" + scheme)
			if found := b.violations(string(source)); found != "" {
				t.Errorf("%s in %s:\n%s", path, scheme, found)
			}
		}
	}
}

// TestSecondStepAndLostConnectionAreReadable looks at the button that was pressed once for a call of high risk, and at the words for a
// connection that is lost.
func TestSecondStepAndLostConnectionAreReadable(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openPageServer(t)
	h.approve("shell", `{"command":"git push --force origin main"}`)
	b := h.openBrowser()
	for _, scheme := range []string{"light", "dark"} {
		b.prefer(scheme)
		b.open("/questions")
		b.live()
		b.until(`document.activeElement.matches("#alone > .message[data-keys]")`)
		b.press("a")
		b.until(`document.querySelector("#alone button[value=once]").classList.contains("stop")`)
		if found := b.violations(string(source)); found != "" {
			t.Errorf("in %s:\n%s", scheme, found)
		}
		if whole := b.text(`(() => {
			const words = document.getElementById("connection");
			words.textContent = "Reconnecting…";
			const box = words.getBoundingClientRect();
			const next = [...document.querySelectorAll(".foot .icon")].find((e) => e.checkVisibility()).getBoundingClientRect().left;
			return box.height < 24 && box.right <= next ? "" : [box.left, box.right, box.height, next].join(" ");
		})()`); whole != "" {
			t.Errorf("in %s the words for a lost connection break, or lie over a button: %s", scheme, whole)
		}
	}
}

// violations returns the violations of axe's rules, one a line. Of a page with an open dialog, the dialog is checked alone.
func (b *tab) violations(axe string) string {
	b.t.Helper()
	if b.text(`Boolean(window.axe)`) == "false" {
		b.run(axe)
	}
	b.run(`window.found = null; axe.run(document.querySelector("dialog[open]") ?? document, { resultTypes: ["violations"] }).then((r) => { window.passed = r.passes.length; window.found = r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target + " " + n.failureSummary)) })`)
	b.until(`window.found`)
	if b.text(`passed > 10`) != "true" {
		b.t.Errorf("only %s rules were looked at", b.text(`passed`))
	}
	return b.text(`found.join("\n")`)
}

// prefer sets the preferred colour scheme, and reduced motion.
func (b *tab) prefer(scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	if err != nil {
		b.t.Fatal(fmt.Errorf("prefer %s: %w", scheme, err))
	}
}
