package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/internal/eventually"
	"parley/internal/freeport"
)

// tabs opens the same page in several tabs of one browser.
func (h *pageServer) tabs(many int, path string) []*tab {
	h.t.Helper()
	all := []*tab{h.openBrowser()}
	for len(all) < many {
		all = append(all, h.tab(all[0].ctx))
	}
	for _, b := range all {
		b.open(path)
		b.live()
	}
	return all
}

// streams waits until the node serves a number of streams.
func (h *pageServer) streams(want int64) {
	h.t.Helper()
	eventually.Holds(h.t, fmt.Sprintf("the node serves %d streams", want), func() bool { return h.server.now(api.KindStreams) == want })
}

// keep records each message that the page draws, to detect duplicates.
const keep = `window.come = []; new MutationObserver((all) => { for (const m of all) for (const n of m.addedNodes) if (n.matches?.('.entry')) window.come.push(n.querySelector('.what').textContent) })
	.observe(document.getElementById('stream'), { childList: true, subtree: true })`

func TestTabsShareOneStream(t *testing.T) {
	t.Parallel()
	browserPath(t, shells...)
	k := &restartingNode{t: t, folder: t.TempDir(), address: freeport.Address(t)}
	k.start()
	t.Cleanup(func() { k.stop() })
	h := &pageServer{t: t, server: k.server, node: k.node, url: "http://" + k.address, token: makeToken(t, k.node.Host(), "read", "ask", "answer", "admin")}
	h.fae = h.guest("fae")
	send := func(text string) {
		t.Helper()
		if _, err := h.fae.Send(t.Context(), "HOST", text); err != nil {
			t.Fatal(err)
		}
	}
	send("before")
	all := h.tabs(3, "/mail")
	h.streams(1)
	for _, b := range all {
		b.run(keep)
	}
	send("the first")
	for _, b := range all {
		b.until(`window.come.join() === "the first"`)
	}

	k.stop()
	all[2].reads("#connection", "Reconnecting")
	k.start()
	h.server, h.node = k.server, k.node
	var err error
	if h.fae, err = k.node.ActAs(t.Context(), "fae"); err != nil {
		t.Fatal(err)
	}
	send("the second")
	h.ask(parley.Form{Description: "the third", Fields: []events.Field{{Name: "a"}}})
	for i, b := range all {
		b.until(`window.come.length >= 3 && document.getElementById('connection').textContent === ''`)
		if got := b.text(`[...document.querySelectorAll('#stream .entry')].map((c) => c.dataset.number).reverse().join() + " " + window.come.slice(0, 2).join() + " " + window.come.length`); got != "0,1,2,3 the first,the second 3" {
			t.Errorf("tab %d shows %q", i, got)
		}
		b.until(`document.title.startsWith('(1) ')`)
		b.checkNoFaults()
	}
	h.streams(1)
	for _, b := range all[1:] {
		if err := chromedp.Cancel(b.ctx); err != nil {
			t.Error(err)
		}
	}
	send("the fourth")
	all[0].until(`window.come.at(-1) === "the fourth" && window.come.length === 4`)
	all[0].do(chromedp.Navigate("about:blank"))
	h.streams(0) // the last tab was closed
}

func TestTabsOfSeveralAgentsShareOneStream(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const many = 7 // more than a browser has connections
	guests := make([]*actors.Agent, many)
	all := []*tab{h.openBrowser()}
	for i := range many {
		name := fmt.Sprintf("guest %d: ü", i)
		guests[i] = h.guest(name)
		if i > 0 {
			all = append(all, h.tab(all[0].ctx))
		}
		all[i].open("/mail?as=" + name)
		all[i].live()
	}
	h.streams(1)
	for i, g := range guests {
		if _, err := g.Send(t.Context(), "@self", fmt.Sprintf("a word of %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range all {
		b.until(fmt.Sprintf(`[...document.querySelectorAll('#stream .what')].map((e) => e.innerText).join() === "a word of %d"`, i))
		b.checkNoFaults()
	}
	if err := h.node.Host().Names().Remove(t.Context(), "guest 3: ü"); err != nil {
		t.Fatal(err)
	}
	late := h.tab(all[0].ctx) // reopens the stream for all tabs
	late.open("/mail")
	all[3].until(`document.getElementById('connection').textContent !== ''`) // the host does not hold its agent any more
	if _, err := guests[4].Send(t.Context(), "@self", "and more"); err != nil {
		t.Fatal(err)
	}
	all[4].reads("#stream .what", "and more")
}

func TestLateTabMissesNothing(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	first := h.openBrowser()
	first.open("/mail")
	first.live()
	b := h.tab(first.ctx)
	b.do(chromedp.Navigate(b.url + "/assets/none.js")) // a page of the node without a stream
	for i := range 3 {
		if _, err := h.fae.Send(t.Context(), "HOST", fmt.Sprintf("word %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	first.until(`document.querySelectorAll('#stream .entry').length === 3`)
	first.run(keep)
	// Like a page that was drawn before the messages, it joins with its old cursor.
	module := h.path(h.server.site.Assets.URL("stream.js"))
	b.run(fmt.Sprintf(`document.body.innerHTML = '<p id=connection></p>'; window.received = []; import(%q).then((m) => m.follow({ reader: %q, as: '', cursor: '0' },
		{ messages: (what) => window.received.push(...what.messages.map((m) => m.number)) }))`, module, h.node.Host().ID()))
	b.until(`window.received.join() === '0,1,2'`)
	if _, err := h.fae.Send(t.Context(), "HOST", "word 3"); err != nil {
		t.Fatal(err)
	}
	b.until(`window.received.join() === '0,1,2,3'`)
	first.until(`window.come.join() === 'word 3'`)
	h.streams(1)
	first.checkNoFaults()
	b.checkNoFaults()
}

// closeWorker ends the shared worker of the tabs.
func (h *pageServer) closeWorker(b *tab) {
	h.t.Helper()
	list, err := chromedp.CallBrowser(b.ctx, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		h.t.Fatal(err)
	}
	closed := 0
	for _, i := range list.TargetInfos {
		if i.Type != "shared_worker" || i.BrowserContextID != chromedp.FromContext(b.ctx).BrowserContextID {
			continue
		}
		if _, err := chromedp.CallBrowser(b.ctx, target.CloseTarget, target.CloseTargetParams{TargetID: i.TargetID}); err != nil {
			h.t.Fatal(err)
		}
		closed++
	}
	if closed != 1 {
		h.t.Fatalf("%d workers were closed", closed)
	}
}

// TestWorkerIsLoadedOnceTheNodeIsBack ends the worker while the node is away, so that no other can be loaded. The page goes on by itself
// when the node is back.
func TestWorkerIsLoadedOnceTheNodeIsBack(t *testing.T) {
	t.Parallel()
	browserPath(t, shells...)
	k := &restartingNode{t: t, folder: t.TempDir(), address: freeport.Address(t)}
	k.start()
	t.Cleanup(func() { k.stop() })
	h := &pageServer{t: t, server: k.server, node: k.node, url: "http://" + k.address, token: makeToken(t, k.node.Host(), "read", "ask", "answer", "admin")}
	h.fae = h.guest("fae")
	b := h.tabs(1, "/mail")[0]
	b.run(`window.tried = 0; const ask = fetch; window.fetch = (to, ...more) => { if (/worker/.test(to)) window.tried++; return ask(to, ...more); }`)
	k.stop()
	b.reads("#connection", "Reconnecting…")
	if _, err := chromedp.Call(b.ctx, network.ClearBrowserCache, struct{}{}); err != nil {
		t.Fatal(err)
	}
	h.closeWorker(b)
	b.until(`window.tried > 1`)
	b.reads("#connection", "Reconnecting…")
	b.until(`document.documentElement.hasAttribute("data-offline")`)
	k.start()
	h.server, h.node = k.server, k.node
	b.until(`document.getElementById("connection").textContent === "" && !document.documentElement.hasAttribute("data-offline")`)
	var err error
	if h.fae, err = k.node.ActAs(t.Context(), "fae"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.fae.Send(t.Context(), "HOST", "a word"); err != nil {
		t.Fatal(err)
	}
	b.reads(".entry .what", "a word")
	b.checkNoFaults()
}

func TestDeadWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	all := h.tabs(2, "/mail")
	all[0].run(keep)
	all[1].run(keep)
	all[0].run(`setInterval(async () => { window.watches = (await navigator.locks.query()).pending.filter((l) => l.name.startsWith('parley.worker.')).length }, 20)`)
	all[0].until(`window.watches === 2`)
	h.closeWorker(all[0])
	if _, err := h.fae.Send(t.Context(), "HOST", "a word"); err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		b.until(`window.come.join() === 'a word'`)
		b.checkNoFaults()
	}
	h.streams(1)
}

func TestSignedOutPageFollowsNoOtherSession(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.live()
	host := h.node.Host().ID().String()
	guest := makeToken(t, h.fae, "read")
	h.token = guest
	if status, _, body := h.get("/events?reader="+host, ""); status != 403 {
		t.Errorf("%d %s", status, body)
	}
	other := h.tab(b.ctx) // signs the browser in as another agent
	other.open("/mail")
	other.live()
	h.streams(2) // the first tab's stream began with its own session
	if _, err := h.fae.Send(t.Context(), "HOST", "between the two"); err != nil {
		t.Fatal(err)
	}
	other.reads("#stream .from", "You to HOST")
	b.reads("#stream .from", "fae")
	late := h.tab(b.ctx)
	late.do(chromedp.Navigate(b.url + "/assets/none.js"))
	late.run(fmt.Sprintf(`document.body.innerHTML = '<p id=connection></p>'; import(%q).then((m) => m.follow({ reader: %q, as: '', cursor: '0' }, {}))`,
		h.path(h.server.site.Assets.URL("stream.js")), host))
	late.reads("#connection", "signed in as another")
}

func TestTabWithoutWorkerFollowsWhileVisible(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	_, err := chromedp.Call(b.ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: `delete window.SharedWorker`})
	if err != nil {
		t.Fatal(err)
	}
	b.open("/mail")
	b.live()
	b.run(keep)
	h.streams(1)
	send := func(text string) {
		t.Helper()
		if _, err := h.fae.Send(t.Context(), "HOST", text); err != nil {
			t.Fatal(err)
		}
	}
	send("the first")
	b.until(`window.come.join() === "the first"`)
	b.hide(true)
	h.streams(0)
	send("the second")
	b.hide(false)
	h.streams(1)
	send("the third")
	b.until(`window.come.join() === "the first,the second,the third"`)
	b.checkNoFaults()
}

func TestRestoredPageMissesNothing(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.live()
	b.run(keep)
	h.streams(1)
	b.run(`dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))`) // as for a page that the browser keeps in memory
	h.streams(0)
	send := func(text string) {
		t.Helper()
		if _, err := h.fae.Send(t.Context(), "HOST", text); err != nil {
			t.Fatal(err)
		}
	}
	send("meanwhile")
	b.run(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`)
	b.until(`window.come.join() === 'meanwhile'`)
	send("then")
	b.until(`window.come.join() === 'meanwhile,then'`)
	h.streams(1)
	b.checkNoFaults()
}

// TestPressedButtonStaysUntilReleased has a message change elsewhere between the press and the release of one of its buttons.
func TestPressedButtonStaysUntilReleased(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	sent, err := h.fae.Send(t.Context(), "HOST", "The build is green")
	if err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.open("/forms/" + sent.Message.String())
	b.live()
	b.run(`const ask = fetch;
		window.fetch = async (to, ...more) => { const got = await ask(to, ...more); if (String(to).includes('pane=item')) window.drawn = true; return got; };`)
	at := b.place(".tools button[value=dismiss]")
	b.mouse(input.DispatchMouseEventTypeMousePressed, at)
	if err := h.node.Host().Mail().Snooze(t.Context(), capabilities.FormID(sent.Message), capabilities.At(time.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	b.until(`window.drawn`)
	b.mouse(input.DispatchMouseEventTypeMouseReleased, at)
	eventually.Holds(t, "the message is done", func() bool {
		counts, err := h.node.Host().Mail().Counts(t.Context())
		return err == nil && counts.Done == 1
	})
	b.reads("#alone .message", "Done")
	b.checkNoFaults()
}

// mouse presses or releases the button of the mouse at a place.
func (b *tab) mouse(what input.DispatchMouseEventType, at []float64) {
	b.t.Helper()
	p := input.DispatchMouseEventParams{Type: what, X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: 1}
	if _, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, p); err != nil {
		b.t.Fatal(err)
	}
}

// TestWordsOfALostConnectionGoWithIt decides and opens an item while the node is away, which the page says. Once the node is back the page
// says neither any more, beside buttons that work.
func TestWordsOfALostConnectionGoWithIt(t *testing.T) {
	t.Parallel()
	browserPath(t, shells...)
	k := &restartingNode{t: t, folder: t.TempDir(), address: freeport.Address(t)}
	k.start()
	t.Cleanup(func() { k.stop() })
	h := &pageServer{t: t, server: k.server, node: k.node, url: "http://" + k.address, token: makeToken(t, k.node.Host(), "read", "ask", "answer", "admin")}
	h.fae = h.guest("fae")
	h.shell("make")
	h.shell("npm ci")
	b := h.openBrowser()
	b.open("/questions")
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	k.stop()
	b.reads("#connection", "Reconnecting")
	b.press("a")
	b.reads("#alone .failure", "There is no connection now")
	b.press("j")
	b.press(kb.Enter)
	b.reads(".toast .failure", "The node cannot be reached")
	k.start()
	b.until(`document.getElementById("connection").textContent === "" && !document.querySelector(".toast") && !document.querySelector("#alone .failure").textContent`)
	b.press(kb.Enter)
	b.until(`document.querySelector("#alone > .message[data-keys] .command")?.innerText.trim() === "npm ci"`)
	b.checkNoFaults()
}
