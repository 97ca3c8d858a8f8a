package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// notification is a notification that the page has shown.
type notification struct {
	Title, Body, Tag string
	Closed           bool
}

// mayNotify grants the permission for notifications, and records those of each tab.
func (h *pageServer) mayNotify(all ...*tab) {
	h.t.Helper()
	_, err := chromedp.CallBrowser(all[0].ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: browser.PermissionSettingGranted, Origin: h.url,
		BrowserContextID: chromedp.FromContext(all[0].ctx).BrowserContextID,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, b := range all {
		b.run(`window.shown = []; { const Real = Notification; window.Notification = class extends Real {
			constructor(title, o) { super(title, o); this.note = { title, body: o.body, tag: o.tag, closed: false }; window.shown.push(this.note); window.newest = this; }
			close() { super.close(); this.note.closed = true; } } }`)
	}
}

// notifications returns the notifications of a tab.
func (b *tab) notifications() []notification {
	b.t.Helper()
	var all []notification
	if err := json.Unmarshal([]byte(b.text(`JSON.stringify(window.shown)`)), &all); err != nil {
		b.t.Fatal(err)
	}
	return all
}

// hide minimizes a tab's window, or restores it.
func (b *tab) hide(away bool) {
	b.t.Helper()
	id := chromedp.FromContext(b.ctx).Target.TargetID
	window, err := chromedp.CallBrowser(b.ctx, browser.GetWindowForTarget, browser.GetWindowForTargetParams{TargetID: id})
	if err != nil {
		b.t.Fatal(err)
	}
	state := browser.WindowStateNormal
	if away {
		state = browser.WindowStateMinimized
	}
	_, err = chromedp.CallBrowser(b.ctx, browser.SetWindowBounds, browser.SetWindowBoundsParams{
		WindowID: window.WindowID, Bounds: &browser.Bounds{WindowState: state},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.comes(fmt.Sprintf(`document.hidden === %t`, away))
}

// comes waits until an expression holds, also in a hidden page, which draws no frames.
func (b *tab) comes(expression string) {
	b.t.Helper()
	eventually.Holds(b.t, expression, func() bool { return b.text("Boolean("+expression+")") == "true" })
}

// waitGathered waits longer than the page gathers questions for a notification.
func (b *tab) waitGathered() {
	b.t.Helper()
	b.run(`window.over = false; setTimeout(() => { window.over = true; }, 3500)`)
	b.comes(`window.over`)
}

func TestHiddenTabsShowOneNotification(t *testing.T) {
	t.Parallel() // it mostly waits
	h := openPageServer(t)
	h.notifies = true
	all := h.tabs(2, "/mail")
	h.mayNotify(all...)
	all[0].click("#notify")
	for _, b := range all {
		b.until(`document.getElementById('notify').getAttribute('aria-pressed') === 'true'`)
	}
	all[0].hide(true)
	all[1].hide(true)
	field := []events.Field{{Name: "a", Label: "A"}}
	h.ask(parley.Form{Title: "Which port?", Fields: field})
	h.ask(parley.Form{Title: "An <b>odd</b>\u202e one", Fields: field})
	h.ask(parley.Form{Title: "Answered meanwhile", Fields: field})
	h.approve("shell", `{"command":"make"}`)
	if _, err := h.node.Host().Decline(t.Context(), capabilities.FormNumber(2), 0, ""); err != nil {
		t.Fatal(err)
	}
	all[0].comes(`window.shown.length === 1`)
	got := all[0].notifications()[0]
	want := notification{Title: "1 approval and 2 questions wait", Body: `fae: make, Which port?, An <b>odd</b>\u{202e} one`, Tag: "parley.questions"}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	h.ask(parley.Form{Title: "One more", Fields: field})
	all[0].comes(`window.shown.length === 2 && window.shown[0].closed`)
	if got := all[0].notifications()[1]; got.Title != "1 approval and 3 questions wait" || !strings.HasSuffix(got.Body, "and 1 more") {
		t.Errorf("%+v", got)
	}
	if got := all[1].notifications(); len(got) != 0 {
		t.Errorf("another tab says it too: %+v", got)
	}
	all[0].run(`window.newest.onclick()`)
	all[0].comes(`document.activeElement.closest('li')?.textContent.includes('shell')`)
	all[0].comes(`window.shown.every((n) => n.closed)`)
	all[0].checkNoFaults()
	all[1].checkNoFaults()
}

func TestVisibleOrDisabledTabsShowNoNotification(t *testing.T) {
	t.Parallel() // it mostly waits
	h := openPageServer(t)
	h.notifies = true
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	h.mayNotify(b)
	looked := h.tab(b.ctx)
	looked.open("/agents")
	looked.live()
	b.hide(true)
	ask := func(title string) {
		t.Helper()
		h.ask(parley.Form{Title: title, Fields: []events.Field{{Name: "a"}}})
	}
	ask("nobody wants to be told")
	b.waitGathered()
	looked.click("#notify")
	b.comes(`document.getElementById('notify').getAttribute('aria-pressed') === 'true'`)
	ask("another tab is looked at")
	b.waitGathered()
	if got := b.notifications(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	looked.hide(true)
	ask("now")
	b.comes(`window.shown.length === 1`)
	if got := b.notifications()[0]; got.Body != "now" || got.Title != "1 question waits" {
		t.Errorf("%+v", got)
	}
	if _, err := h.node.Host().Answer(t.Context(), capabilities.FormNumber(2), parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "x"}}}); err != nil {
		t.Fatal(err)
	}
	b.comes(`window.shown[0].closed`) // its question was answered
	ask("answered before it is said")
	if _, err := h.node.Host().Answer(t.Context(), capabilities.FormNumber(3), parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "x"}}}); err != nil {
		t.Fatal(err)
	}
	b.waitGathered()
	if got := b.notifications(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	b.checkNoFaults()
}

func TestDeniedNotificationPermissionIsReported(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.click("#notify") // a browser without a window denies the permission
	b.reads("#notify", "Blocked by the browser")
	b.until(`document.getElementById('notify').getAttribute('aria-pressed') === 'false'`)
	b.checkNoFaults()
}

func TestApprovalBehindManyQuestionsIsShown(t *testing.T) {
	t.Parallel() // it mostly waits
	h := openPageServer(t)
	h.notifies = true
	for range firstPaint + 10 {
		h.ask(parley.Form{Fields: []events.Field{{Name: "a"}}})
	}
	all := h.tabs(2, "/agents")
	h.mayNotify(all...)
	all[1].click("#notify")
	all[0].hide(true)
	all[1].hide(true)
	h.approve("shell", `{"command":"make"}`)
	all[0].comes(`window.shown.length === 1`)
	if got := all[0].notifications()[0]; got.Title != "1 approval waits" || got.Body != "fae: make" {
		t.Errorf("%+v", got)
	}
	for _, b := range all {
		b.comes(`document.querySelector('.toast .what')?.textContent === 'make'`)
		b.checkNoFaults()
	}
}
