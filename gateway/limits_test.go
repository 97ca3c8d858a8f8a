package gateway

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/backend"
	"parley/gateway/client"
	"parley/gateway/web"
	"parley/gateway/ws"
	"parley/internal/eventually"
)

func TestMissingBodiesHoldNoPlaces(t *testing.T) {
	c, s := serveLimited(t, nil)
	for range 1100 {
		conn, err := client.Dial(t.Context(), s.socketPath)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprint(conn, "POST /rpc/send HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	}
	eventually.Holds(t, "all bodies are under way", func() bool { return s.now(api.KindBodies) == 1100 })
	if n := s.now(api.KindCalls); n != 0 {
		t.Errorf("%d calls are under way", n)
	}
	if err := c.Call(t.Context(), "status", api.NodeRequest{}, nil); err != nil {
		t.Errorf("the host is locked out: %v", err)
	}
	large := api.SendRequest{Recipient: "HOST", Post: parley.Post{Text: strings.Repeat("x", 100<<10)}}
	if err := c.Call(t.Context(), "send", large, nil); err != nil {
		t.Errorf("a large request of the host is locked out: %v", err)
	}
}

// sendIncomplete sends a request over TCP without the end of its body.
func (h *testServer) sendIncomplete(agent string) *http.Response {
	h.t.Helper()
	conn, err := net.Dial("tcp", h.server.Address())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "POST /rpc/send HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", h.tokens[agent])
	return nil
}

func TestBodiesOfOneAgentBlockNoOther(t *testing.T) {
	h := openTestServer(t)
	h.guest("fae")
	h.guest("bob")
	bodies := h.server.guests(api.KindBodies).Each
	for range 2 * bodies {
		h.sendIncomplete("fae")
	}
	eventually.Holds(t, "its bodies are under way and the others are refused", func() bool {
		return h.server.now(api.KindBodies) == bodies && h.server.guests(api.KindBodies).Refused == uint64(bodies)
	})
	for agent, want := range map[string]int{"fae": 429, "bob": 200, "host": 200} {
		if status, body := h.post("list_names", "Bearer "+h.tokens[agent], `{}`); status != want {
			t.Errorf("%s: %d %s", agent, status, body)
		}
	}
}

func TestLateBodyIsCutOff(t *testing.T) {
	h := openTestServer(t)
	h.close()
	h.open(func(s *Server) { s.bodies.Within = 300 * time.Millisecond })
	h.guest("fae")
	for network, address := range map[string]string{"tcp": h.server.Address(), "unix": h.server.socketPath} {
		conn, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /rpc/send HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n", h.tokens["fae"])
		stop := make(chan struct{})
		go func() { // single bytes do not extend the time
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
					_, _ = conn.Write([]byte(" "))
				}
			}
		}()
		_ = conn.SetReadDeadline(time.Now().Add(eventually.Patience))
		text, err := io.ReadAll(conn)
		close(stop)
		if err != nil && !strings.Contains(err.Error(), "reset") || !strings.Contains(string(text), "did not come within") {
			t.Errorf("%s: %q %v", network, text, err)
		}
		_ = conn.Close()
	}
	eventually.Holds(t, "no body is under way", func() bool { return h.server.now(api.KindBodies) == 0 })
}

func TestLateFrameEndsItsConnection(t *testing.T) {
	h := openTestServer(t)
	h.close()
	h.open(func(s *Server) { s.ws.FrameTime = 300 * time.Millisecond })
	h.guest("fae")
	k := h.dial("fae")
	w, err := k.conn.Writer(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 64<<10)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "no connection is left", func() bool { return h.server.now(api.KindWebSockets) == 0 })
	if n := h.server.now(api.KindMemory); n != 0 {
		t.Errorf("%d bytes stay charged", n)
	}
}

// 64 sockets with 256 awaits each use all places of the node.
func TestWaitsOfOneAgentBlockNoOther(t *testing.T) {
	h := openTestServer(t)
	h.guest("fae")
	h.guest("bob")
	first := h.dial("fae")
	first.send(`{"type":"form_request","recipient":"@host","description":"D","fields":[{"name":"a"}]}`)
	form := first.receiveMembers()["form"]
	var refused atomic.Int64
	for range 64 {
		k := h.dial("fae")
		go func() {
			for {
				_, text, err := k.conn.Read(t.Context())
				if err != nil {
					return
				}
				if strings.Contains(string(text), string(parley.QuotaExceeded)) && strings.Contains(string(text), "--limit waits=") {
					refused.Add(1)
				}
			}
		}()
		for i := range ws.MaxWaits {
			k.send(fmt.Sprintf(`{"type":"await_request","requestId":%d,"id":%q}`, i, form))
		}
	}
	each := h.server.guests(api.KindWaits).Each
	eventually.Holds(t, "all others are refused", func() bool { return refused.Load() == 64*ws.MaxWaits-each })
	if n := h.server.now(api.KindWaits); n != each {
		t.Errorf("%d waits, want %d", n, each)
	}
	for agent, status := range map[string]int{"bob": 200, "host": 200} {
		if got, body := h.post("follow_messages", "Bearer "+h.tokens[agent], `{"cursor":1000000,"waitMs":50}`); got != status {
			t.Errorf("%s: %d %s", agent, got, body)
		}
	}
	own, err := client.New(client.Options{Socket: h.server.socketPath})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	wait := int64(50)
	if err := own.Call(t.Context(), "follow_messages", api.FollowMessagesRequest{WaitMs: &wait}, nil); err != nil {
		t.Errorf("the host's socket: %v", err)
	}
	if status, _ := h.post("list_names", "Bearer "+h.tokens["fae"], `{}`); status != 200 {
		t.Errorf("waits hold back calls: %d", status)
	}
}

func TestOpenResourcesOfOneAgentAreBounded(t *testing.T) {
	limits, err := api.ParseLimits("websockets=2,subscriptions=3,streams=1,rate=1000000")
	if err != nil {
		t.Fatal(err)
	}
	h := openTestServer(t)
	h.close()
	h.limits = limits
	h.open(nil)
	h.guest("fae")
	h.guest("bob")
	one, two := h.dial("fae"), h.dial("fae")
	if status := h.upgradeStatus("fae"); status != 429 {
		t.Errorf("a third WebSocket: %d", status)
	}
	for i := range 4 {
		k := []*wsClient{one, two}[i%2]
		k.send(fmt.Sprintf(`{"type":"follow_messages","requestId":%d,"subscriptionId":"s%d"}`, i, i))
		if got := k.receive(); strings.Contains(got, "QUOTA_EXCEEDED") != (i == 3) {
			t.Errorf("subscription %d: %s", i, got)
		}
	}
	one.send(`{"type":"unsubscribe","requestId":"u","subscriptionId":"s0"}`)
	want(t, one.receive(), "unsubscribed")
	two.send(`{"type":"follow_messages","requestId":"again","subscriptionId":"s3"}`)
	want(t, two.receive(), "subscribed")
	k := h.dial("bob")
	k.send(`{"type":"follow_messages","requestId":"b","subscriptionId":"s"}`)
	want(t, k.receive(), "subscribed")
	one.disconnect()
	eventually.Holds(t, "it may connect again", func() bool { return h.upgradeStatus("fae") != 429 })
}

// upgradeStatus requests a WebSocket and returns the status of the response.
func (h *testServer) upgradeStatus(agent string) int {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, "http://"+h.server.Address()+api.WebSocketPath, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + h.tokens[agent], "Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	} {
		r.Header.Set(name, value)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestCallRateIsLimitedPerGuest(t *testing.T) {
	h := openTestServer(t)
	h.close()
	h.limits = api.Limits{api.LimitRate: 5}
	h.open(nil)
	h.guest("fae")
	h.guest("bob")
	k := h.dial("fae")
	refused := 0
	for i := range 50 {
		k.send(fmt.Sprintf(`{"type":"list_names_request","requestId":%d}`, i))
		if got := k.receive(); strings.Contains(got, "RATE_LIMITED") {
			refused++
			want(t, got, fmt.Sprintf(`"requestId":%d`, i))
		}
	}
	if refused < 30 {
		t.Errorf("%d of 50 were refused", refused)
	}
	if status, _ := h.post("list_names", "Bearer "+h.tokens["fae"], `{}`); status != 429 {
		t.Errorf("over HTTP: %d", status)
	}
	for _, agent := range []string{"bob", "host", "host", "host", "host", "host", "host", "host", "host", "host", "host", "host", "host"} {
		if status, body := h.post("list_names", "Bearer "+h.tokens[agent], `{}`); status != 200 {
			t.Errorf("%s: %d %s", agent, status, body)
		}
	}
}

func TestLimitsAreReadAndWritten(t *testing.T) {
	limits, err := api.ParseLimits("waits=10, calls.host=5,,rate=7")
	if err != nil || limits.String() != "calls.host=5,rate=7,waits=10" || limits.Of("waits") != 10 || limits.Of("calls") != 256 {
		t.Errorf("%v %v", limits, err)
	}
	for _, wrong := range []string{"fly=1", "waits", "waits=0", "waits=-1", "waits=x", "waits=99999999999999999999"} {
		if _, err := api.ParseLimits(wrong); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestSilentConnectionsBlockNoClient(t *testing.T) {
	h := openTestServer(t)
	h.close()
	h.limits = api.Limits{api.LimitConnections: 50, api.LimitConnectionsHost: 100}
	h.open(nil)
	h.guest("fae")
	k := h.dial("fae")
	for i := range 500 {
		network, address := "tcp", h.server.Address()
		if i%2 == 0 {
			network, address = "unix", h.server.socketPath
		}
		conn, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		switch i % 6 {
		case 2, 3:
			_, _ = conn.Write([]byte("POST /rpc/send HTTP/1.1\r\nHost: localhost\r\n")) // an unfinished header
		case 4, 5:
			_, _ = fmt.Fprintf(conn, "POST /rpc/send HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 9\r\n\r\n", h.tokens["fae"])
		}
	}
	for range 3 {
		if status, body := h.post("list_names", "Bearer "+h.tokens["fae"], `{}`); status != 200 {
			t.Errorf("over TCP: %d %s", status, body)
		}
		own, err := client.New(client.Options{Socket: h.server.socketPath})
		if err != nil {
			t.Fatal(err)
		}
		var st api.StatusResponse
		if err := own.Call(t.Context(), "status", api.NodeRequest{}, &st); err != nil {
			t.Errorf("over the socket: %v", err)
		}
		for _, l := range st.Limits {
			if l.Name == api.LimitConnections && (l.Now > l.Each || l.Refused == 0) {
				t.Errorf("%+v", l)
			}
		}
		own.Close()
	}
	k.send(`{"type":"list_names_request","requestId":"r"}`)
	want(t, k.receive(), "list_names_response") // connections in use are not closed
}

func TestSignInAttemptsAreLimited(t *testing.T) {
	h := openTestServer(t)
	h.close()
	h.limits = api.Limits{api.LimitSignIns: 3}
	h.open(nil)
	var got []int
	for range 5 {
		resp, err := http.PostForm("http://"+h.server.Address()+web.SignInPath, map[string][]string{"code": {"guess"}})
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		got = append(got, resp.StatusCode)
	}
	if fmt.Sprint(got) != "[401 401 401 429 429]" {
		t.Errorf("got %v", got)
	}
}

// TestNobodySpendsWhatIsForOthers floods the addresses that need no token, as images on a page do. Signing in and the buttons
// of links work all the same.
func TestNobodySpendsWhatIsForOthers(t *testing.T) {
	n, p := openWebhook(t)
	form := n.Approve(`{"command":"ls"}`)
	eventually.Holds(t, "the receiver is told", func() bool { return len(p.Told(form)) == 1 })
	button := p.Told(form)[0].Buttons["Allow once"]
	at, err := url.Parse(button)
	if err != nil {
		t.Fatal(err)
	}
	do := func(method, path, host, body string) (status int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+at.Host+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for i := range 40 {
		do(http.MethodGet, "/answer/x/once", at.Host, "")
		do(http.MethodPost, fmt.Sprintf("/answer/x%d/once", i), at.Host, "")
		do(http.MethodPost, "/answer/x/once", at.Host, "")
		do(http.MethodPost, web.SignInPath, at.Host, "code=guess")
		do(http.MethodGet, at.Path, at.Host, "") // of a preview
	}
	if got := do(http.MethodPost, "/answer/x/once", at.Host, ""); got != http.StatusTooManyRequests {
		t.Errorf("the same link again and again: %d", got)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if got := do(method, at.Path, "evil.example", ""); got != http.StatusMisdirectedRequest {
			t.Errorf("%s at another host's name: %d", method, got)
		}
	}
	code, err := n.server.backend.NewLink(n.node.Host())
	if err != nil {
		t.Fatal(err)
	}
	if got := do(http.MethodPost, web.SignInPath, at.Host, "code="+code); got != http.StatusSeeOther {
		t.Errorf("signing in: %d", got)
	}
	if got := do(http.MethodPost, at.Path, at.Host, ""); got != http.StatusOK {
		t.Errorf("the button: %d", got)
	}
}

func TestGuestLinksLeaveHostLinks(t *testing.T) {
	h := openTestServer(t)
	fae := h.guest("fae")
	for i := range backend.MaxLinks + 1 {
		if _, err := h.server.backend.NewLink(fae); (err != nil) != (i == backend.MaxLinks) {
			t.Fatalf("link %d: %v", i, err)
		}
	}
	if _, err := h.server.backend.NewLink(h.node.Host()); err != nil {
		t.Error(err)
	}
}
