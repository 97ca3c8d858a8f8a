package gateway

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/web"
	"parley/internal/eventually"
)

// requestRecorder passes requests to the public handler and records the responses.
type requestRecorder struct {
	http.Handler
	mu   sync.Mutex
	seen []recordedRequest
}

// recordedRequest is one request and its response.
type recordedRequest struct {
	what    string // method and path
	status  int
	session bool
}

func (p *requestRecorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	recorded := &statusRecorder{ResponseWriter: w}
	p.Handler.ServeHTTP(recorded, r)
	_, err := r.Cookie(SessionCookie)
	p.mu.Lock()
	defer p.mu.Unlock()
	_, path := cutKey(r.URL.Path)
	p.seen = append(p.seen, recordedRequest{r.Method + " " + path, recorded.status, err == nil})
}

// matching returns the recorded requests with a method and path.
func (p *requestRecorder) matching(what string) (found []recordedRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seen {
		if s.what == what {
			found = append(found, s)
		}
	}
	return found
}

// statusRecorder records the status of a response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (n *statusRecorder) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

func (n *statusRecorder) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// hostilePage sends all kinds of requests to the node. It gets the node's address and, unlike real pages, the session's.
const hostilePage = `<!doctype html><title>Elsewhere</title>
<form id="words" method="post" enctype="text/plain" target="first"><input name='{"recipient":"fae","text":"forged","x":"' value='"}'></form>
<form id="answer" method="post" target="second"><input name="do" value="answer"><input name="f0" value="forged"></form>
<iframe name="first"></iframe><iframe name="second"></iframe>
<script>
const node = 'http://' + location.hash.slice(1);
window.tries = {};
const says = (name) => [(r) => { tries[name] = 'answered ' + r.status }, () => { tries[name] = 'failed' }];
const body = JSON.stringify({ recipient: 'fae', text: 'forged' });
fetch(node + '/rpc/send', { method: 'POST', credentials: 'include', mode: 'no-cors', headers: { 'Content-Type': 'text/plain' }, body }).then(...says('simple'));
fetch(node + '/rpc/send', { method: 'POST', credentials: 'include', headers: { 'Content-Type': 'application/json' }, body }).then(...says('asked for'));
fetch(node + '/openapi.json', { credentials: 'include' }).then(...says('read'));
navigator.sendBeacon(node + '/rpc/decline_form', '{"number":0}');
document.getElementById('words').action = node + '/rpc/reply';
document.getElementById('answer').action = node + '/forms/0';
document.getElementById('words').submit();
document.getElementById('answer').submit();
const socket = new WebSocket(node.replace('http', 'ws') + '/ws');
socket.onopen = () => says('socket')[0]({ status: 101 });
socket.onerror = says('socket')[1];
const stream = new EventSource(node + '/events?cursor=0', { withCredentials: true });
stream.onopen = () => says('stream')[0]({ status: 200 });
stream.onerror = () => { tries.stream = 'failed ' + stream.readyState };
const image = document.createElement('img');
image.src = node + '/agents';
</script>`

func TestOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	passed := &requestRecorder{Handler: http.HandlerFunc(h.server.servePublic)}
	inner := httptest.NewServer(passed)
	t.Cleanup(func() { inner.CloseClientConnections(); inner.Close() })
	h.url = inner.URL
	node := strings.TrimPrefix(inner.URL, "http://")
	h.ask(parley.Form{Fields: []events.Field{{Name: "a"}}})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(hostilePage)) // the client may have gone away
	}))
	t.Cleanup(func() { elsewhere.CloseClientConnections(); elsewhere.Close() })
	b := h.openBrowser()
	b.do(chromedp.Navigate(h.url + "/openapi.json")) // with a session, and without a stream
	b.until(`document.body?.innerText.includes('"openapi"')`)
	_, port, _ := strings.Cut(strings.TrimPrefix(elsewhere.URL, "http://"), ":")
	for _, c := range []struct {
		host    string
		node    string
		session bool // the browser sends it to other ports of the same host
	}{{"127.0.0.1", node, false}, {"localhost", node, false}, {"127.0.0.1", strings.TrimPrefix(h.url, "http://"), true}, {"localhost", strings.TrimPrefix(h.url, "http://"), false}} {
		t.Run(c.host+" of "+c.node[:strings.IndexAny(c.node+"/", "/")], func(t *testing.T) {
			passed.mu.Lock()
			passed.seen = nil
			passed.mu.Unlock()
			b.do(chromedp.Navigate("http://" + c.host + ":" + port + "/#" + c.node))
			b.until(`Object.keys(window.tries ?? {}).length === 5`)
			if got, want := b.text(`JSON.stringify(Object.entries(tries).sort())`),
				`[["asked for","failed"],["read","failed"],["simple","answered 0"],["socket","failed"],["stream","failed 2"]]`; got != want {
				t.Errorf("it is told %s", got)
			}
			for what, session := range map[string]bool{
				"POST /rpc/send": c.session, "OPTIONS /rpc/send": false, "GET /openapi.json": c.session, "POST /rpc/decline_form": c.session,
				"POST /rpc/reply": c.session, "POST /forms/0": c.session, "GET /ws": c.session, "GET /events": c.session, "GET /agents": c.session,
			} {
				eventually.Holds(t, "the request has been passed on", func() bool { return len(passed.matching(what)) > 0 })
				if got := passed.matching(what); slices.ContainsFunc(got, func(s recordedRequest) bool { return s.status != 403 && s.status != 401 || s.session != session }) {
					t.Errorf("%s: %v", what, got)
				}
			}
		})
	}
	for name, a := range map[string]*actors.Agent{"fae": h.fae, "the host": h.node.Host()} {
		in, err := a.Mail().Inbox(t.Context(), view.MessageFilter{All: true})
		if err != nil || len(in.Messages) != 1 || in.Messages[0].Outcome != nil || in.Messages[0].Description != "Configure the project" {
			t.Errorf("the mail of %s has changed: %v %v", name, in.Messages, err)
		}
	}
	b.do(chromedp.Navigate(b.url + "/agents")) // the session still works
	b.reads("h1", "Agents")
}

func TestRequestsAreAcceptedByOrigin(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const own = "http://localhost"
	session, err := h.node.Host().Tokens().MakeSession(t.Context(), "a test")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		method, path string
		header       []string
		status       int
	}{
		"a program":                      {"GET", "/", nil, 200},
		"our page":                       {"GET", "/", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, 200},
		"the address bar":                {"GET", "/", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200},
		"a link in another page":         {"GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		"another page's frame":           {"GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		"another page's script":          {"GET", "/openapi.json", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, 403},
		"another port's stream":          {"GET", "/events", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Origin", "http://localhost:1"}, 403},
		"an old browser's stream":        {"GET", "/events", []string{"Origin", "http://evil.example"}, 403},
		"an old browser, of our page":    {"GET", "/", []string{"Origin", own}, 200},
		"an old browser, of no page":     {"GET", "/", []string{"Origin", "null"}, 403},
		"an old browser's post, of ours": {"POST", "/rpc/list_names", []string{"Origin", own}, 200},
		"an old browser's post":          {"POST", "/rpc/list_names", []string{"Origin", "http://localhost:1"}, 403},
		"another page's form":            {"POST", "/rpc/list_names", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		"another page's sign-out":        {"POST", web.SignOutPath, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), c.method, own+web.SessionsPath+session.Key+c.path, nil)
			r.AddCookie(&http.Cookie{Name: SessionCookie, Value: session.Text})
			for i := 0; i < len(c.header); i += 2 {
				r.Header.Set(c.header[i], c.header[i+1])
			}
			w := httptest.NewRecorder()
			h.server.servePublic(w, r)
			if w.Code != c.status {
				t.Errorf("%d, want %d: %.200s", w.Code, c.status, w.Body)
			}
		})
	}
}
