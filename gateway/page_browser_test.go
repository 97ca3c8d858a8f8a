package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/web"
	"parley/internal/eventually"
)

// pageServer is a node that serves its page, and the credentials of the browser that opens it.
type pageServer struct {
	t      *testing.T
	server *Server
	node   *actors.Node
	fae    *actors.Agent // a guest
	url    string        // of the pages; with the session once a browser has signed in
	token  string        // of the session
	in     map[string]actors.Session

	notifies bool // its pages are opened in a whole browser, which shows notifications
}

// openPageServer opens a node with a guest, and serves its page.
func openPageServer(t *testing.T) *pageServer {
	t.Helper()
	node, s := openServer(t)
	h := &pageServer{t: t, server: s, node: node, url: "http://" + s.Address(), token: makeToken(t, node.Host(), "read", "ask", "answer", "admin")}
	h.fae = h.guest("fae")
	return h
}

func (h *pageServer) guest(name string) *actors.Agent {
	h.t.Helper()
	a, err := h.node.Host().Make(h.t.Context(), actors.NewAgent{Kind: events.Guest, Name: name})
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// ask sends a form from the guest to the host.
func (h *pageServer) ask(what parley.Form) view.Asked {
	h.t.Helper()
	if what.To == "" {
		what.To = "HOST"
	}
	if what.Description == "" {
		what.Description = "Configure the project"
	}
	asked, err := h.fae.Ask(h.t.Context(), what)
	if err != nil {
		h.t.Fatal(err)
	}
	return asked
}

// outcome waits for the outcome of a form and returns it.
func (h *pageServer) outcome(asked view.Asked) view.Outcome {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), eventually.Patience)
	defer cancel()
	o, err := h.fae.Await(ctx, capabilities.FormID(asked.Promise))
	if err != nil {
		h.t.Fatal(err)
	}
	return o
}

// browserPath returns the path of the first installed program. Without one it fails where a browser is required, and skips
// the test elsewhere.
func browserPath(t *testing.T, programs ...string) string {
	t.Helper()
	if os.Getenv("PARLEY_NO_BROWSER") == "" {
		for _, name := range programs {
			if path, err := exec.LookPath(name); err == nil {
				return path
			}
		}
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no Chromium, and the page is not to go untested: install one, or set PARLEY_NO_BROWSER=1")
		}
	}
	t.Skip("the page is NOT tested in a browser: there is no Chromium, or PARLEY_NO_BROWSER is set")
	return ""
}

// tab is a tab of a browser, signed in.
type tab struct {
	*pageServer
	ctx    context.Context
	mu     sync.Mutex
	faults []string // reported by the browser
}

// openBrowser opens a tab in a browser that has no cookies, storage, workers or permissions of another test. With options
// it is a browser of its own.
func (h *pageServer) openBrowser(options ...chromedp.ExecAllocatorOption) *tab {
	h.t.Helper()
	if len(options) == 0 {
		return h.tab(h.browser(), chromedp.WithNewBrowserContext())
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), browserOptions(browserPath(h.t, shells...), options...)...)
	h.t.Cleanup(stop)
	return h.tab(alloc)
}

// browser returns the context of the shared browser that fits the test.
func (h *pageServer) browser() context.Context {
	h.t.Helper()
	if h.notifies {
		return wholeBrowser.started(h.t, wholes)
	}
	return packageBrowser.started(h.t, shells)
}

// tab opens a tab in the browser of a context. It is closed when the test ends.
func (h *pageServer) tab(in context.Context, options ...chromedp.ContextOption) *tab {
	h.t.Helper()
	ctx, stop := chromedp.NewContext(in, options...)
	h.t.Cleanup(func() { _ = chromedp.Cancel(ctx); stop() })
	b := &tab{pageServer: h, ctx: ctx}
	if err := chromedp.Listen(ctx, b.recordFault); err != nil { // it opens the tab
		h.t.Fatal(err)
	}
	h.signIn(b)
	return b
}

// signIn gives a tab a session with the rights of the token. The pages are at the session's address from then on.
func (h *pageServer) signIn(b *tab) {
	h.t.Helper()
	if h.token == "" {
		return
	}
	in, before := h.in[h.token]
	if !before {
		agent, _, err := h.node.Credentials().Authenticate(h.t.Context(), h.token)
		if err == nil {
			in, err = agent.Tokens().MakeSession(h.t.Context(), "a test")
		}
		if err != nil {
			h.t.Fatal(err)
		}
		if h.in == nil {
			h.in = map[string]actors.Session{}
		}
		h.in[h.token] = in
	}
	origin, _, _ := strings.Cut(h.url, web.SessionsPath)
	h.url = origin + web.SessionsPath + in.Key
	_, err := chromedp.Call(b.ctx, network.SetCookie, network.SetCookieParams{
		Name: SessionCookie, Value: in.Text, URL: h.url, Path: web.SessionsPath + in.Key, HTTPOnly: new(true), SameSite: network.CookieSameSiteStrict,
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// path returns the path of an address within the browser's session.
func (h *pageServer) path(address string) string {
	if _, key, in := strings.Cut(h.url, web.SessionsPath); in {
		return web.SessionsPath + key + address
	}
	return address
}

// recordFault records the events that no page may cause: exceptions, violations of its policy and dialogs.
func (b *tab) recordFault(ev any) {
	note := func(what string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults = append(b.faults, what)
	}
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		thrown := ""
		if e.ExceptionDetails.Exception != nil {
			thrown = fmt.Sprint(e.ExceptionDetails.Exception.Description)
		}
		note(e.ExceptionDetails.Text + " " + thrown + fmt.Sprintf(" (%s:%d)", e.ExceptionDetails.URL, e.ExceptionDetails.LineNumber))
	case *cdppage.EventJavascriptDialogOpening:
		note("dialog: " + e.Message)
	}
}

// checkNoFaults fails if the browser reported a fault.
func (b *tab) checkNoFaults() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.faults) > 0 {
		b.t.Errorf("the browser complained: %q", b.faults)
	}
}

// do runs steps in the tab, with a time limit.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, eventually.Patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
}

// open opens a page and waits until it is live.
func (b *tab) open(path string) {
	b.t.Helper()
	b.run(`window.isLeft = true`)
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	got, err := chromedp.Call(ctx, cdppage.Navigate, cdppage.NavigateParams{URL: b.url + path})
	if err != nil || got.ErrorText != "" {
		b.t.Fatalf("open %s: %v %s", path, err, got.ErrorText)
	}
	b.until(`!window.isLeft && document.documentElement.dataset.live`)
}

const (
	patience = eventually.Patience // for what a page should do
	attempt  = 5 * time.Second     // for the browser's response, which a page that has gone may never send
)

// becomes waits for a while until an expression holds in the page.
func (b *tab) becomes(expression string) error {
	ctx, cancel := context.WithTimeout(b.ctx, attempt)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Poll[bool]("Boolean("+expression+")", chromedp.WithPollingTimeout(attempt/2)))
	return err
}

// until waits until an expression holds in the page, or in the page that the browser is about to open.
func (b *tab) until(expression string) {
	b.t.Helper()
	var err error
	for end := time.Now().Add(patience); ; {
		if err = b.becomes(expression); err == nil || !time.Now().Before(end) || b.ctx.Err() != nil {
			break
		}
		if !errors.Is(err, chromedp.ErrPollingTimeout) && !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "context with specified id") && !strings.Contains(err.Error(), "navigated or closed") {
			break
		}
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(b.ctx, attempt)
		defer cancel()
		text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`)) // for the report alone
		b.t.Fatalf("never came about: %s (%v)\nthe page:\n%s", expression, err, text)
	}
}

// reads waits until an element's text contains words.
func (b *tab) reads(selector, words string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.innerText.includes(%q))`, selector, words))
}

// text returns the value of an expression as text.
func (b *tab) text(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, eventually.Patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// run runs a script and ignores its value.
func (b *tab) run(script string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, eventually.Patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[int](script+"\n;0")); err != nil {
		b.t.Fatal(err)
	}
}

// click clicks at an element once it rests, as a person does. It clicks at a place: the page may draw the element anew.
func (b *tab) click(selector string) {
	b.t.Helper()
	at := b.place(selector)
	b.do(chromedp.MouseClickXY(at[0], at[1]))
}

// tap touches an element once it rests.
func (b *tab) tap(selector string) {
	b.t.Helper()
	at := b.place(selector)
	for _, step := range []input.DispatchTouchEventParams{
		{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: at[0], Y: at[1]}}}, {Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}},
	} {
		if _, err := chromedp.Call(b.ctx, input.DispatchTouchEvent, step); err != nil {
			b.t.Fatal(err)
		}
	}
}

// place waits until an element rests, and returns its middle.
func (b *tab) place(selector string) []float64 {
	b.t.Helper()
	b.until(fmt.Sprintf(`((e) => {
		if (!e || e.closest('.message[data-held]')) return false; // it takes no decision yet
		e.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
		const { x, y, width, height } = e.getBoundingClientRect(), at = [x, y, width, height].join(' ');
		const rests = e.wasAt === at && width > 0;
		e.wasAt = at;
		window.clickAt = [x + width / 2, y + height / 2];
		return rests;
	})(document.querySelector(%q))`, selector))
	ctx, cancel := context.WithTimeout(b.ctx, eventually.Patience)
	defer cancel()
	at, err := chromedp.Run(ctx, chromedp.Evaluate[[]float64](`window.clickAt`))
	if err != nil {
		b.t.Fatal(err)
	}
	return at
}

func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`((e) => { e?.focus(); e?.select(); return e })(document.querySelector(%q))`, selector))
	b.press(text)
}

// set sets a value without keys, which would depend on the language.
func (b *tab) set(selector, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(selector), value))
}

// press presses keys at the focused element. The character of a key comes with the press, as from a keyboard: a page that
// handles the press gets none.
func (b *tab) press(keys string, modifiers ...chromedp.Modifier) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, eventually.Patience)
	defer cancel()
	for _, key := range keys {
		for _, event := range keyEvents(key, modifiers) {
			if _, err := chromedp.Call(ctx, input.DispatchKeyEvent, *event); err != nil {
				b.t.Fatalf("the key %q: %v", key, err)
			}
		}
	}
}

// repeat repeats a key that is held down.
func (b *tab) repeat(key rune, times int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, eventually.Patience)
	defer cancel()
	press := *keyEvents(key, nil)[0]
	press.AutoRepeat = new(true)
	for range times {
		if _, err := chromedp.Call(ctx, input.DispatchKeyEvent, press); err != nil {
			b.t.Fatalf("the key %q: %v", key, err)
		}
	}
}

// keyEvents returns the events of a key. Its character is none while a modifier other than Shift is pressed.
func keyEvents(key rune, modifiers []chromedp.Modifier) []*input.DispatchKeyEventParams {
	all := kb.Encode(key)
	events := slices.DeleteFunc(slices.Clone(all), func(e *input.DispatchKeyEventParams) bool { return e.Type == kb.KeyChar })
	for _, e := range all {
		chromedp.KeyModifiers(modifiers...)(e)
		if e.Type == kb.KeyChar && e.Modifiers&^int64(chromedp.ModifierShift) == 0 {
			events[0].Text, events[0].UnmodifiedText = e.Text, e.UnmodifiedText
		}
	}
	return events
}

// fieldAt returns the selector of a field's controls.
func fieldAt(i int) string { return fmt.Sprintf("[data-control=f%d]", i) }

const answerButton = "button.primary[name=do]"

// get fetches a path with the token.
func (h *pageServer) get(path, accept string) (int, http.Header, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	return h.send(r, h.token)
}

func (h *pageServer) send(r *http.Request, token string) (int, http.Header, string) {
	h.t.Helper()
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}
