package gateway

import (
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/bridge"
	"parley/gateway/call/calltest"
	"parley/internal/eventually"
	"parley/mailbox"
)

// link returns the address of a button that a receiver was told.
func link(t *testing.T, n *bridged, p *place, form, label string) string {
	t.Helper()
	eventually.Holds(t, "the form is told", func() bool { return len(p.Told(form)) > 0 })
	address := p.Told(form)[0].Buttons[label]
	if address == "" {
		t.Fatalf("there is no %q: %+v", label, p.Told(form))
	}
	return address
}

// do makes a request, and returns what it answers.
func do(t *testing.T, method, address string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// answers are the outcomes that the page of a link offers.
var answers = regexp.MustCompile(`<form method="post" action="([a-z]+)">`)

func offered(body string) (all []string) {
	for _, m := range answers.FindAllStringSubmatch(body, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestLinkShowsTheWholeCall follows the link of a notice. It shows what is decided before the button that decides.
func TestLinkShowsTheWholeCall(t *testing.T) {
	n, p := openWebhook(t)
	form := n.ApproveIn("/srv/shop", "Bash", `{"command":"git push --force && rm -rf ~","description":"<b>Tidy</b>"}`)
	for _, label := range []string{"Allow once", "Deny"} {
		status, body := do(t, http.MethodGet, link(t, n, p, form, label))
		for _, want := range []string{"fae", "Bash", "in /srv/shop", "git push --force", "&& rm -rf ~", "! ", "<b>Tidy</b>"} {
			if !strings.Contains(html.UnescapeString(tags.ReplaceAllString(body, " ")), want) {
				t.Errorf("%s: the page lacks %q:\n%s", label, want, body)
			}
		}
		if got := offered(body); status != http.StatusOK || !slices.Equal(got, []string{"once", "deny"}) || strings.Index(body, "rm -rf") > strings.Index(body, "<form") {
			t.Errorf("%s: %d, %q is offered:\n%s", label, status, got, body)
		}
	}
	address := link(t, n, p, form, "Deny")
	if status, body := do(t, http.MethodPost, address); status != http.StatusOK || !strings.Contains(body, "Answered: Deny") {
		t.Errorf("%d %s", status, body)
	}
	for _, a := range []string{address, address + "x", strings.Replace(address, "/deny", "x/deny", 1)} { // it has ended; no such answer; no such link
		if status, body := do(t, http.MethodGet, a); status < 400 || strings.Contains(body, "rm -rf") || len(offered(body)) > 0 {
			t.Errorf("%s: %d %s", a, status, body)
		}
	}
}

// TestLinkShowsHostileCalls follows links to calls that hide what they do.
func TestLinkShowsHostileCalls(t *testing.T) {
	n, p := openWebhook(t)
	for _, c := range calltest.Hostile() {
		form := n.ApproveIn("/srv/shop", c.Tool, c.Input)
		_, body := do(t, http.MethodGet, link(t, n, p, form, "Deny"))
		for _, want := range append(c.Shows, "in /srv/shop") {
			if !strings.Contains(html.UnescapeString(body), want) {
				t.Errorf("%s: the page lacks %q:\n%.3000s", c.Name, want, body)
			}
		}
		if forged := calltest.Forged(tags.ReplaceAllString(html.UnescapeString(body), ""), ""); forged != "" {
			t.Errorf("%s: %q is shown as if Parley said it:\n%.3000s", c.Name, forged, body)
		}
	}
}

// TestLinkAllowsNothingThatIsNotShown follows a link to a call that is too long for the page.
func TestLinkAllowsNothingThatIsNotShown(t *testing.T) {
	n, p := openWebhook(t)
	form := n.Approve(`{"command":"echo ` + strings.Repeat("a b ", 30_000) + `; rm -rf ~"}`)
	_, body := do(t, http.MethodGet, link(t, n, p, form, "Deny"))
	if got := offered(body); !slices.Equal(got, []string{"deny"}) || !strings.Contains(body, "not all of it") {
		t.Errorf("%q is offered:\n%.2000s", got, body)
	}
	made, err := n.server.backend.Call(t.Context(), n.server.backend.Local(), "grant_answer", api.Typed{Value: api.GrantAnswerRequest{FormRef: api.RefTo(form), Outcomes: []string{mailbox.Once}, Name: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(link(t, n, p, form, "Deny"), bridge.AnswerPath)
	_, body = do(t, http.MethodGet, base+bridge.AnswerPath+made.(view.AnswerRight).Secret+"/once")
	if got := offered(body); len(got) > 0 {
		t.Errorf("%q is offered", got)
	}
}

// TestLinkIsReadInABrowser opens the link on a narrow and on a wide screen. Nothing of a long line is beside the window.
func TestLinkIsReadInABrowser(t *testing.T) {
	n, p := openWebhook(t)
	form := n.ApproveIn("/srv/shop", "Bash", `{"command":"`+strings.Repeat("make all ", 60)+`&& rm -rf ~"}`)
	address := link(t, n, p, form, "Deny")
	h := &pageServer{t: t}
	b := h.openBrowser()
	for _, width := range []int64{390, 1280} {
		b.do(chromedp.EmulateViewport(width, 800), chromedp.Navigate(address), chromedp.WaitReady("button"))
		if wide := b.text(`document.documentElement.scrollWidth > innerWidth`); wide != "false" {
			t.Errorf("it is wider than its window of %d", width)
		}
		b.shotIfWanted("link-" + map[int64]string{390: "390", 1280: "1280"}[width])
	}
	b.do(chromedp.Click(`button[value=deny]`))
	b.until(`document.body.innerText.includes("Answered: Deny")`)
}
