package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/actors"
	"parley/gateway/api"
	"parley/internal/eventually"
)

// bearer adds a token to each request.
type bearer string

func (c bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(c))
	return http.DefaultTransport.RoundTrip(r)
}

// tools connects the official client with a token.
func (h *testServer) tools(token, version string) (*sdk.ClientSession, error) {
	h.t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(h.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http://" + h.server.Address() + toolsPath, HTTPClient: &http.Client{Transport: bearer(token)},
	}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		h.t.Cleanup(func() { _ = session.Close() }) // the server may have ended it
	}
	return session, err
}

// useTool calls a tool and returns its text.
func useTool(t *testing.T, s *sdk.ClientSession, name string, arguments any) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := r.Content[0].(*sdk.TextContent)
	structured, err := json.Marshal(r.StructuredContent)
	if err != nil || len(structured) < 3 {
		t.Errorf("%s has structured content %s, %v", name, structured, err)
	}
	return text.Text
}

func TestToolsNeedAToken(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	post := func(change func(*http.Request)) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.server.Address()+toolsPath,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		change(r)
		got, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		return got.StatusCode, string(text)
	}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	deep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	for _, x := range []struct {
		name   string
		status int
		change func(*http.Request)
	}{
		{"fine", 200, bearer(h.tokens["fae"])},
		{"no token", 401, func(*http.Request) {}},
		{"a wrong token", 401, bearer(h.tokens["fae"] + "x")},
		{"a browser's session", 401, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: SessionCookie, Value: h.tokens["fae"]}) }},
		{"another site", 403, func(r *http.Request) {
			bearer(h.tokens["fae"])(r)
			r.Header.Set("Origin", "https://elsewhere.example")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}},
		{"another name", 421, func(r *http.Request) {
			bearer(h.tokens["fae"])(r)
			r.Host = "elsewhere.example"
		}},
		{"too deep", 413, func(r *http.Request) {
			bearer(h.tokens["fae"])(r)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(deep)), int64(len(deep))
		}},
		{"too large", 413, func(r *http.Request) {
			bearer(h.tokens["fae"])(r)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", api.MaxBody+1))), api.MaxBody+1
		}},
	} {
		if status, text := post(x.change); status != x.status {
			t.Errorf("%s: %d %s", x.name, status, text)
		}
	}
	made, err := fae.Tokens().Make(t.Context(), actors.NewToken{Scopes: []string{"read"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.tools(made.Text, "2025-06-18")
	if err != nil {
		t.Fatal(err)
	}
	if status, text := post(func(r *http.Request) {
		bearer(makeToken(t, h.guest("bob"), "read"))(r)
		r.Header.Set("Mcp-Session-Id", s.ID())
	}); status != 403 {
		t.Errorf("another's session: %d %s", status, text)
	}
	if got := useTool(t, s, "list_inbox", nil); strings.Contains(got, "error") {
		t.Error(got)
	}
	if err := fae.Tokens().Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_inbox"}); err == nil {
		t.Errorf("the token was revoked: %v", r)
	}
}

// TestUnauthenticatedHasChallenge sends requests without a token, and with bad ones. OAuth's metadata do not exist.
func TestUnauthenticatedHasChallenge(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	for _, x := range []struct {
		path, authorization string
		status              int
		challenge           string
	}{
		{toolsPath, "", 401, `Bearer realm="parley"`},
		{toolsPath, "Basic eDp5", 401, `Bearer realm="parley"`},
		{toolsPath, "Bearer x", 401, `Bearer realm="parley", error="invalid_token", error_description="the token is not good"`},
		{"/", "", 401, `Bearer realm="parley"`},
		{"/.well-known/oauth-protected-resource/mcp", "", 404, ""},
		{"/.well-known/oauth-authorization-server", "", 404, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.server.Address()+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", x.authorization)
		got, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		if got.StatusCode != x.status || got.Header.Get("WWW-Authenticate") != x.challenge {
			t.Errorf("%s %q: %d %q", x.path, x.authorization, got.StatusCode, got.Header.Get("WWW-Authenticate"))
		}
	}
}

func TestToolSessionsAreLimitedPerAgent(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	h.guest("bob")
	connect := func(agent string) *sdk.ClientSession {
		s, err := h.tools(h.tokens[agent], "2025-06-18")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	bob := connect("bob")
	first := connect("fae")
	var last *sdk.ClientSession
	for range 16 {
		last = connect("fae")
	}
	eventually.Holds(t, "the first session is ended", func() bool {
		_, err := first.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_inbox"})
		return err != nil
	})
	for name, s := range map[string]*sdk.ClientSession{"bob's": bob, "the last": last} {
		if got := useTool(t, s, "list_inbox", nil); strings.Contains(got, "error") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestElicitationNeedsScopeAnswer(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{}}}).
		Connect(t.Context(), &sdk.StreamableClientTransport{
			Endpoint: "http://" + h.server.Address() + toolsPath, HTTPClient: &http.Client{Transport: bearer(makeToken(t, fae, "read", "ask"))},
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close() //nolint:errcheck // the test is over
	got := useTool(t, session, "ask_user", map[string]any{"message": "x", "recipient": "@me", "fields": []any{map[string]any{"name": "a"}}})
	if !strings.Contains(got, `"pending"`) || !strings.Contains(got, "as=fae") {
		t.Error(got)
	}
}
