package gateway

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestTimelineTellsWhoDecided reads the activity of an agent: what it asked, who or what decided it and why, and what was written. Parts of
// it are shown alone.
func TestTimelineTellsWhoDecided(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.decide(h.shell("make build"), "always")
	h.shell("make build")
	h.decideBecause(h.shell("npm publish").Form, "deny", "the changelog is missing")
	h.approveIn("/srv/shop", "Bash", `{"command":"sudo rm -rf /var/lib"}`)
	h.shell("make test")
	if _, err := h.node.Host().Send(t.Context(), "fae", "Ship it"); err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/agents/fae")
	b.live()
	lines := `[...document.querySelectorAll("#activity > .moment")].map((m) => m.dataset.kind + " " + m.querySelector(".did").innerText.split("\n")[0])`
	for _, want := range []string{"call Always allowed make build by you", "ruled Allowed by rule make build exactly: make build, in /srv/shop", "call Denied npm publish by you"} { // within a millisecond in any order
		b.until(lines + ".includes(" + strconv.Quote(want) + ")")
	}
	b.reads("#activity", "“the changelog is missing”")
	b.until(lines + `.some((l) => l.startsWith("question Wants to run sudo rm -rf /var/lib"))`)
	b.until(`document.querySelectorAll("#activity [data-kind=question]").length === 2 && document.querySelectorAll("#activity .buttons button[value=once]").length === 1`) // high risk is decided on its own page
	b.reads("#activity", "You wrote")
	b.reads(".about", "sudo rm -rf /var/lib")
	b.reads(".about", "used 1 time")
	if wrong := b.text(overlaps); wrong != "" {
		t.Error(wrong)
	}
	for view, want := range map[string]string{"decisions": "call,call,ruled", "mail": "message", "calls": "call,call,question,question,ruled", "output": ""} {
		b.open("/agents/fae?show=" + view)
		b.live()
		b.until(`[...document.querySelectorAll("#activity > .moment")].map((m) => m.dataset.kind).sort().join() === "` + want + `"`)
		b.until(`document.querySelector("#agent .filters [aria-current]").href.endsWith("show=` + view + `")`)
	}
	b.checkNoFaults()
	if status, _, _ := h.get("/agents/fae?show=odd", "text/html"); status != 400 {
		t.Errorf("an unknown part: %d", status)
	}
}

// TestReviewerIsSetOnThePage sets who reviews an agent's calls and within which bound, by the form beside its activity, and ends that. What was
// typed stays where it is refused.
func TestReviewerIsSetOnThePage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.guest("bob")
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1440, 900))
	b.open("/agents/fae")
	b.live()
	b.reads(".policy", "Ask me")
	b.click(".policy summary")
	b.until(`!document.querySelector(".policy .review").checkVisibility()`)
	b.choose(".policy [name=policy]", "review")
	b.until(`document.querySelector(".policy .review").checkVisibility()`)
	b.fill(".policy [name=review-by]", "nobody-here")
	b.fill(".policy [name=review-sample]", "10")
	b.fill(".policy [name=review-commands]", "make test")
	b.click(".policy [name=set-policy]")
	b.reads(".toast .failure", "in which folder")
	b.until(`document.querySelector(".policy details").open && document.querySelector(".policy [name=review-commands]").value === "make test"`)
	b.fill(".policy [name=review-folder]", "/srv/shop")
	b.choose(".policy [name=policy]", "review")
	b.set(".policy [name=review-by]", "bob")
	b.click(".policy [name=set-policy]")
	b.until(`document.readyState === "complete" && (document.querySelector(".policy .who") || document.querySelector("#agent > .failure")?.textContent.includes("folder") === false)`) // while the page comes there is neither
	if why := b.text(`document.querySelector("#agent > .failure")?.textContent ?? ""`); why != "" {
		t.Fatalf("%s: %s", why, b.text(`JSON.stringify([...document.querySelectorAll(".policy :is(input, select, textarea)")].map((e) => e.name + "=" + e.value))`))
	}
	b.reads(".policy", "bob reviews first. It may deny with a reason, and allow any call without high risk that one of these covers: make test")
	b.reads(".policy", "Of what it allows, 10 of 100 come to you all the same.")
	set, err := h.fae.Rules().Reviewer(t.Context())
	if err != nil || set == nil || set.Sample != 10 || len(set.Rules) != 1 || set.Cautious {
		t.Fatalf("%+v %v", set, err)
	}
	b.open("/agents/fae?tab=rules")
	b.live()
	b.reads(".policy", "bob reviews first")
	b.click(".policy summary")
	b.choose(".policy [name=policy]", "on-miss")
	b.click(".policy [name=set-policy]")
	b.until(`document.querySelector(".policy > p")?.textContent === "Ask me"`)
	if set, err := h.fae.Rules().Reviewer(t.Context()); err != nil || set != nil {
		t.Errorf("%+v %v", set, err)
	}
	b.checkNoFaults()
	for _, wrong := range []url.Values{
		{"policy": {"review"}}, {"policy": {"review"}, "review-by": {"bob"}, "review-sample": {"x"}}, {"policy": {"review"}, "review-by": {"bob"}, "review-sample": {"101"}},
		{"policy": {"review"}, "review-by": {"bob"}, "review-wait": {"0"}}, {"policy": {"review"}, "review-by": {"bob"}, "review-folder": {"/srv"}}, {"policy": {"review"}, "review-by": {"HOST"}}, {"policy": {"odd"}},
	} {
		wrong.Set("set-policy", "1")
		if status, _, body := h.postForm("/agents/fae", wrong); status != 400 || !strings.Contains(body, `role="alert"`) {
			t.Errorf("%v: %d", wrong, status)
		}
	}
}

// TestStopHoldsTheQueue stops an agent by a plain form. What is written to it then stays queued until it is started.
func TestStopHoldsTheQueue(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.program("w", "read x < gate1; echo done")
	at := "/agents/w"
	if status, _, body := h.postForm(at, url.Values{"stop": {"1"}}); status != 303 {
		t.Fatalf("%d %s", status, body)
	}
	if _, err := h.node.Host().Send(t.Context(), "w", "go on"); err != nil {
		t.Fatal(err)
	}
	_, _, body := h.get(at, "text/html")
	if !strings.Contains(body, `data-standing="stop"`) || !strings.Contains(body, `name="start"`) || !strings.Contains(body, "queued") {
		t.Errorf("it is not stopped, or its mail does not wait: %s", body)
	}
	if status, _, _ := h.postForm(at, url.Values{"start": {"1"}}); status != 303 {
		t.Error(status)
	}
	if s, err := p.Status(t.Context()); err != nil || s.Stopped {
		t.Errorf("%+v %v", s, err)
	}
}
