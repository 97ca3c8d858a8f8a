package gateway

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"parley"
	"parley/gateway/api"
	"parley/gateway/web"
)

// anonymousClient is a client without credentials.
type anonymousClient struct {
	t      *testing.T
	url    string
	client *http.Client
}

func newAnonymousClient(t *testing.T, s *Server) anonymousClient {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return anonymousClient{t, "http://" + s.Address(), &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (v anonymousClient) ask(method, path, accept, body string) (*http.Response, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.url, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	path, r.URL.RawQuery, _ = strings.Cut(path, "?")
	if r.URL.Path = path; path == "*" { // as it is sent
		r.URL.Path, r.URL.Opaque = "", "*"
	}
	r.Header.Set("Accept", accept)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := v.client.Do(r)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp, string(text)
}

// everyPath returns all paths that the server serves, and some that it does not.
func everyPath(s *Server) []string {
	paths := []string{
		"/", "/questions", "/agents", web.AgentsPath + "HOST", web.FormsPath + "0", web.EventsPath, web.EventsPath + "?cursor=0", web.DevicesPath, web.ManifestPath, web.ElementsPath, web.ElementTypesPath,
		api.WebSocketPath, api.OpenAPIPath, metricsPath, api.CallPath, api.CallPath + backupName, api.CallPath + "fly", "*",
		"/healthz/", "/rpc/../healthz", "//healthz", "/sign-in/", "/sign-in/../", "/sign-in/style", "/favicon.ico", "/debug/pprof/", "/elsewhere",
	}
	for name := range s.backend.Operations() {
		paths = append(paths, api.CallPath+name)
	}
	for name := range s.site.Assets.Files {
		paths = append(paths, s.site.Assets.URL(name))
	}
	return paths
}

func TestNoPathAnswersAnonymousClient(t *testing.T) {
	t.Parallel()
	_, s := openServer(t)
	v := newAnonymousClient(t, s)
	for _, path := range everyPath(s) {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
			for _, accept := range []string{"*/*", "text/html"} {
				resp, body := v.ask(method, path, accept, "")
				if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
					t.Errorf("%s %s: %d %.200s", method, path, resp.StatusCode, body)
				}
				if len(resp.Cookies()) > 0 || len(body) > 4<<10 {
					t.Errorf("%s %s: cookies %v, %d bytes", method, path, resp.Cookies(), len(body))
				}
			}
		}
	}
	if resp, body := v.ask("GET", "/healthz", "*/*", ""); resp.StatusCode != 200 || body != "ok\n" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	for _, query := range []string{"", "?style", "?code=x"} { // whatever is asked of it, it is the one page
		if resp, body := v.ask("GET", web.SignInPath+query, "*/*", ""); resp.StatusCode != 200 || !strings.Contains(body, "<title>Parley: sign in</title>") {
			t.Errorf("%s: %d %s", query, resp.StatusCode, body)
		}
	}
	if resp, _ := v.ask("DELETE", web.SignInPath, "*/*", ""); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
}

// ownStyle is the one style in a page, which nothing but its hash lets in.
var ownStyle = regexp.MustCompile(`(?s)<style>(.*)</style>`)

// ownScript is the one script in a page, likewise.
var ownScript = regexp.MustCompile(`(?s)<script>(.*)</script>`)

func TestSignInPageIsSelfContained(t *testing.T) {
	t.Parallel()
	_, s := openServer(t)
	v := newAnonymousClient(t, s)
	for _, path := range []string{web.SignInPath + "?code=x", "/"} {
		resp, body := v.ask("GET", path, "text/html", "")
		style := ownStyle.FindStringSubmatch(body)
		if style == nil {
			t.Fatalf("%s has no style: %s", path, body)
		}
		sum := sha256.Sum256([]byte(style[1]))
		policy, hash := resp.Header.Get("Content-Security-Policy"), base64.StdEncoding.EncodeToString(sum[:])
		if !strings.Contains(policy, "style-src 'sha256-"+hash+"';") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "'self' ") {
			t.Errorf("%s has the policy %s, and its style the hash %s", path, policy, hash)
		}
		if script := ownScript.FindStringSubmatch(body); (script != nil) != (path == "/") ||
			script != nil && !strings.Contains(policy, "script-src '"+web.PolicyHash(script[1])+"';") {
			t.Errorf("%s has the policy %s, and the script %q", path, policy, script)
		}
		if strings.Contains(body, "<link") || strings.Contains(body, "src=") {
			t.Errorf("%s needs more than itself: %s", path, body)
		}
	}
}

func TestInvalidLinkExplainsWhatToDo(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	v := newAnonymousClient(t, s)
	code, err := s.backend.NewLink(node.Host())
	if err != nil {
		t.Fatal(err)
	}
	used := url.Values{"code": {code}}.Encode()
	if resp, body := v.ask("POST", web.SignInPath, "text/html", used); resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	for name, body := range map[string]string{"used": used, "unknown": "code=x", "none": "", "too long": "code=" + strings.Repeat("x", 1<<20)} {
		resp, page := v.ask("POST", web.SignInPath, "text/html,application/xhtml+xml", body)
		if resp.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") ||
			!strings.Contains(page, "<code>parley open</code>") || !strings.Contains(page, "This link has expired") {
			t.Errorf("%s, to a person: %d %v %s", name, resp.StatusCode, resp.Header, page)
		}
		resp, text := v.ask("POST", web.SignInPath, "*/*", body)
		var f api.Failure
		if err := json.Unmarshal([]byte(text), &f); err != nil || resp.StatusCode != http.StatusUnauthorized || f.Error.Code != parley.Unauthenticated || f.Error.Hint == "" {
			t.Errorf("%s, to a program: %d %s %v", name, resp.StatusCode, text, err)
		}
		if len(resp.Cookies()) > 0 {
			t.Errorf("%s signs in: %v", name, resp.Cookies())
		}
	}
}
