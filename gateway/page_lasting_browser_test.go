package gateway

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/actors"
	"parley/capabilities"
	"parley/events"
)

func TestADraftOutlivesAReloadAndASecretDoesNot(t *testing.T) {
	h := openPageServer(t)
	asked := h.ask(actors.Ask{Fields: []events.Field{
		{Name: "name", Label: "Name", Default: capabilities.String("as it was")},
		{Name: "key", Label: "Key", Type: events.Secret},
		{Name: "many", Label: "Many", Type: events.Multiselect, Options: []events.Option{{Value: "a"}, {Value: "b"}}},
	}})
	b := h.openBrowser()
	b.open("/")
	b.fill(fieldAt(0)+" input", "half")
	b.fill(fieldAt(1)+" input", "hush")
	b.click(fieldAt(2) + " label:nth-of-type(2)")
	if kept := b.text(`JSON.stringify(localStorage)`); strings.Contains(kept, "hush") || !strings.Contains(kept, "half") {
		t.Errorf("kept: %s", kept)
	}
	b.open("/")
	b.until(`document.querySelector('[name=f0]').value === 'half' && document.querySelectorAll('[name=f2]')[1].checked && !document.querySelector('[name=f1]').value`)
	b.click(answerButton)
	b.reads(".state", "Answered")
	b.until(`Object.keys(localStorage).join() === 'parley.home'`) // the draft goes when the answer is known to have been taken
	b.checkNoFaults()
	if got := h.outcome(asked).Values.Text(); got != `{"many":["b"],"name":"half"}` {
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
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := k.server.Drain(ctx); err != nil {
		k.t.Error(err)
	}
	if err := k.node.Close(ctx); err != nil {
		k.t.Error(err)
	}
}

func TestTheNodeRestartsWhileAFormIsHalfFilled(t *testing.T) {
	browserPath(t)
	k := &restartingNode{t: t, folder: t.TempDir(), address: "127.0.0.1:0"}
	k.start()
	t.Cleanup(func() { k.stop() })
	h := &pageServer{t: t, server: k.server, node: k.node, url: "http://" + k.address, token: makeToken(t, k.node.Host(), "read", "ask", "answer", "admin")}
	h.fae = h.guest("fae")
	asked := h.ask(actors.Ask{Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "key", Label: "Key", Type: events.Secret}}})
	b := h.openBrowser()
	b.open("/")
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
	b.reads(".text", "I am back")
	b.until(`document.querySelectorAll('#stream > li').length === 2`)
	b.click(answerButton)
	b.reads(".state", "Answered")
	if got := h.outcome(asked).Values.Text(); got != `{"a":"half","key":"hush"}` {
		t.Error(got)
	}
}

func TestHostileTextIsText(t *testing.T) {
	h := openPageServer(t)
	const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>"'` + "\u202egpj.exe\u200b"
	h.guest(`<b>` + "\u202e" + `joe`)
	asked := h.ask(actors.Ask{
		Title: evil, Description: "javascript:alert(3) " + evil,
		Fields: []events.Field{
			{Name: "action", Label: evil, Help: evil, Placeholder: evil, Default: capabilities.String(evil), Example: capabilities.String(evil)},
			{Name: "submit", Label: "javascript:alert(4)", Type: events.Select, Options: []events.Option{{Value: evil, Label: evil, Description: evil}}},
			{Name: "<i>", Label: "", Type: events.Radio, Options: []events.Option{{Value: evil}, {Value: "b", Label: "\u2066x\u2069"}}},
			{Name: "elements", Label: "\u0000\u001b[31m"},
		},
	})
	if _, err := h.fae.Send(t.Context(), "HOST", `<a href="javascript:alert(5)">hi</a> `+evil); err != nil {
		t.Fatal(err)
	}
	b := h.openBrowser()
	b.open("/agents")
	b.reads(".agent", `<b>\u{202e}joe`)
	b.open("/")
	b.reads(".heading", `<script>alert(1)</script><img src=x onerror=alert(2)>"'\u{202e}gpj.exe\u{200b}`)
	b.reads(".help", `\u{202e}gpj.exe`)
	b.reads(".text", `<a href="javascript:alert(5)">hi</a>`)
	if found := b.text(`document.querySelectorAll('#main :is(script, img, iframe), #main [onerror], a[href^="javascript:"]').length`); found != "0" {
		t.Errorf("%s elements were made of text", found)
	}
	if seen := b.text(`/[\u202a-\u202e\u2066-\u2069\u200b\u0000\u001b]/.test(document.body.innerText)`); seen != "false" {
		t.Error("the page has characters that hide")
	}
	b.set(fieldAt(1)+" select", evil)
	b.click(fieldAt(2) + " label:nth-of-type(1)")
	b.click(answerButton)
	b.reads(".state", "Answered")
	b.reads(".answers", `<img src=x onerror=alert(2)>`)
	b.checkNoFaults()
	values, _ := h.outcome(asked).Values.AsRecord()
	for _, name := range []string{"action", "submit", "<i>"} {
		if values[name].Text() != evil {
			t.Errorf("%s: %q", name, values[name].Text())
		}
	}
}

func TestOlderMessagesComeAsTheyAreAskedFor(t *testing.T) {
	h := openPageServer(t)
	for range 120 {
		if _, err := h.fae.Send(t.Context(), "HOST", "a word"); err != nil {
			t.Fatal(err)
		}
	}
	b := h.openBrowser()
	b.open("/")
	b.until(`document.querySelectorAll('#stream > li').length === 50 && scrollY > 100`)
	b.text(`scrollTo(0, 0)`)
	b.until(`document.querySelectorAll('#stream > li').length === 100`)
	b.text(`scrollTo(0, 0)`)
	b.until(`document.querySelectorAll('#stream > li').length === 120 && !document.getElementById('older')`)
	b.until(`[...document.querySelectorAll('#stream > li')].every((c, i) => Number(c.dataset.number) === i)`)
	b.checkNoFaults()
}
