package gateway

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/internal/freeport"
	"parley/mailbox"
	"parley/persistence/archive/store"
)

func TestReloadKeepsDraftWithoutSecrets(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.ask(parley.Form{Fields: []events.Field{
		{Name: "name", Label: "Name", Default: capabilities.String("as it was")},
		{Name: "key", Label: "Key", Type: events.Secret},
		{Name: "many", Label: "Many", Type: events.Multiselect, Options: []events.Option{{Value: "a"}, {Value: "b"}}},
	}})
	b := h.openBrowser()
	b.open("/mail")
	b.fill(fieldAt(0)+" input", "half")
	b.fill(fieldAt(1)+" input", "hush")
	b.click(fieldAt(2) + " label:nth-of-type(2)")
	h.keeps(asked, "many=b name=half")
	if kept := b.text(`JSON.stringify(localStorage)`); strings.Contains(kept, "hush") {
		t.Errorf("kept: %s", kept)
	}
	b.open("/mail")
	b.until(`document.querySelector('[name=f0]').value === 'half' && document.querySelectorAll('[name=f2]')[1].checked && !document.querySelector('[name=f1]').value`)
	b.click(answerButton)
	b.reads(".state", "Answered")
	b.until(`Object.keys(localStorage).join() === 'parley.home'`) // the draft is deleted once the answer is accepted
	b.checkNoFaults()
	if got := h.outcome(asked).Values.Text(); got != `{"many":["b"],"name":"half"}` {
		t.Error(got)
	}
}

// keeps waits until the host's draft of a form has texts, sorted by their fields.
func (h *pageServer) keeps(asked view.Asked, texts string) {
	h.t.Helper()
	eventually.Holds(h.t, "the draft is "+texts, func() bool {
		d, err := h.node.Host().Mail().Draft(h.t.Context(), capabilities.FormID(asked.Form))
		var got []string
		for _, t := range d.Texts {
			got = append(got, t.Name+"="+t.Text)
		}
		slices.Sort(got)
		return err == nil && strings.Join(got, " ") == texts
	})
}

// TestFormBegunInOneBrowserIsFinishedInAnother has two browsers that share nothing but the node.
func TestFormBegunInOneBrowserIsFinishedInAnother(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.ask(parley.Form{Fields: []events.Field{
		{Name: "name", Label: "Name"}, {Name: "builder", Label: "Builder"}, {Name: "key", Label: "Key", Type: events.Secret},
	}})
	desk, phone := h.openBrowser(), h.openBrowser()
	desk.open("/questions")
	desk.fill(fieldAt(0)+" input", "begun at the desk")
	desk.fill(fieldAt(1)+" input", "me")
	desk.fill(fieldAt(2)+" input", "hush")
	h.keeps(asked, "builder=me name=begun at the desk")
	phone.open("/questions")
	phone.until(`document.querySelector('[name=f0]').value === 'begun at the desk' && document.querySelector('[name=f1]').value === 'me' && !document.querySelector('[name=f2]').value`)
	phone.fill(fieldAt(2)+" input", "other")
	phone.click(answerButton)
	phone.reads(".state", "Answered")
	h.keeps(asked, "")
	phone.checkNoFaults()
	desk.checkNoFaults()
	if got := h.outcome(asked).Values.Text(); got != `{"builder":"me","key":"other","name":"begun at the desk"}` {
		t.Error(got)
	}
}

// restartingNode is a node that can be stopped and started again at the same address.
type restartingNode struct {
	t       *testing.T
	folder  string
	address string
	node    *actors.Node
	server  *Server
}

func (k *restartingNode) start() {
	k.t.Helper()
	node, err := actors.Open(k.t.Context(), actors.Options{Folder: k.folder, Name: "test"})
	if err != nil {
		k.t.Fatal(err)
	}
	s, err := Listen(node, Options{Socket: filepath.Join(k.folder, "parley.sock"), Listen: k.address, Version: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		k.t.Fatal(err)
	}
	s.Serve()
	k.node, k.server, k.address = node, s, s.Address()
}

func (k *restartingNode) stop() {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
	defer cancel()
	if err := k.server.Drain(ctx); err != nil {
		k.t.Error(err)
	}
	if err := k.node.Close(ctx); err != nil {
		k.t.Error(err)
	}
}

func TestDraftSurvivesNodeRestart(t *testing.T) {
	t.Parallel()
	browserPath(t, shells...)
	k := &restartingNode{t: t, folder: t.TempDir(), address: freeport.Address(t)}
	k.start()
	t.Cleanup(func() { k.stop() })
	h := &pageServer{t: t, server: k.server, node: k.node, url: "http://" + k.address, token: makeToken(t, k.node.Host(), "read", "ask", "answer", "admin")}
	h.fae = h.guest("fae")
	asked := h.ask(parley.Form{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "key", Label: "Key", Type: events.Secret}}})
	b := h.openBrowser()
	b.open("/mail")
	b.fill(fieldAt(0)+" input", "half")
	b.fill(fieldAt(1)+" input", "hush")
	k.stop()
	b.reads("#connection", "Reconnecting")
	b.click(answerButton)
	b.reads(".failure", "cannot be reached")
	b.until(`!document.querySelector('button.primary').disabled`)

	k.start()
	h.node = k.node
	var err error
	if h.fae, err = k.node.ActAs(t.Context(), "fae"); err != nil {
		t.Fatal(err)
	}
	b.until(`document.getElementById('connection').textContent === ''`)
	if _, err := h.fae.Send(t.Context(), "HOST", "I am back"); err != nil {
		t.Fatal(err)
	}
	b.reads("#stream .what", "I am back")
	b.until(`document.querySelectorAll('#stream .entry').length === 2`)
	b.click(answerButton)
	b.reads(".state", "Answered")
	if got := h.outcome(asked).Values.Text(); got != `{"a":"half","key":"hush"}` {
		t.Error(got)
	}
}

func TestEscapeConfirmsOnlyWithDraft(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.ask(parley.Form{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	b := h.openBrowser()
	b.open("/questions")
	b.until(`document.activeElement.name === 'f0'`)
	b.press(kb.Escape)
	b.until(`document.activeElement.matches('li.message') && !document.querySelector('dialog')`)
	b.fill(fieldAt(0)+" input", "half")
	b.press(kb.Escape)
	b.reads("dialog[open]", "Leave this form?")
	b.click(`dialog button[value=keep]`)
	b.until(`!document.querySelector('dialog') && document.querySelector('[name=f0]').value === 'half' && document.activeElement.matches('li.message')`)
	b.open("/questions")
	b.until(`document.querySelector('[name=f0]').value === 'half'`)
	b.fill(fieldAt(0)+" input", "more")
	b.press(kb.Escape)
	b.reads("dialog[open]", "Leave this form?")
	b.click(`dialog button[value=discard]`)
	b.until(`document.querySelector('[name=f0]').value === ''`)
	b.open("/questions")
	b.until(`document.querySelector('[name=f0]').value === ''`)
	b.checkNoFaults()
}

func TestDraftIsSentAfterRestartAndReload(t *testing.T) {
	t.Parallel()
	browserPath(t, shells...)
	k := &restartingNode{t: t, folder: t.TempDir(), address: freeport.Address(t)}
	k.start()
	t.Cleanup(func() { k.stop() })
	h := &pageServer{t: t, server: k.server, node: k.node, url: "http://" + k.address, token: makeToken(t, k.node.Host(), "read", "ask", "answer", "admin")}
	h.fae = h.guest("fae")
	h.moveOld()
	asked := h.ask(parley.Form{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B", Type: events.Textarea}}})
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.fill(fieldAt(0)+" input", "half")
	b.fill(fieldAt(1)+" textarea", "a form")
	k.stop()
	b.reads("#connection", "Reconnecting")
	k.start()
	h.node = k.node
	var err error
	if h.fae, err = k.node.ActAs(t.Context(), "fae"); err != nil {
		t.Fatal(err)
	}
	b.until(`document.getElementById('connection').textContent === '' && document.querySelector('[name=f0]').value === 'half'`)
	b.open("/questions")
	b.until(`document.querySelector('[name=f0]').value === 'half' && document.querySelector('[name=f1]').value === 'a form'`)
	b.click(answerButton)
	b.reads(".state", "Answered")
	b.open("/done")
	b.live()
	b.reads("#stream .what", "A form that has ended, in the archive")
	b.click(`.entry[data-number="0"] > a`)
	b.reads("#alone .message", "In the archive, and not at this node")
	b.checkNoFaults()
	if got := h.outcome(asked).Values.Text(); got != `{"a":"half","b":"a form"}` {
		t.Error(got)
	}
}

// moveOld moves a settled form to an archive elsewhere. A node that starts again knows it from there alone.
func (h *pageServer) moveOld() {
	h.t.Helper()
	ctx, host := h.t.Context(), h.node.Host()
	h.ask(parley.Form{Fields: []events.Field{{Name: "a"}}})
	if _, err := host.Decline(ctx, capabilities.FormNumber(0), 0, ""); err != nil {
		h.t.Fatal(err)
	}
	text := strings.Repeat("a line of a long message\n", 5000)
	for range 50 { // fill a file of the journal
		if _, err := host.Send(ctx, "fae", text); err != nil {
			h.t.Fatal(err)
		}
	}
	to, err := store.Open(h.t.TempDir())
	if err == nil {
		_, err = h.node.Archive().MoveBefore(ctx, capabilities.At(time.Now().Add(time.Hour)))
	}
	if err == nil {
		_, err = h.node.Archive().Move(ctx, to, nil)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// TestDraftOnItsWayIsKept leaves a page while the node has not answered that it keeps the draft.
func TestDraftOnItsWayIsKept(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.ask(parley.Form{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	b := h.openBrowser()
	b.open("/questions")
	b.run(`const ask = fetch;
		window.fetch = (to, ...more) => (to.endsWith('/save_draft') ? (window.saving = true, new Promise(() => {})) : ask(to, ...more));`)
	b.fill(fieldAt(0)+" input", "half")
	b.until(`window.saving`)
	b.open("/questions")
	b.until(`document.querySelector('[name=f0]').value === 'half'`)
	b.checkNoFaults()
}

// TestDraftIsAskedForWhenPageIsOlder opens a page that was drawn just before the node had the draft.
func TestDraftIsAskedForWhenPageIsOlder(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.ask(parley.Form{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.run(`fetch(location.href, { headers: { Accept: 'text/html' } }).then((r) => r.text()).then((text) => { window.early = text; })`)
	b.until(`window.early`)
	b.fill(fieldAt(0)+" input", "half")
	b.until(`JSON.parse(Object.entries(localStorage).find(([k]) => k.startsWith('parley.draft.'))?.[1] ?? '{}').arrived`)
	b.run(`const early = new DOMParser().parseFromString(window.early, 'text/html').querySelector('li.message');
		document.querySelector('li.message').replaceWith(document.adoptNode(early));`)
	b.until(`document.querySelector('[name=f0]').value === 'half'`)
	b.checkNoFaults()
}

// TestMessageBegunInOneBrowserIsSentFromAnother has two browsers that share nothing but the node.
func TestMessageBegunInOneBrowserIsSentFromAnother(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	desk, phone := h.openBrowser(), h.openBrowser()
	desk.open("/agents/fae")
	desk.fill("#line", "begun at the desk")
	h.keepsText("fae", capabilities.FormRef{}, "begun at the desk")
	phone.open("/agents/fae")
	phone.until(`document.querySelector('#line').value === 'begun at the desk'`)
	phone.fill("#line", "begun at the desk, sent from the phone")
	phone.press(kb.Enter)
	phone.until(`document.querySelector('#line').value === '' && document.querySelector('.mail')`)
	h.keepsText("fae", capabilities.FormRef{}, "")
	desk.open("/agents/fae")
	desk.until(`document.querySelector('.mail').innerText.includes('sent from the phone') && document.querySelector('#line').value === ''`)
	phone.checkNoFaults()
	desk.checkNoFaults()
}

// TestReplyBegunInOneBrowserIsSentFromAnother does the same for a reply.
func TestReplyBegunInOneBrowserIsSentFromAnother(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	sent, err := h.fae.Send(t.Context(), "HOST", "how is it?")
	if err != nil {
		t.Fatal(err)
	}
	desk, phone := h.openBrowser(), h.openBrowser()
	to := "/forms/" + sent.Message.String()
	desk.open(to)
	desk.fill("textarea[name=text]", "so far")
	h.keepsText("", capabilities.FormID(sent.Message), "so far")
	phone.open(to)
	phone.until(`document.querySelector('textarea[name=text]').value === 'so far'`)
	phone.fill("textarea[name=text]", "another text")
	phone.click("button[value=reply]")
	h.keepsText("", capabilities.FormID(sent.Message), "")
	desk.open(to)
	desk.until(`document.querySelector('textarea[name=text]').value === ''`)
	phone.checkNoFaults()
	desk.checkNoFaults()
}

// TestBegunMessageIsShownWithoutScripts reads the page as a browser without JavaScript does.
func TestBegunMessageIsShownWithoutScripts(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	if err := h.node.Host().Mail().DraftMessage(t.Context(), mailbox.DraftMessage{To: "fae", Text: "</textarea><b>begun"}); err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.open("/agents/fae")
	b.run(`fetch(location.href, { headers: { Accept: 'text/html' } }).then((r) => r.text()).then((text) => { window.plain = text; })`)
	b.until(`window.plain?.includes('&lt;/textarea&gt;&lt;b&gt;begun</textarea>')`)
	b.checkNoFaults()
}

// keepsText waits until the host's draft of a message to an agent, or of a reply, is a text.
func (h *pageServer) keepsText(to string, reply capabilities.FormRef, text string) {
	h.t.Helper()
	eventually.Holds(h.t, "the draft is "+text, func() bool {
		d, err := h.node.Host().Mail().MessageDraft(h.t.Context(), to, reply)
		return err == nil && d.Text == text
	})
}
