package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/actors"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/web"
)

// tokenClient calls the public handler with a token.
type tokenClient struct {
	t *testing.T
	s *Server
}

// call calls an operation and returns the status and the body.
func (v tokenClient) call(operation, token, body string, more ...string) (int, string) {
	v.t.Helper()
	r := httptest.NewRequestWithContext(v.t.Context(), http.MethodPost, "http://127.0.0.1:7420/rpc/"+operation, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	w := httptest.NewRecorder()
	v.s.servePublic(w, r)
	return w.Code, w.Body.String()
}

func makeToken(t *testing.T, a *actors.Agent, scopes ...string) string {
	t.Helper()
	made, err := a.Tokens().Make(t.Context(), actors.NewToken{Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return made.Text
}

func TestOtherOriginsAndHostNamesAreRefused(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	v := tokenClient{t, s}
	all := makeToken(t, node.Host(), "read")
	if status, body := v.call("list_names", all, `{}`, "Sec-Fetch-Site", "cross-site"); status != 403 {
		t.Errorf("from another site: %d %s", status, body)
	}
	if status, body := v.call("list_names", all, `{}`, "Origin", "http://evil.example"); status != 403 {
		t.Errorf("from another origin: %d %s", status, body)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://evil.example/rpc/list_names", strings.NewReader(`{}`))
	r.Header.Set("Authorization", "Bearer "+all)
	w := httptest.NewRecorder()
	s.servePublic(w, r)
	if w.Code != http.StatusMisdirectedRequest {
		t.Errorf("by another name: %d %s", w.Code, w.Body)
	}
}

func TestLinkSignsInOnce(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	code, err := s.backend.NewLink(node.Host())
	if err != nil {
		t.Fatal(err)
	}
	do := func(method, url string, cookies ...*http.Cookie) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), method, url, nil)
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		s.servePublic(w, r)
		return w.Result()
	}
	link := "http://localhost:7420/sign-in?code=" + code
	shown := do(http.MethodGet, link) // which does not use it up
	if page, err := io.ReadAll(shown.Body); shown.StatusCode != 200 || err != nil || !strings.Contains(string(page), "This browser will act as the host of this node.") {
		t.Fatalf("a look at the link: %d, %v: %s", shown.StatusCode, err, page)
	}
	fae, err := node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "f<e"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.backend.NewLink(fae)
	if err != nil {
		t.Fatal(err)
	}
	if page, err := io.ReadAll(do(http.MethodGet, "http://localhost:7420/sign-in?code="+other).Body); err != nil || !strings.Contains(string(page), "This browser will act as f&lt;e.") {
		t.Errorf("a look at the link of a guest: %v: %s", err, page)
	}
	if page, err := io.ReadAll(do(http.MethodGet, link+"x").Body); err != nil || strings.Contains(string(page), "will act as") {
		t.Errorf("a look at no link: %v: %s", err, page)
	}
	in := do(http.MethodPost, link)
	if in.StatusCode != http.StatusSeeOther || len(in.Cookies()) != 1 {
		t.Fatalf("%d, %v", in.StatusCode, in.Cookies())
	}
	session := in.Cookies()[0]
	if in.Header.Get("Location") != session.Path+"/" || !strings.HasPrefix(session.Path, web.SessionsPath) {
		t.Errorf("it leads to %s, and the cookie is for %s", in.Header.Get("Location"), session.Path)
	}
	if !session.HttpOnly || session.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v", session)
	}
	if again := do(http.MethodPost, link); again.StatusCode != http.StatusUnauthorized {
		t.Errorf("the link is good again: %d", again.StatusCode)
	}
	for path, want := range map[string]int{
		session.Path + "/rpc/status": 200, "/rpc/status": 401, session.Path[:len(session.Path)-2] + "11/rpc/status": 401, // no key has that digit
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost:7420"+path, strings.NewReader(`{}`))
		r.AddCookie(session)
		w := httptest.NewRecorder()
		s.servePublic(w, r)
		if w.Code != want {
			t.Errorf("with the session at %s: %d %s", path, w.Code, w.Body)
		}
	}
}

// openServer opens a node and its server, as they are without anybody to call.
func openServer(t *testing.T) (*actors.Node, *Server) {
	t.Helper()
	_, s := serveLimited(t, api.Limits{})
	return s.node, s
}

// TestTokenOnTheSocketActsForItsAgent calls on the node's own socket with tokens. Without one the caller is the host there.
func TestTokenOnTheSocketActsForItsAgent(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	fae, err := node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	call := func(method, path, header, value string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://parley"+path, strings.NewReader(`{"name":"@self"}`))
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	read := makeToken(t, fae, "read")
	if status, body := call(http.MethodPost, "/rpc/locate", "Authorization", "Bearer "+read); status != 200 || !strings.Contains(body, fae.ID().ULID.String()) {
		t.Errorf("with fae's token: %d %s", status, body)
	}
	if status, body := call(http.MethodPost, "/rpc/locate", "Accept", "*/*"); status != 200 || !strings.Contains(body, node.Host().ID().ULID.String()) {
		t.Errorf("without a token: %d %s", status, body)
	}
	for _, value := range []string{"Bearer ply_none", "Bearer ", "Basic aG9zdDo=", "Bearer " + read + "x"} {
		if status, body := call(http.MethodPost, "/rpc/locate", "Authorization", value); status != 401 || !strings.Contains(body, "UNAUTHENTICATED") {
			t.Errorf("with %q: %d %s", value, status, body)
		}
	}
	for _, path := range []string{"/rpc/store_name", "/rpc/backup", TreePath, api.HoldPath} {
		if status, body := call(http.MethodPost, path, "Authorization", "Bearer "+read); status < 400 {
			t.Errorf("%s with a token that reads: %d %s", path, status, body)
		}
	}
}
