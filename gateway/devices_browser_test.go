package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/bridge"
	"parley/gateway/bridge/bridgetest"
	"parley/gateway/web"
	"parley/internal/eventually"
)

// subscribes stands for the browser's push service, which no browser without a network has. The rest is the browser's own.
const subscribes = `{
	const stored = { get: () => localStorage.getItem('test.push'), key: %q, auth: %q };
	const made = () => ({ endpoint: stored.get(), toJSON: () => ({ endpoint: stored.get(), keys: { p256dh: stored.key, auth: stored.auth } }),
		unsubscribe: async () => { localStorage.removeItem('test.push'); return true; } });
	PushManager.prototype.getSubscription = async () => (stored.get() ? made() : null);
	PushManager.prototype.subscribe = async (o) => {
		if (!o.userVisibleOnly || o.applicationServerKey.length !== 65) throw new Error('wrong options');
		localStorage.setItem('test.push', 'https://push.example/send/1');
		return made();
	};
}`

// pushTab is a tab whose browser is told by push: what the node sends is delivered to its service worker.
type pushTab struct {
	*tab
	registration chan serviceworker.RegistrationID
}

func (h *pageServer) pushTab(device subscribed) *pushTab {
	h.t.Helper()
	b := &pushTab{tab: h.openBrowser(), registration: make(chan serviceworker.RegistrationID, 16)}
	c := device.config("", "")
	if _, err := chromedp.Call(b.ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf(subscribes, c.Key, c.Token)}); err != nil {
		h.t.Fatal(err)
	}
	origin := "http://" + h.server.Address()
	_, err := chromedp.CallBrowser(b.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: browser.PermissionSettingGranted, Origin: origin,
		BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	err = chromedp.Listen(b.ctx, func(ev any) {
		e, ok := ev.(*serviceworker.EventWorkerRegistrationUpdated)
		if !ok {
			return
		}
		for _, r := range e.Registrations {
			if r.ScopeURL == origin+"/push/" && !r.IsDeleted {
				select {
				case b.registration <- r.RegistrationID:
				default:
				}
			}
		}
	})
	if err == nil {
		_, err = chromedp.Call(b.ctx, serviceworker.Enable, cdp.Empty{})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// shownPush is a notification of the service worker.
type shownPush struct {
	Title, Body, Tag string
	Actions          []string
	Silent           bool
}

// delivers has the service worker get a message as from its push service, until its only notification is as wanted. A
// push service too may deliver a message again.
func (b *pushTab) delivers(id serviceworker.RegistrationID, text []byte, what string, wanted func(shownPush) bool) shownPush {
	b.t.Helper()
	var got []shownPush
	tries := 0
	eventually.Holds(b.t, what, func() bool {
		if tries%40 == 0 {
			_, err := chromedp.Call(b.ctx, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{
				Origin: "http://" + b.server.Address(), RegistrationID: id, Data: string(text),
			})
			if err != nil {
				b.t.Fatal(err)
			}
		}
		tries++
		b.run(`window.pushes = undefined; navigator.serviceWorker.getRegistration('/push/').then((r) => r.getNotifications()).then((all) => {
			window.pushes = JSON.stringify(all.map(({ title, body, tag, actions, silent }) => ({ title, body, tag, silent, actions: actions.map((a) => a.title) }))); })`)
		b.until(`window.pushes`)
		got = nil
		if err := json.Unmarshal([]byte(b.text(`window.pushes`)), &got); err != nil {
			b.t.Fatal(err)
		}
		return len(got) == 1 && wanted(got[0])
	})
	return got[0]
}

// clickPush clicks at a button of the notification, and returns what the service worker shows then. The event is made in
// the service worker, since a browser without a window shows no buttons.
func (b *pushTab) clickPush(action string) (shown shownPush) {
	b.t.Helper()
	targets, err := chromedp.Targets(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, target := range targets {
		if target.Type != "service_worker" || !strings.HasPrefix(target.URL, "http://"+b.server.Address()+"/") {
			continue
		}
		ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithTargetID(target.TargetID))
		defer stop()
		script := fmt.Sprintf(`(async () => {
			const [notification] = await registration.getNotifications();
			const e = new NotificationEvent('notificationclick', { notification, action: %q });
			const waits = [], show = registration.showNotification.bind(registration);
			let shown;
			registration.showNotification = (title, { body, tag, silent, actions }) => {
				shown = JSON.stringify({ title, body, tag, silent, actions: actions.map((a) => a.title) });
				return show(title, { body, tag, silent, actions });
			};
			e.waitUntil = (p) => waits.push(p);
			dispatchEvent(e);
			await Promise.all(waits);
			return shown;
		})()`, action)
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
		if err == nil {
			err = json.Unmarshal([]byte(text), &shown)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		return shown
	}
	b.t.Fatal("no service worker runs")
	return shown
}

// awaited returns what comes next.
func awaited[T any](t *testing.T, c <-chan T) (next T) {
	t.Helper()
	select {
	case next = <-c:
	case <-time.After(eventually.Patience):
		t.Fatal("nothing came")
	}
	return next
}

// TestPushedApprovalIsAnsweredFromTheNotification takes a call from its approval to the notification and back: the page
// subscribes, the node encrypts, the service worker shows and answers.
func TestPushedApprovalIsAnsweredFromTheNotification(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	h.notifies = true
	device := newSubscribed(t)
	messages := make(chan []byte, 16)
	p := newPlace(t, func(_ *http.Request, body []byte) (form, key string, told bridgetest.Telling) {
		messages <- device.open(t, body)
		return "", string(body), told
	})
	b := h.pushTab(device)
	b.open(web.DevicesPath)
	b.until(`!document.getElementById('push').hidden`)
	b.click("#push")
	b.reads("#push-state", "it is ")
	id := awaited(t, b.registration)
	err := bridge.Change(h.server.devices.settings, func(all []bridge.Config) ([]bridge.Config, error) {
		if len(all) != 1 || all[0].URL != "https://push.example/send/1" || all[0].Address != "http://"+h.server.Address() {
			t.Errorf("subscribed: %+v", all)
		}
		all[0].URL, all[0].Network = p.URL+"/send/1", "machine"
		return all, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the node has taken the change up", func() bool {
		files, err := filepath.Glob(BridgeFile(h.server.devices.settings, "*"))
		if err != nil || len(files) != 1 {
			return false
		}
		told, err := os.ReadFile(files[0])
		return err == nil && strings.Contains(string(told), p.URL)
	})
	asked := h.approve("shell", `{"command":"make <b>all</b>"}`)
	shown := b.delivers(id, awaited(t, messages), "the notification", func(n shownPush) bool { return len(n.Actions) == 2 })
	if !strings.HasPrefix(shown.Title, "Question from fae") || !strings.Contains(shown.Body, "make <b>all</b>") || strings.Join(shown.Actions, ", ") != "Allow once, Deny" || shown.Silent {
		t.Errorf("it shows %+v", shown)
	}
	if answered := b.clickPush("once"); answered.Body != "Answered: Allow once" || answered.Tag != shown.Tag || len(answered.Actions) > 0 || !answered.Silent {
		t.Errorf("after the answer it shows %+v", answered)
	}
	o, err := h.fae.Await(t.Context(), capabilities.FormID(asked.Form))
	if err != nil || o.Status != view.StatusAnswered {
		t.Errorf("the outcome is %+v, %v", o, err)
	}
	b.delivers(id, awaited(t, messages), "that it is done", func(n shownPush) bool { return n.Tag == shown.Tag && strings.HasPrefix(n.Title, "Done") })
	b.click("#push") // no more
	b.reads("#push", "Notify this browser")
	b.until(`!document.querySelector('#devices .rows')`)
	if all, err := h.server.devices.List(); err != nil || len(all) > 0 {
		t.Errorf("left: %+v, %v", all, err)
	}
	b.checkNoFaults()
}

// TestPushWorkerSeesNoPage checks that the service worker controls no page and keeps none, and may reach no other origin.
func TestPushWorkerSeesNoPage(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.pushTab(newSubscribed(t))
	b.open(web.DevicesPath)
	b.until(`!document.getElementById('push').hidden`)
	b.click("#push")
	b.reads("#push-state", "it is ")
	b.open("/mail")
	b.run(`caches.keys().then(async (keys) => { window.kept = [navigator.serviceWorker.controller, keys.length, (await navigator.serviceWorker.getRegistrations()).length].join(); })`)
	b.until(`window.kept !== undefined`)
	if got := b.text(`window.kept`); got != ",0,1" {
		t.Errorf("a page is controlled, or kept: %s", got)
	}
	b.checkNoFaults()
	status, head, body := h.get(h.server.site.Assets.URL("push-worker.js"), "")
	if policy := head.Get("Content-Security-Policy"); status != http.StatusOK || !strings.Contains(policy, "connect-src 'self'") || !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("%d %v", status, head)
	}
	if strings.Contains(body, "'fetch'") || strings.Contains(body, "caches") || !strings.HasSuffix(head.Get("Service-Worker-Allowed"), "../push/") {
		t.Errorf("the script is allowed at %q: %s", head.Get("Service-Worker-Allowed"), body)
	}
}
