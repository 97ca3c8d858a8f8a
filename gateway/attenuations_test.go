package gateway

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/edgetest"
	"parley/gateway/mux"
	"parley/internal/eventually"
)

// attenuation is less of a reference, with what it permits and what it does not. $name is how the holder holds it.
type attenuation struct {
	kind   capabilities.Kind
	narrow string // JSON of a facet
	call   string // the operation; "" is invoke
	may    string // the members of a request that it permits; "" where it permits none
	mayNot string // the members of one that it does not
	code   parley.Code
	asks   bool // mayNot has nothing happen before its giver has decided
}

const (
	readPlan   = `"verb":"read","input":{"path":"docs/plan.md"}`
	writePlan  = `"verb":"write","input":{"path":"docs/new.md","content":"x"}`
	readFile   = `"verb":"read"`
	getItems   = `"verb":"request","input":{"url":"https://$host/v1/items"}`
	postItems  = `"verb":"request","input":{"url":"https://$host/v1/items","method":"POST"}`
	callEcho   = `"verb":"call","input":{"tool":"echo","arguments":{"text":"x"}}`
	sendWords  = `"recipient":"$name","text":"hello"`
	askWords   = `"recipient":"$name","description":"Which?","fields":[{"name":"port","type":"number","label":"Port"}]`
	aRate      = `{"rate":{"uses":1,"seconds":3600}}`
	anEnd      = `{"until":"$soon"}`
	oneUse     = `{"uses":1}`
	readOnly   = `{"mode":"read"}`
	askedFirst = `{"ask":true}`
)

// attenuations is the table of kinds and of what each can be narrowed to.
func attenuations() []attenuation {
	return []attenuation{
		{kind: capabilities.KindFolder, narrow: readOnly, may: readPlan, mayNot: writePlan, code: parley.NotPermitted},
		{kind: capabilities.KindFolder, narrow: `{"below":"docs"}`, may: readPlan, mayNot: `"verb":"read","input":{"path":"other/plan.md"}`, code: parley.NotPermitted},
		{kind: capabilities.KindFolder, narrow: `{"below":"docs"}`, may: `"verb":"list","input":{"path":"docs"}`, mayNot: `"verb":"list"`, code: parley.NotPermitted},
		{kind: capabilities.KindFolder, narrow: oneUse, may: readPlan, mayNot: readPlan, code: parley.NotPermitted},
		{kind: capabilities.KindFolder, narrow: aRate, may: readPlan, mayNot: readPlan, code: parley.RateLimited},
		{kind: capabilities.KindFolder, narrow: anEnd, mayNot: readPlan, code: parley.NotPermitted},
		{kind: capabilities.KindFolder, narrow: askedFirst, mayNot: writePlan, asks: true},

		{kind: capabilities.KindFile, narrow: oneUse, may: readFile, mayNot: readFile, code: parley.NotPermitted},
		{kind: capabilities.KindFile, narrow: aRate, may: readFile, mayNot: readFile, code: parley.RateLimited},
		{kind: capabilities.KindFile, narrow: anEnd, mayNot: readFile, code: parley.NotPermitted},
		{kind: capabilities.KindFile, narrow: askedFirst, mayNot: readFile, asks: true},

		{kind: capabilities.KindSecret, narrow: readOnly, may: getItems, mayNot: postItems, code: parley.NotPermitted},
		{kind: capabilities.KindSecret, narrow: `{"below":"v1"}`, may: getItems, mayNot: `"verb":"request","input":{"url":"https://$host/v2"}`, code: parley.NotPermitted},
		{kind: capabilities.KindSecret, narrow: `{"only":"$host"}`, may: getItems, mayNot: `"verb":"request","input":{"url":"https://$other/v1/items"}`, code: parley.NotPermitted},
		{kind: capabilities.KindSecret, narrow: `{"methods":"GET"}`, may: getItems, mayNot: postItems, code: parley.NotPermitted},
		{kind: capabilities.KindSecret, narrow: oneUse, may: getItems, mayNot: getItems, code: parley.NotPermitted},
		{kind: capabilities.KindSecret, narrow: aRate, may: getItems, mayNot: getItems, code: parley.RateLimited},
		{kind: capabilities.KindSecret, narrow: anEnd, mayNot: getItems, code: parley.NotPermitted},
		{kind: capabilities.KindSecret, narrow: askedFirst, mayNot: postItems, asks: true},

		{kind: capabilities.KindTool, narrow: readOnly, may: `"verb":"list"`, mayNot: callEcho, code: parley.NotPermitted},
		{kind: capabilities.KindTool, narrow: `{"only":"echo"}`, may: callEcho, mayNot: `"verb":"call","input":{"tool":"other","arguments":{"text":"x"}}`, code: parley.NotPermitted},
		{kind: capabilities.KindTool, narrow: oneUse, may: callEcho, mayNot: callEcho, code: parley.NotPermitted},
		{kind: capabilities.KindTool, narrow: aRate, may: callEcho, mayNot: callEcho, code: parley.RateLimited},
		{kind: capabilities.KindTool, narrow: anEnd, mayNot: callEcho, code: parley.NotPermitted},
		{kind: capabilities.KindTool, narrow: askedFirst, mayNot: callEcho, asks: true},

		{kind: capabilities.KindAgent, narrow: `{"mode":"ask"}`, call: "send", mayNot: sendWords, code: parley.NotPermitted},
		{kind: capabilities.KindAgent, narrow: readOnly, call: "send", mayNot: sendWords, code: parley.NotPermitted},
		{kind: capabilities.KindAgent, narrow: readOnly, call: "form", mayNot: askWords, code: parley.NotPermitted},
		{kind: capabilities.KindAgent, narrow: oneUse, call: "send", may: sendWords, mayNot: sendWords, code: parley.NotPermitted},
		{kind: capabilities.KindAgent, narrow: anEnd, call: "send", mayNot: sendWords, code: parley.NotPermitted},
	}
}

// world is a node with one of each kind, which its host holds under the name of the kind, and how often each had an effect.
type world struct {
	t       *testing.T
	edges   *edges
	all     []edgetest.Edge
	host    edgetest.Caller
	fae     edgetest.Caller
	folder  string
	vars    map[string]string
	effects atomic.Int64 // requests with the secret, and calls of tools
	count   int
}

// openWorld opens a node with all its edges, and makes one of each kind.
func openWorld(t *testing.T) *world {
	t.Helper()
	system, _ := runNATS(t, anyPort, 8<<20)
	h := openLimitedNATSTestServer(t, system.ClientURL(), api.Limits{api.LimitRate: 1 << 20}, nil)
	e := &edges{h: h, web: http.Client{Transport: &http.Transport{}}, socket: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return client.Dial(ctx, h.server.socketPath) },
	}}, sessions: map[string]*websocket.Conn{}}
	t.Cleanup(e.close)
	w := &world{t: t, edges: e, host: edgetest.Caller{Token: h.tokens["host"]}, folder: t.TempDir(), all: []edgetest.Edge{
		{Name: "tcp", Call: e.overTCP}, {Name: "socket", Call: e.overSocket}, {Name: "local", Call: e.overSocketWithToken},
		{Name: "mux", Call: e.overMux("unix", mux.AppendJSON[string])}, {Name: "binary", Call: e.overMux("tcp", mux.AppendJSON[string])}, {Name: "maps", Call: e.overMux("tcp", asMap)},
		{Name: "ws", Call: e.overWebSocket}, {Name: "nats", Call: e.overNATS}, {Name: "mcp", Call: e.overMCP},
	}}
	secrets := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.effects.Add(1) }))
	t.Cleanup(secrets.Close)
	tools := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
		for _, name := range []string{"echo", "other"} {
			sdk.AddTool(s, &sdk.Tool{Name: name}, func(_ context.Context, _ *sdk.CallToolRequest, in struct {
				Text string `json:"text"`
			},
			) (*sdk.CallToolResult, any, error) {
				w.effects.Add(1)
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}}}, nil, nil
			})
		}
		return s
	}, nil))
	t.Cleanup(tools.Close)
	_, port, err := net.SplitHostPort(secrets.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w.vars = map[string]string{"host": "127.0.0.1:" + port, "other": "example.com:" + port}
	for _, name := range []string{"docs/plan.md", "other/plan.md"} {
		path := filepath.Join(w.folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("ship"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secrets.Certificate().Raw})))
	if err != nil {
		t.Fatal(err)
	}
	var stored struct{ Digest string }
	for _, made := range []string{
		fmt.Sprintf(`{"kind":"folder","name":"folder","folder":%q}`, w.folder),
		fmt.Sprintf(`{"kind":"secret","name":"secret","secret":"correct horse battery","authority":%s,"facet":{"only":%q,"methods":"GET POST"}}`, certificate, capabilities.WordsOf(w.vars["host"], w.vars["other"])),
		fmt.Sprintf(`{"kind":"tool","name":"tool","address":%q}`, tools.URL),
	} {
		w.must(w.host, "make_resource", made)
	}
	if err := json.Unmarshal(w.must(w.host, "store_file", `{"size":4,"data":"c2hpcA=="}`), &stored); err != nil {
		t.Fatal(err)
	}
	w.must(w.host, "make_resource", fmt.Sprintf(`{"kind":"file","name":"file","file":{"name":"plan.md","size":4,"digest":%q}}`, stored.Digest))
	w.must(w.host, "make_agent", `{"name":"agent"}`)
	w.must(w.host, "make_agent", `{"name":"fae"}`)
	var token struct{ Token string }
	if err := json.Unmarshal(w.must(w.host, "create_token", `{"as":"fae","scopes":["read","ask","answer","admin"]}`), &token); err != nil {
		t.Fatal(err)
	}
	w.fae = edgetest.Caller{Token: token.Token, As: "fae"}
	return w
}

func (w *world) must(c edgetest.Caller, operation, request string) []byte {
	w.t.Helper()
	got, err := w.edges.overTCP(w.t.Context(), c, operation, request)
	if err != nil {
		w.t.Fatalf("%s %s: %v", operation, request, err)
	}
	return got
}

// form returns the ID of the form that was asked.
func (w *world) form(response []byte) string {
	w.t.Helper()
	var asked struct{ Form string }
	if err := json.Unmarshal(response, &asked); err != nil || asked.Form == "" {
		w.t.Fatalf("%s: %v", response, err)
	}
	return asked.Form
}

// places are where something less is given, each at some edge. Each returns the name by which fae holds it.
var places = map[string]func(w *world, at edgetest.Edge, kind capabilities.Kind, narrow, name string) string{
	"a request that is resolved": func(w *world, at edgetest.Edge, kind capabilities.Kind, narrow, name string) string {
		form := w.form(w.must(w.fae, "request", fmt.Sprintf(`{"recipient":"@host","text":"less","name":%q}`, name)))
		w.give(at, "resolve", fmt.Sprintf(`{"id":%q,"name":%q,"narrow":%s}`, form, kind, narrow))
		return name
	},
	"a field that is answered": func(w *world, at edgetest.Edge, kind capabilities.Kind, narrow, name string) string {
		form := w.form(w.must(w.fae, "form", fmt.Sprintf(`{"recipient":"@host","description":"Less?","fields":[{"name":"what","type":"capability"}],"name":%q}`, name)))
		w.give(at, "respond_form", fmt.Sprintf(`{"id":%q,"texts":[{"name":"what","text":%q}],"narrow":{"what":%s}}`, form, kind, narrow))
		return name + "/what"
	},
	"a name that is copied and sent": func(w *world, at edgetest.Edge, kind capabilities.Kind, narrow, name string) string {
		w.give(at, "copy_name", fmt.Sprintf(`{"old":%q,"new":%q,"narrow":%s}`, kind, name, narrow))
		var sent struct{ Message string }
		if err := json.Unmarshal(w.must(w.host, "send", fmt.Sprintf(`{"recipient":"fae","text":"take @%s"}`, name)), &sent); err != nil {
			w.t.Fatal(err)
		}
		w.must(w.fae, "adopt", fmt.Sprintf(`{"id":%q,"edge":%q}`, sent.Message, name))
		return name
	},
}

func (w *world) give(at edgetest.Edge, operation, request string) {
	w.t.Helper()
	if at.Name == "mcp" && operation == "respond_form" { // a model answers with values of its own
		at = w.all[0]
	}
	if _, err := at.Call(w.t.Context(), w.host, operation, request); err != nil {
		w.t.Fatalf("%s at %s %s: %v", operation, at.Name, request, err)
	}
}

// request returns a request of a row.
func (w *world) request(a attenuation, name, members string) (operation, request string) {
	request = "{" + members + "}"
	if a.call == "" {
		request = fmt.Sprintf(`{"name":%q,"waitMs":0,%s}`, name, members)
		if !a.asks {
			request = fmt.Sprintf(`{"name":%q,%s}`, name, members)
		}
	}
	return map[string]string{"": "invoke"}[a.call] + a.call, w.fill(strings.ReplaceAll(request, "$name", name))
}

func (w *world) fill(text string) string {
	for name, value := range w.vars {
		text = strings.ReplaceAll(text, "$"+name, value)
	}
	return strings.ReplaceAll(text, "$soon", time.Now().Add(5*time.Second).UTC().Format("2006-01-02T15:04:05.000Z"))
}

// TestAttenuationsHoldAtEveryEdge narrows one of each kind in each of its ways, at each place, and tries at all edges what it does not
// permit. What is narrowed to a time is given first, and tried when that is over.
func TestAttenuationsHoldAtEveryEdge(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	var later []func()
	for i, a := range attenuations() {
		for place, give := range places {
			if a.narrow == anEnd {
				later = append(later, w.given(i, a, place, give))
			}
		}
	}
	for i, a := range attenuations() {
		for place, give := range places {
			if a.narrow != anEnd {
				w.given(i, a, place, give)()
			}
		}
	}
	for _, try := range later {
		try()
	}
	if _, err := os.Stat(filepath.Join(w.folder, "docs/new.md")); err == nil {
		t.Error("a file was written by who may not")
	}
}

// given gives what a row has, and returns what tries it at all edges.
func (w *world) given(i int, a attenuation, place string, give func(*world, edgetest.Edge, capabilities.Kind, string, string) string) func() {
	t := w.t
	t.Helper()
	w.count++
	name := fmt.Sprintf("less-%d", w.count)
	what := fmt.Sprintf("%s with %s, by %s", a.kind, a.narrow, place)
	held := give(w, w.all[(i+w.count)%len(w.all)], a.kind, w.fill(a.narrow), name)
	return func() {
		if a.may != "" {
			operation, request := w.request(a, held, a.may)
			if _, err := w.all[i%len(w.all)].Call(t.Context(), w.fae, operation, request); err != nil {
				t.Errorf("%s: %s %s: %v", what, operation, request, err)
			}
		}
		operation, request := w.request(a, held, a.mayNot)
		if a.narrow == anEnd {
			eventually.Holds(t, what, func() bool {
				_, err := w.edges.overTCP(t.Context(), w.fae, operation, request)
				return err != nil
			})
		}
		before := w.effects.Load()
		for _, edge := range w.all {
			switch got, err := edge.Call(t.Context(), w.fae, operation, request); {
			case a.asks && (err != nil || !strings.Contains(string(got), `"state":"asked"`)):
				t.Errorf("%s, at %s: %s %v", what, edge.Name, got, err)
			case !a.asks && parley.CodeOf(err) != a.code:
				t.Errorf("%s, at %s: %s %v, want %s", what, edge.Name, got, err, a.code)
			}
		}
		if w.effects.Load() != before {
			t.Errorf("%s: what is not permitted had an effect", what)
		}
	}
}
