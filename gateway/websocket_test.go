package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/gateway/api"
	"parley/gateway/web"
	"parley/gateway/ws"
)

func TestWebSocketNeedsAToken(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	address := "ws://" + h.server.Address() + api.WebSocketPath
	own := "http://" + h.server.Address()
	bearer := http.Header{"Authorization": {"Bearer " + h.tokens["fae"]}}
	session, err := h.node.Host().Tokens().MakeSession(t.Context(), "a test")
	if err != nil {
		t.Fatal(err)
	}
	cookie := http.Header{"Cookie": {SessionCookie + "=" + session.Text}}
	with := func(h http.Header, key, value string) http.Header {
		h = h.Clone()
		h.Set(key, value)
		return h
	}
	for name, c := range map[string]struct {
		header    http.Header
		protocols []string
		status    int
		protocol  string
		key       string
	}{
		"nobody":                         {nil, nil, 401, "", ""},
		"a token":                        {bearer, nil, 101, "", ""},
		"a token as protocol":            {nil, []string{ws.BearerProtocol + h.tokens["fae"]}, 101, ws.BearerProtocol + h.tokens["fae"], ""},
		"a token as one of protocols":    {nil, []string{"chat", ws.BearerProtocol + h.tokens["fae"]}, 101, ws.BearerProtocol + h.tokens["fae"], ""},
		"a token not to be told again":   {nil, []string{ws.BearerProtocol + h.tokens["fae"], "parley"}, 101, "parley", ""},
		"no good token as protocol":      {nil, []string{ws.BearerProtocol + "x"}, 401, "", ""},
		"a session":                      {cookie, nil, 101, "", session.Key},
		"a session of our page":          {with(cookie, "Origin", own), nil, 101, "", session.Key},
		"a session of another page":      {with(cookie, "Origin", "http://evil.example"), nil, 403, "", session.Key},
		"a session of another port":      {with(cookie, "Origin", "http://127.0.0.1:1"), nil, 403, "", session.Key},
		"a session of no page":           {with(cookie, "Origin", "null"), nil, 403, "", session.Key},
		"a session without its key":      {cookie, nil, 401, "", ""},
		"a session with another key":     {cookie, nil, 401, "", "-" + session.Key[1:]},
		"a session as a token":           {http.Header{"Authorization": {"Bearer " + session.Text}}, nil, 401, "", session.Key},
		"a session as protocol":          {nil, []string{ws.BearerProtocol + session.Text}, 401, "", session.Key},
		"a token as a session":           {http.Header{"Cookie": {SessionCookie + "=" + h.tokens["host"]}}, nil, 401, "", session.Key},
		"a token of another page":        {with(bearer, "Origin", "http://evil.example"), nil, 403, "", ""},
		"a token by another server name": {with(bearer, "Host", "evil.example"), nil, 421, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := address
			if c.key != "" {
				at = strings.Replace(address, api.WebSocketPath, web.SessionsPath+c.key+api.WebSocketPath, 1)
			}
			conn, r, err := websocket.Dial(t.Context(), at, &websocket.DialOptions{HTTPHeader: c.header, Host: c.header.Get("Host"), Subprotocols: c.protocols})
			if r == nil || r.StatusCode != c.status {
				t.Fatalf("got %v %v, want %d", r, err, c.status)
			}
			if conn == nil {
				return
			}
			defer conn.CloseNow()
			if conn.Subprotocol() != c.protocol {
				t.Errorf("the protocol is %q, want %q", conn.Subprotocol(), c.protocol)
			}
		})
	}
	r, err := http.DefaultClient.Do(&http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: h.server.Address(), Path: api.WebSocketPath}, Header: bearer})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("without an upgrade: %d", r.StatusCode)
	}
}

func TestScopesHoldOnWebSocket(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	h.tokens["fae"] = makeToken(t, fae, "read")
	k := h.dial("fae")
	for _, f := range []string{
		`{"type":"ask_request","id":"1","payload":{"prompt":"?"}}`,
		`{"type":"subscribe","runId":"1"}`,
	} {
		k.send(f)
		want(t, k.receive(), "NOT_PERMITTED")
	}
	k.send(`{"type":"follow_messages","subscriptionId":"s","as":"HOST"}`)
	want(t, k.receive(), "NOT_PERMITTED", `"subscriptionId":"s"`)
}

func TestRevokedTokenEndsTheSession(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.close()
	h.open(func(s *Server) { s.ws.KeepAlive = 20 * time.Millisecond })
	fae := h.guest("fae")
	k, idle := h.dial("fae"), h.dial("fae")
	made, err := fae.Tokens().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fae.Tokens().Revoke(t.Context(), made[0].ID); err != nil {
		t.Fatal(err)
	}
	if got := idle.closeStatus(); got != websocket.StatusPolicyViolation {
		t.Errorf("an idle one: %v", got)
	}
	_ = k.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"list_names_request"}`)) // it may be cut already
	if got := k.closeStatus(); got != websocket.StatusPolicyViolation {
		t.Errorf("got %v", got)
	}
}
