package gateway

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"parley/actors"
	"parley/actors/view"
	"parley/gateway/bridge"
	"parley/gateway/web"
)

// signedIn is a browser with a session, without its scripts.
type signedIn struct {
	t      *testing.T
	server *Server
	in     actors.Session
}

func newSignedIn(t *testing.T, s *Server, a *actors.Agent) signedIn {
	t.Helper()
	in, err := a.Tokens().MakeSession(t.Context(), "a test")
	if err != nil {
		t.Fatal(err)
	}
	return signedIn{t, s, in}
}

// send sends a form to a page, or gets it if there is none.
func (b signedIn) send(path, origin string, form url.Values) (status int, text string) {
	b.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.server.Address()+web.SessionsPath+b.in.Key+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: SessionCookie, Value: b.in.Text})
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("User-Agent", "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36")
	if origin != "" {
		r.Header.Set("Origin", origin)
		if at, err := url.Parse(origin); err == nil && net.ParseIP(at.Hostname()) != nil { // as it is where the node is at that address
			r.Host = at.Host
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(got)
}

// origin returns the origin of the node's pages.
func (b signedIn) origin() string { return "http://" + b.server.Address() }

// subscribe sends a subscription as the script of the page does.
func (b signedIn) subscribe(change func(url.Values)) (status int, text string) {
	b.t.Helper()
	c := newSubscribed(b.t).config("", "https://push.example/send/1")
	form := url.Values{"endpoint": {c.URL}, "p256dh": {c.Key}, "auth": {c.Token}, "address": {b.origin()}}
	if change != nil {
		change(form)
	}
	return b.send(web.DevicesPath, b.origin(), form)
}

func TestBrowserSubscribesAndIsDropped(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	b := newSignedIn(t, s, node.Host())
	for range 2 { // the second is known
		if status, text := b.subscribe(nil); status != http.StatusSeeOther {
			t.Fatalf("%d %s", status, text)
		}
	}
	if status, text := b.subscribe(func(f url.Values) { f.Set("endpoint", "https://push.example/send/2") }); status != http.StatusSeeOther {
		t.Fatalf("%d %s", status, text)
	}
	all, err := bridge.ReadConfigs(s.devices.settings)
	if err != nil || len(all) != 2 || all[0].Name != "chrome-141-on-android" || all[1].Name != "chrome-141-on-android-2" || all[0].Address != b.origin() || all[0].Network != "" {
		t.Fatalf("added: %+v, %v", all, err)
	}
	if info, err := os.Stat(s.devices.settings); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the settings have %v, %v", info, err)
	}
	status, text := b.send(web.DevicesPath, "", nil)
	if key, _ := s.devices.Key(); status != http.StatusOK || !strings.Contains(text, `data-key="`+key+`"`) || strings.Count(text, "data-mark") != 2 || strings.Contains(text, "/send/") {
		t.Errorf("%d %s", status, text)
	}
	if !strings.Contains(text, "last seen <time") || strings.Contains(text, "signed out") {
		t.Errorf("the devices of this session are not seen: %s", text)
	}
	if bad := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script[^>]*>[^<]|https?://`).FindString(text); bad != "" {
		t.Errorf("the page has %q in it", bad)
	}
	if status, text := b.send(web.DevicesPath, b.origin(), url.Values{"drop": {"chrome-141-on-android"}}); status != http.StatusSeeOther {
		t.Errorf("%d %s", status, text)
	}
	if err := bridge.Add(s.devices.settings, bridge.Config{Name: "ops", Kind: "ntfy", URL: "https://ntfy.example/topic"}); err != nil {
		t.Fatal(err)
	}
	if status, text := b.send(web.DevicesPath, b.origin(), url.Values{"drop": {"ops"}}); status == http.StatusSeeOther {
		t.Errorf("the page dropped what is no device: %s", text)
	}
	if all, err := s.devices.List(); err != nil || len(all) != 1 || all[0].Name != "chrome-141-on-android-2" || all[0].Service != "push.example" {
		t.Errorf("left: %+v, %v", all, err)
	}
}

func TestOnlyTheHostAddsDevices(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	refused := func(what string, status int, text string) {
		t.Helper()
		if status != http.StatusForbidden {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	guest := newSignedIn(t, h.server, h.fae)
	status, text := guest.subscribe(nil)
	refused("a guest", status, text)
	status, text = guest.send(web.DevicesPath, "", nil)
	refused("a guest", status, text)
	host := newSignedIn(t, h.server, h.node.Host())
	status, text = host.send(web.DevicesPath, "http://elsewhere.example", url.Values{"drop": {"x"}})
	refused("another site", status, text)
	status, _, text = h.get(web.DevicesPath, "")
	refused("a token", status, text)
	if _, text := guest.send("/settings", "", nil); strings.Contains(text, web.DevicesPath) {
		t.Error("a guest's pages lead to the devices")
	}
	if _, text := host.send("/settings", "", nil); !strings.Contains(text, web.DevicesPath) {
		t.Error("the host's pages don't lead to the devices")
	}
	if all, err := h.server.devices.List(); err != nil || len(all) > 0 {
		t.Errorf("added: %+v, %v", all, err)
	}
}

func TestSubscriptionIsChecked(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	b := newSignedIn(t, s, node.Host())
	for name, change := range map[string]func(url.Values){
		"an address in the clear":   func(f url.Values) { f.Set("endpoint", "http://push.example/send/1") },
		"no address":                func(f url.Values) { f.Set("endpoint", "") },
		"a file":                    func(f url.Values) { f.Set("endpoint", "file:///etc/passwd") },
		"a user":                    func(f url.Values) { f.Set("endpoint", "https://a:b@push.example/1") },
		"a long address":            func(f url.Values) { f.Set("endpoint", "https://push.example/"+strings.Repeat("a", 2000)) },
		"no point of the curve":     func(f url.Values) { f.Set("p256dh", strings.Repeat("A", 87)) },
		"a short secret":            func(f url.Values) { f.Set("auth", "AAAA") },
		"another origin's address":  func(f url.Values) { f.Set("address", "https://elsewhere.example") },
		"a long address of a node":  func(f url.Values) { f.Set("address", b.origin()+"/"+strings.Repeat("a", 300)) },
		"an address with a query":   func(f url.Values) { f.Set("address", b.origin()+"/?a") },
		"nothing that is to happen": func(f url.Values) { f.Del("endpoint") },
	} {
		if status, text := b.subscribe(change); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if all, err := s.devices.List(); err != nil || len(all) > 0 {
		t.Errorf("added: %+v, %v", all, err)
	}
}

func TestDevicesAreBounded(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	b := newSignedIn(t, s, node.Host())
	for i := range bridge.MaxBridges + 1 {
		status, text := b.subscribe(func(f url.Values) { f.Set("endpoint", fmt.Sprintf("https://push.example/send/%d", i)) })
		if want := map[bool]int{true: http.StatusRequestEntityTooLarge, false: http.StatusSeeOther}[i == bridge.MaxBridges]; status != want {
			t.Fatalf("device %d: %d %s", i, status, text)
		}
	}
}

// TestSignOutEndsDevices: a browser that is signed out is told of nothing more, and everywhere is all of them.
func TestSignOutEndsDevices(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	first, second := newSignedIn(t, s, node.Host()), newSignedIn(t, s, node.Host())
	for i, b := range []signedIn{first, second, second} {
		if status, text := b.subscribe(func(f url.Values) { f.Set("endpoint", fmt.Sprintf("https://push.example/send/%d", i)) }); status != http.StatusSeeOther {
			t.Fatalf("%d %s", status, text)
		}
	}
	left := func() int {
		t.Helper()
		all, err := s.devices.List()
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if status, text := first.send(web.SignOutPath, first.origin(), url.Values{}); status != http.StatusOK || left() != 2 {
		t.Errorf("%d %s, and %d devices are left", status, text, left())
	}
	third := newSignedIn(t, s, node.Host())
	if status, text := third.send(web.SignOutPath, third.origin(), url.Values{"everywhere": {"yes"}}); status != http.StatusOK || left() != 0 {
		t.Errorf("%d %s, and %d devices are left", status, text, left())
	}
}

// TestRevokedSessionEndsItsDevices: who has found a lost phone's session in the list, and revokes it, ends its buttons too.
func TestRevokedSessionEndsItsDevices(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	kept, lost := newSignedIn(t, h.server, h.node.Host()), newSignedIn(t, h.server, h.node.Host())
	for i, b := range []signedIn{kept, lost} {
		if status, text := b.subscribe(func(f url.Values) { f.Set("endpoint", fmt.Sprintf("https://push.example/send/%d", i)) }); status != http.StatusSeeOther {
			t.Fatalf("%d %s", status, text)
		}
	}
	v := tokenClient{t, h.server}
	left := func() string {
		t.Helper()
		all, err := h.server.devices.List()
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, d := range all {
			names = append(names, d.Name)
		}
		return strings.Join(names, " ")
	}
	if status, text := v.call("revoke_token", makeToken(t, h.fae, "admin"), fmt.Sprintf(`{"token":%q}`, lost.in.ID)); status == http.StatusOK || left() != "chrome-141-on-android chrome-141-on-android-2" {
		t.Errorf("another agent ends the session: %d %s, left %s", status, text, left())
	}
	if status, text := v.call("revoke_token", h.token, fmt.Sprintf(`{"token":%q}`, lost.in.ID)); status != http.StatusOK || left() != "chrome-141-on-android" {
		t.Errorf("%d %s, left %s", status, text, left())
	}
}

// TestPairedDeviceEndsWithThePageThatPairedIt checks a device of a session that another session has made.
func TestPairedDeviceEndsWithThePageThatPairedIt(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	page := newSignedIn(t, s, node.Host())
	_, text := page.send(web.DevicesPath, "http://192.0.2.1:7420", url.Values{"pair": {"yes"}})
	_, code, _ := strings.Cut(shownLink.FindString(text), "code=")
	code, _, _ = strings.Cut(code, "<")
	cookie := tokenClient{t, s}.signIn(code)
	if cookie == nil {
		t.Fatalf("the page has no link: %s", text)
	}
	phone := signedIn{t: t, server: s, in: actors.Session{Token: actors.Token{Token: view.Token{Text: cookie.Value}}, Key: strings.TrimPrefix(cookie.Path, web.SessionsPath)}}
	if status, text := phone.subscribe(nil); status != http.StatusSeeOther {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := page.send(web.SignOutPath, page.origin(), url.Values{}); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if all, err := s.devices.List(); err != nil || len(all) > 0 {
		t.Errorf("left: %+v, %v", all, err)
	}
}
