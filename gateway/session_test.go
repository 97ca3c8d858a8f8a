package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/backend"
	"parley/gateway/web"
	"parley/internal/eventually"
)

func TestSignInLinksAreLimitedPerAgent(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	for range backend.MaxLinks {
		if _, err := h.server.backend.NewLink(fae); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.server.backend.NewLink(fae); parley.CodeOf(err) != parley.RateLimited {
		t.Errorf("one more: %v", err)
	}
	if _, err := h.server.backend.NewLink(h.node.Host()); err != nil {
		t.Errorf("the host's: %v", err)
	}
	v := tokenClient{t, h.server}
	for i := range backend.MaxLinks + 1 { // nor can one of the host's tokens use up what the host has
		status, body := v.call("open_link", h.tokens["host"], `{}`)
		if want := map[bool]int{true: 429, false: 200}[i == backend.MaxLinks]; status != want {
			t.Fatalf("link %d by a token: %d %s", i, status, body)
		}
	}
	if _, err := h.server.backend.NewLink(h.node.Host()); err != nil {
		t.Errorf("the host's: %v", err)
	}
}

// signIn uses a link, or what was pasted of it, as a browser does, and returns the session's cookie.
func (v tokenClient) signIn(code string) *http.Cookie {
	v.t.Helper()
	r := httptest.NewRequestWithContext(v.t.Context(), http.MethodPost, "http://127.0.0.1:7420"+web.SignInPath+"?code="+url.QueryEscape(code), nil)
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36")
	w := httptest.NewRecorder()
	v.s.servePublic(w, r)
	if got := w.Result().Cookies(); w.Code == http.StatusSeeOther && len(got) == 1 {
		return got[0]
	}
	return nil
}

// statusOf returns the status of a call with a session.
func (v tokenClient) statusOf(session *http.Cookie, operation string) int {
	v.t.Helper()
	r := httptest.NewRequestWithContext(v.t.Context(), http.MethodPost, "http://127.0.0.1:7420"+session.Path+api.CallPath+operation, strings.NewReader(`{}`))
	r.AddCookie(session)
	w := httptest.NewRecorder()
	v.s.servePublic(w, r)
	return w.Code
}

// TestPastedLinkSignsIn: an installed page has no address bar.
func TestPastedLinkSignsIn(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	v := tokenClient{t, s}
	if resp, body := newAnonymousClient(t, s).ask("GET", "/questions", "text/html", ""); resp.StatusCode != http.StatusUnauthorized || !strings.Contains(body, `<input name="code"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for _, pasted := range []string{"%s", " %s\n", "https://node.example/sign-in?code=%s"} {
		code, err := s.backend.NewLink(node.Host())
		if err != nil {
			t.Fatal(err)
		}
		if v.signIn(fmt.Sprintf(pasted, code)) == nil {
			t.Errorf("%q does not sign in", pasted)
		}
	}
	if v.signIn("https://node.example/sign-in?code=") != nil {
		t.Error("a link without a code signs in")
	}
}

func TestLinkFromTokenHasItsScopes(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	host := h.node.Host()
	made, err := host.Tokens().Make(t.Context(), actors.NewToken{Scopes: []string{"read", "admin"}})
	if err != nil {
		t.Fatal(err)
	}
	agent, _, err := h.node.Credentials().Authenticate(t.Context(), made.Text)
	if err != nil {
		t.Fatal(err)
	}
	v := tokenClient{t, h.server}
	code := func() string {
		c, err := h.server.backend.NewLink(agent)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	session, unused := v.signIn(code()), code()
	if got := []int{v.statusOf(session, "list_names"), v.statusOf(session, "send")}; got[0] != 200 || got[1] != 403 {
		t.Errorf("it may read and send: %v", got)
	}
	all, err := host.Tokens().List(t.Context())
	if err != nil || !all[len(all)-1].Session || all[len(all)-1].Note != "Chrome 131 on Linux" {
		t.Errorf("listed: %+v %v", all, err)
	}
	if err := host.Tokens().Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if got := v.statusOf(session, "list_names"); got != 401 {
		t.Errorf("the session outlives the token: %d", got)
	}
	if got := v.signIn(unused); got != nil {
		t.Errorf("the link outlives the token: %v", got)
	}
}

// TestTokenEndEndsWaits: what a call would have told is not told by a token that was revoked while it waited.
func TestTokenEndEndsWaits(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	asked, err := fae.Ask(t.Context(), parley.Form{To: "HOST", Description: "?", Fields: []events.Field{{Name: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	parent, err := h.node.Host().Tokens().Make(t.Context(), actors.NewToken{Scopes: []string{"read", "admin"}})
	if err != nil {
		t.Fatal(err)
	}
	status, body := tokenClient{t, h.server}.call("create_token", parent.Text, `{"as":"fae","scopes":["read"]}`)
	_, rest, _ := strings.Cut(body, `"token":"`)
	child, _, _ := strings.Cut(rest, `"`)
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	h.tokens["child"] = child
	ws := h.dial("child")
	type response struct {
		status int
		body   string
	}
	responses := make(chan response, 1)
	go func() {
		s, b := tokenClient{t, h.server}.call("await", child, `{"id":"`+asked.Form.String()+`"}`)
		responses <- response{s, b}
	}()
	stream := make(chan error, 1)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.server.Address()+web.EventsPath+"?cursor=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+child)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	go func() {
		_, err := io.Copy(io.Discard, resp.Body)
		stream <- err
	}()
	eventually.Holds(t, "all three uses are open", func() bool { return h.server.backend.InUse() == 3 })
	began := time.Now()
	if err := h.node.Host().Tokens().Revoke(t.Context(), parent.ID); err != nil { // of which it is a child, in another mailbox
		t.Fatal(err)
	}
	got := <-responses
	if got.status != 401 || !strings.Contains(got.body, "UNAUTHENTICATED") {
		t.Errorf("the call that waits: %d %s", got.status, got.body)
	}
	if err := <-stream; err != nil {
		t.Errorf("the stream: %v", err)
	}
	_ = ws.closeStatus()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
}
