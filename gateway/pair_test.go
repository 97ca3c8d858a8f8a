package gateway

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"parley"
	"parley/gateway/web"
)

func TestPairingLinkIsOfAnAddressThatOthersReach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ link, address, want string }{
		{"http://127.0.0.1:7420/sign-in?code=A", "", ""},
		{"http://[::1]:7420/sign-in?code=A", "", ""},
		{"http://localhost:7420/sign-in?code=A", "", ""},
		{"http://node.localhost:7420/sign-in?code=A", "", ""},
		{"https://192.0.2.1:7420/sign-in?code=A", "", "https://192.0.2.1:7420/sign-in?code=A"},
		{"http://127.0.0.1:7420/sign-in?code=A", "https://node.example", "https://node.example/sign-in?code=A"},
		{"http://127.0.0.1:7420/sign-in?code=A", "https://node.example:8/parley/", "https://node.example:8/parley/sign-in?code=A"},
		{"http://127.0.0.1:7420/sign-in?code=A", "https://127.0.0.2", ""},
		{"http://127.0.0.1:7420/sign-in?code=A", "node.example", ""},
		{"http://127.0.0.1:7420/sign-in?code=A", "file:///etc/passwd", ""},
		{"http://127.0.0.1:7420/sign-in?code=A", "https://a:b@node.example", ""},
		{"http://127.0.0.1:7420/sign-in?code=A", "https://node.example/?x", ""},
	} {
		got, err := PairingLink(c.link, c.address)
		if got != c.want || (err == nil) != (c.want != "") || err != nil && parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%s at %q: %s, %v; want %q", c.link, c.address, got, err, c.want)
		}
	}
	near := ownAddress(true)
	got, err := PairingLink("https://0.0.0.0:7420/sign-in?code=A", "")
	if near == nil && parley.CodeOf(err) != parley.InvalidArgument || near != nil && got != "https://"+near.String()+":7420/sign-in?code=A" {
		t.Errorf("of all addresses, %v: %s, %v", near, got, err)
	}
	if near != nil && (near.IsLoopback() || near.IsUnspecified() || near.IsLinkLocalUnicast()) {
		t.Errorf("the machine is at %v", near)
	}
}

var shownLink = regexp.MustCompile(`<p id="pair-link"><code>([^<]*)</code>`)

func TestPairedDeviceIsListedAndRevocable(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	b := newSignedIn(t, s, node.Host())
	if status, text := b.send(web.DevicesPath, b.origin(), url.Values{"pair": {"yes"}, "address": {b.origin()}}); status != http.StatusBadRequest || !strings.Contains(text, "Parley listens on this computer only (127.0.0.1)") {
		t.Errorf("a page of this machine alone: %d %s", status, text)
	}
	const origin = "http://192.0.2.1:7420"
	if status, text := b.send(web.DevicesPath, origin, url.Values{"pair": {"yes"}, "address": {"http://192.0.2.2:7420"}}); status != http.StatusBadRequest {
		t.Errorf("another address than the page's: %d %s", status, text)
	}
	status, text := b.send(web.DevicesPath, origin, url.Values{"pair": {"yes"}})
	found := shownLink.FindStringSubmatch(text)
	if status != http.StatusOK || found == nil || !strings.Contains(text, `src="data:image/png;base64,`) {
		t.Fatalf("%d %s", status, text)
	}
	link, err := url.Parse(html.UnescapeString(found[1]))
	if err != nil || link.Host != "192.0.2.1:7420" || link.Path != web.SignInPath {
		t.Fatalf("the link is %v, %v", link, err)
	}
	v := tokenClient{t, s}
	phone := v.signIn(link.Query().Get("code"))
	if phone == nil || v.statusOf(phone, "list_names") != http.StatusOK {
		t.Fatal("the link does not sign in")
	}
	if again := v.signIn(link.Query().Get("code")); again != nil {
		t.Error("the link signs in again")
	}
	all, err := node.Host().Tokens().List(t.Context())
	if err != nil || len(all) != 2 || !all[1].Session || all[1].Note != "Chrome 131 on Linux" {
		t.Fatalf("listed: %+v, %v", all, err)
	}
	if err := node.Host().Tokens().Revoke(t.Context(), all[1].ID); err != nil {
		t.Fatal(err)
	}
	if got := v.statusOf(phone, "list_names"); got != http.StatusUnauthorized {
		t.Errorf("after it was revoked: %d", got)
	}
	_, text = b.send(web.DevicesPath, origin, url.Values{"pair": {"yes"}})
	if link, err = url.Parse(html.UnescapeString(shownLink.FindStringSubmatch(text)[1])); err != nil {
		t.Fatal(err)
	}
	if phone = v.signIn(link.Query().Get("code")); phone == nil {
		t.Fatal("another link does not sign in")
	}
	if err := node.Host().Tokens().Revoke(t.Context(), b.in.ID); err != nil {
		t.Fatal(err)
	}
	if got := v.statusOf(phone, "list_names"); got != http.StatusUnauthorized {
		t.Errorf("after the session of the page has ended: %d", got)
	}
}
