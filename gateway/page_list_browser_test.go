package gateway

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestPageIsUsedByKeyboardAlone reads, decides, snoozes, searches and goes about without a pointer.
func TestPageIsUsedByKeyboardAlone(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	if _, err := h.fae.Send(t.Context(), "HOST", "The build is green"); err != nil {
		t.Fatal(err)
	}
	form := h.ask(parley.Form{Title: "Which port?", Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	first := h.approve("shell", `{"command":"make"}`)
	b := h.openBrowser()
	for _, width := range []int64{1280, 390} { // the first decision within five keys, in a wide and in a narrow window
		b.do(chromedp.EmulateViewport(width, 900))
		b.open("/questions")
		b.live()
		if width == 390 {
			b.press("j")
			b.until(`document.activeElement.closest('.entry')?.textContent.includes('make')`)
			b.press(kb.Enter)
		}
		b.until(`document.activeElement.matches('li.message[data-keys]')`)
		began := time.Now()
		b.press("a")
		if !h.permitted(first) {
			t.Error("A allows nothing")
		}
		t.Logf("at %d px, %s: decided %v after the last key", width, map[int64]string{1280: "1 key", 390: "3 keys"}[width], time.Since(began))
		b.reads("#alone, .toast", "Which port?")
		first = h.approve("shell", `{"command":"make"}`)
	}
	b.open("/questions")
	b.live()
	b.tap(`.entry[data-type=approval] > a`)
	b.until(`document.activeElement.matches('li.message[data-keys]')`)
	began := time.Now()
	b.tap(`#alone button[value=once]`)
	if !h.permitted(first) {
		t.Error("a touch allows nothing")
	}
	t.Logf("at 390 px, 2 touches: decided %v after the last, with the time for the button to rest", time.Since(began))
	h.approve("shell", `{"command":"make"}`)
	b.do(chromedp.EmulateViewport(1280, 900))
	b.open("/mail")
	b.live()
	b.press("j")
	b.until(`document.activeElement.closest('.entry')`)
	b.press("kj")
	b.press("?")
	b.reads("dialog.keys", "next or previous message")
	b.press(kb.Escape)
	b.until(`!document.querySelector('dialog')`)
	b.press("k", chromedp.ModifierCtrl)
	b.until(`document.activeElement.matches('.palette input')`)
	b.press("port")
	b.until(`document.querySelector('.palette li[aria-selected=true]').textContent.startsWith("Which port?")`)
	b.press(kb.Enter)
	b.reads("#alone .heading", "Which port?")
	b.until(`document.activeElement.name === 'f0' && location.pathname.includes('/forms/')`)
	b.press(kb.Escape)
	b.until(`document.activeElement.matches('li.message[data-keys]')`)
	b.press("s")
	eventually.Holds(t, "the form is snoozed", func() bool { return h.message(form).SnoozedUntil != 0 })
	b.open("/snoozed")
	b.live()
	b.click(".tools button[value=wake]")
	eventually.Holds(t, "the form is back", func() bool { return h.message(form).SnoozedUntil == 0 })
	b.open("/mail")
	b.live()
	b.press("/")
	b.until(`document.activeElement.id === 'search'`)
	b.fill("#search", "green") // without the slash, which this browser types all the same
	b.press(kb.Enter)
	b.do(chromedp.WaitReady(chromedp.CSS(`[data-picked=yes]`)), chromedp.WaitReady("html[data-live]"))
	b.until(`document.querySelectorAll('.entry').length === 1`)
	b.press(kb.Tab) // from wherever the focus is after loading
	b.press("j")
	b.until(`document.activeElement.closest('.entry')`)
	b.press(kb.Enter)
	b.until(`location.pathname.includes('/forms/') && document.activeElement.matches('li.message[data-keys]')`)
	b.press("u")
	b.reads("#news", "Marked as unread")
	b.press("e")
	eventually.Holds(t, "the message is done", func() bool {
		counts, err := h.node.Host().Mail().Counts(t.Context())
		return err == nil && counts.Done == 4 // with three calls
	})
	b.open("/done")
	b.reads("#stream", "The build is green")
	b.live()
	b.press("k", chromedp.ModifierCtrl)
	b.until(`document.activeElement.matches('.palette input')`)
	b.press("theme dark")
	b.until(`document.querySelector('.palette li[aria-selected=true]').textContent.startsWith("Theme: dark")`)
	b.press(kb.Enter)
	b.until(`document.documentElement.dataset.theme === 'dark' && getComputedStyle(document.documentElement).colorScheme === 'dark'`)
	if _, err := h.fae.Send(t.Context(), "HOST", "One more"); err != nil { // put away elsewhere, it comes to the list
		t.Fatal(err)
	}
	last := h.newest()
	if err := h.node.Host().Dismiss(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	b.reads("#stream", "One more")
	b.open("/snoozed")
	b.live()
	if got := b.text(`document.documentElement.dataset.theme`); got != "dark" {
		t.Errorf("after loading, the theme is %q", got)
	}
	if err := h.node.Host().Mail().Snooze(t.Context(), capabilities.FormID(form.Form), capabilities.At(time.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	b.reads("#stream", "Which port?")
	if err := h.node.Host().Mail().Snooze(t.Context(), capabilities.FormID(form.Form), 0); err != nil {
		t.Fatal(err)
	}
	b.reads("#empty", "Nothing is snoozed")
	zone := h.ask(parley.Form{Title: "Which zone?", Fields: []events.Field{{Name: "zone", Type: events.Radio, Options: []events.Option{{Value: "eu"}, {Value: "us"}}}, {Name: "why"}}})
	b.open("/forms/" + zone.Form.String() + "?in=questions")
	b.reads("#alone .heading", "Which zone?")
	b.until(`document.activeElement.matches("#alone [type=radio]")`)
	b.press("2")
	b.until(`document.querySelector("#alone [type=radio]:checked")?.closest("label").textContent.includes("us")`)
	snooze := func(span time.Duration) {
		t.Helper()
		if err := h.node.Host().Mail().Snooze(t.Context(), capabilities.FormID(zone.Form), capabilities.At(time.Now().Add(span))); err != nil {
			t.Fatal(err)
		}
	}
	snooze(time.Hour)
	b.until(`!document.getElementById('stream').textContent.includes('Which zone?')`)
	snooze(100 * time.Millisecond) // and it comes back by itself
	b.reads("#stream", "Which zone?")
	b.checkNoFaults()
}

// TestUrgentMailLeadsUntilItIsRead has an old urgent message lead the list, in a group of its own. A change of a message that the
// list does not show is no new one, though its number is larger than that of the first row.
func TestUrgentMailLeadsUntilItIsRead(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	bob := h.guest("bob")
	for i := range 4 {
		p := mailbox.PostMessage{To: "@host", Post: parley.Post{Text: fmt.Sprint("message ", i)}}
		if i == 0 {
			p.Priority = events.Urgent
		}
		if _, err := actors.Post(t.Context(), bob, p); err != nil {
			t.Fatal(err)
		}
	}
	numbers := `[...document.querySelectorAll("#stream .entry")].map((r) => r.dataset.number).join()`
	groups := `[...document.querySelectorAll("#stream .group")].map((g) => g.textContent).join()`
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("/mail")
	b.live()
	if got := b.text(numbers) + " " + b.text(groups); got != "0,3,2,1 Urgent,Today" {
		t.Errorf("the list is %s", got)
	}
	b.run(`document.querySelector('#stream .entry[data-number="1"]').remove()`) // as if it were further down
	for _, n := range []uint64{1, 2} {
		if _, err := h.node.Host().Mail().MarkRead(t.Context(), []uint64{n}, false); err != nil {
			t.Fatal(err)
		}
	}
	b.until(`!document.querySelector('#stream .entry[data-number="2"]').hasAttribute("data-new")`)
	if got := b.text(numbers); got != "0,3,2" {
		t.Errorf("after a change of another message the list is %s", got)
	}
	b.run(`document.querySelector('#stream .entry[data-number="0"] > a').click()`)
	b.until(`!document.querySelector("#stream [data-urgent]")`)
	b.open("/mail")
	if got := b.text(numbers) + " " + b.text(groups); got != "3,2,1,0 Today" {
		t.Errorf("once it is read the list is %s", got)
	}
	b.checkNoFaults()
}

// newest returns the newest message of the host's mail.
func (h *pageServer) newest() capabilities.FormRef {
	h.t.Helper()
	in, err := h.node.Host().Mail().Last(h.t.Context(), view.MessageFilter{All: true}, 0, 1)
	if err != nil || len(in.Messages) != 1 {
		h.t.Fatalf("%+v %v", in, err)
	}
	return capabilities.FormID(in.Messages[0].MessageID)
}

// message returns a form of the host's mail.
func (h *pageServer) message(asked view.Asked) view.Message {
	h.t.Helper()
	m, err := h.node.Host().Message(h.t.Context(), capabilities.FormID(asked.Form))
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

// TestListsNeedNoScript reads every list, finds messages and puts them away by plain links and forms.
func TestListsNeedNoScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for _, c := range []struct{ path, want string }{
		{"/questions", "parley setup claude-code"}, {"/questions", "Send yourself a question"}, {"/snoozed", "Nothing is snoozed"}, {"/done", "Nothing is done"}, {"/mail", "No messages yet"},
	} {
		if status, _, body := h.get(c.path, "text/html"); status != 200 || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d, without %q", c.path, status, c.want)
		}
	}
	if _, err := h.fae.Send(t.Context(), "HOST", "The build is green"); err != nil {
		t.Fatal(err)
	}
	asked := h.ask(parley.Form{Title: "Which port?", Fields: []events.Field{{Name: "a", Label: "Port"}}})
	h.approve("shell", `{"command":"make"}`)
	shows := func(path string, want ...string) {
		t.Helper()
		_, _, body := h.get(path, "text/html")
		_, list, _ := strings.Cut(body, `id="stream"`)
		list, _, _ = strings.Cut(list, "</section>")
		if got := strings.Count(list, `class="entry"`); got != len(want) {
			t.Errorf("%s has %d rows, want %d", path, got, len(want))
		}
		for _, w := range want {
			if !strings.Contains(list, w) {
				t.Errorf("%s lacks %q", path, w)
			}
		}
	}
	shows("/mail", "<bdi>make</bdi>", "Which port?", "The build is green")
	shows("/questions", "<bdi>make</bdi>", "Which port?")
	shows("/questions?group=agent", "<bdi>make</bdi>", "Which port?")
	shows("/mail?kind=approval", "<bdi>make</bdi>")
	shows("/mail?state=open", "<bdi>make</bdi>", "Which port?")
	shows("/mail?q=BUILD+is", "The build is green")
	shows("/mail?agent="+h.fae.ID().String(), "<bdi>make</bdi>", "Which port?", "The build is green")
	shows("/mail?agent=nobody")
	form := "/forms/" + asked.Form.String()
	in := "?in=" + url.QueryEscape("questions?group=agent")
	if _, _, body := h.get(form+in, "text/html"); !strings.Contains(body, `<form class="ask"`) || !strings.Contains(body, `aria-current="true"`) || !strings.Contains(body, `href="/questions?group=agent"`) {
		t.Error("the form is not beside its list")
	}
	send := func(path, button string) {
		t.Helper()
		if status, _, body := h.postForm(path, url.Values{"do": {button}}); status != 303 {
			t.Errorf("%s: %d %s", button, status, body)
		}
	}
	send(form, "snooze-4")
	shows("/questions", "<bdi>make</bdi>")
	shows("/snoozed", "Which port?")
	send(form, "wake")
	shows("/snoozed")
	send("/forms/0", "dismiss")
	shows("/done", "The build is green")
	shows("/mail", "<bdi>make</bdi>", "Which port?")
	send("/forms/0", "restore")
	shows("/done")
	for _, bad := range []string{"snooze-", "snooze-0", "snooze-99999", "snooze-x"} {
		if status, _, _ := h.postForm(form, url.Values{"do": {bad}}); status != 400 {
			t.Errorf("%s: %d", bad, status)
		}
	}
}

// TestLayoutFitsEveryWidth checks the panes at three widths. Axe checks each layout once, the wide one in light and the narrow
// one in dark.
func TestLayoutFitsEveryWidth(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(axePath(t))
	if err != nil {
		t.Fatal(err)
	}
	h := openPageServer(t)
	h.ask(parley.Form{Title: "Which port?", Fields: []events.Field{{Name: "a", Label: "A"}, {Name: "b", Label: "B"}}})
	h.approve("shell", `{"command":"make"}`)
	b := h.openBrowser()
	const panes = `['.rail', '#list', '#item'].map((s) => document.querySelector(s)).map((e) => (e?.checkVisibility() ? Math.round(e.getBoundingClientRect().width) : 0)).join()`
	for i, c := range []struct {
		width      int64
		list, item string // the widths of the panes
		checked    []string
	}{{1280, "224,440,616", "224,440,616", []string{"/questions"}}, {768, "0,768,0", "0,0,768", nil}, {390, "0,390,0", "0,0,390", []string{"/questions", "/forms/0"}}} {
		b.do(chromedp.EmulateViewport(c.width, 900))
		for path, want := range map[string]string{"/questions": c.list, "/forms/0": c.item} {
			b.prefer([]string{"light", "light", "dark"}[i])
			b.open(path)
			if got := b.text(panes); got != want {
				t.Errorf("%s at %d: %s, want %s", path, c.width, got, want)
			}
			if got := b.text(`[...document.querySelectorAll('.entry')].map((e) => e.offsetHeight).join()`); path == "/questions" && got != "56,56" {
				t.Errorf("rows of %s", got)
			}
			if !slices.Contains(c.checked, path) {
				continue
			}
			if found := b.violations(string(source)); found != "" {
				t.Errorf("%s at %d:\n%s", path, c.width, found)
			}
		}
	}
	b.checkNoFaults()
}
