package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway"
	"parley/internal/freeport"
)

// modelServer is a node in this process, with an agent for a model.
type modelServer struct {
	t      *testing.T
	folder string
	listen string
	node   *actors.Node
	server *gateway.Server
	token  string
}

func openModelServer(t *testing.T) *modelServer {
	t.Helper()
	h := &modelServer{t: t, folder: t.TempDir(), listen: freeport.Address(t)}
	h.open()
	t.Cleanup(h.close)
	h.token = h.guest("fae", "read", "ask", "answer", "reveal")
	return h
}

func (h *modelServer) open() {
	h.t.Helper()
	node, err := actors.Open(context.Background(), actors.Options{Folder: h.folder, Name: "test"})
	if err != nil {
		h.t.Fatal(err)
	}
	h.node = node
	h.server, err = gateway.Listen(node, gateway.Options{
		Socket: filepath.Join(h.folder, socketFile), Listen: h.listen, Version: "test", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.server.Serve()
	h.listen = h.server.Address()
}

func (h *modelServer) close() {
	h.t.Helper()
	http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.server.Drain(ctx); err != nil {
		h.t.Error(err)
	}
	if err := h.node.Close(ctx); err != nil {
		h.t.Error(err)
	}
}

// guest makes an agent, and a token for it.
func (h *modelServer) guest(name string, scopes ...string) string {
	h.t.Helper()
	a, err := h.node.Host().Make(h.t.Context(), actors.NewAgent{Kind: events.Guest, Name: name})
	if err != nil {
		h.t.Fatal(err)
	}
	made, err := a.Tokens().Make(h.t.Context(), actors.NewToken{Scopes: scopes})
	if err != nil {
		h.t.Fatal(err)
	}
	return made.Text
}

// agent returns the agent that the host holds under a name.
func (h *modelServer) agent(name string) *actors.Agent {
	h.t.Helper()
	a, err := h.node.ActAs(h.t.Context(), name)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// toolTransport is a transport and a protocol version by which a model's client calls tools.
type toolTransport struct{ transport, version string }

// toolTransports are all transports, with each protocol version.
func toolTransports() []toolTransport {
	var all []toolTransport
	for _, transport := range []string{"stdio", "http"} {
		for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
			all = append(all, toolTransport{transport, version})
		}
	}
	return all
}

// onEveryTransport runs a test for each transport, on a node of its own.
func onEveryTransport(t *testing.T, test func(*testing.T, *modelServer, toolTransport)) {
	t.Helper()
	for _, w := range toolTransports() {
		t.Run(w.transport+" "+w.version, func(t *testing.T) {
			t.Parallel()
			test(t, openModelServer(t), w)
		})
	}
}

// model is a session of the official client.
type model struct {
	t       *testing.T
	session *sdk.ClientSession
	results map[string]*jsonschema.Schema // by tool
}

// bearer adds a token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects a client for fae. elicit, if given, answers elicitations.
func (h *modelServer) connect(w toolTransport, o *sdk.ClientOptions) *model {
	h.t.Helper()
	var transport sdk.Transport
	if w.transport == "stdio" {
		c := exec.Command("parley", "--state", h.folder, "--as", "fae", "mcp")
		c.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // saves a second under -race
		transport = &sdk.CommandTransport{Command: c}
	} else {
		transport = &sdk.StreamableClientTransport{Endpoint: "http://" + h.listen + "/mcp", HTTPClient: &http.Client{Transport: bearer(h.token)}}
	}
	return h.connectTo(transport, w.version, o)
}

func (h *modelServer) connectTo(transport sdk.Transport, version string, o *sdk.ClientOptions) *model {
	h.t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).
		Connect(h.t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = session.Close() }) // the node may be gone
	return &model{h.t, session, resultSchemas(h.t, session)}
}

// resultSchemas returns the schemas of the results of all tools.
func resultSchemas(t *testing.T, session *sdk.ClientSession) map[string]*jsonschema.Schema {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*jsonschema.Schema{}
	c := jsonschema.NewCompiler()
	for _, tool := range list.Tools {
		url := "schema:" + tool.Name
		if err := c.AddResource(url, tool.OutputSchema); err != nil {
			t.Fatal(err)
		}
		if schemas[tool.Name], err = c.Compile(url); err != nil {
			t.Fatal(err)
		}
	}
	return schemas
}

// toolResult is a tool's result, as a model reads it.
type toolResult struct {
	Status   string
	Handle   string
	Values   map[string]any
	By       struct{ Name string }
	Reason   string
	Link     string
	Messages []struct {
		Number       uint64
		Type         string
		Handle       string
		From         struct{ ID, Name string }
		Title, Text  string
		Fields       []struct{ Name, Label string }
		AnswerNeeded bool
		Ended        *toolResult
		Truncated    bool
	}
	Agents []struct{ ID, Title, Status string }
	Final  struct{ ID, Status string }
	Cursor string
	Number uint64
	Error  *struct {
		Code, Message, Hint string
		Fields              map[string]string
	}
	raw string
}

// use calls a tool. Refusals are results.
func (m *model) use(tool string, arguments any) toolResult {
	m.t.Helper()
	got, err := m.call(m.t.Context(), tool, arguments)
	if err != nil {
		m.t.Fatalf("%s: %v", tool, err)
	}
	return got
}

func (m *model) call(ctx context.Context, tool string, arguments any) (toolResult, error) {
	r, err := m.session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return toolResult{}, err
	}
	var got toolResult
	text, _ := r.Content[0].(*sdk.TextContent)
	if err := json.Unmarshal([]byte(text.Text), &got); err != nil {
		return toolResult{}, err
	}
	got.raw = text.Text
	if err := m.results[tool].Validate(r.StructuredContent); err != nil {
		m.t.Errorf("%s: %s: %v", tool, text.Text, err)
	}
	if structured, err := json.Marshal(r.StructuredContent); err != nil || !sameJSON(structured, []byte(text.Text)) {
		m.t.Errorf("the text %s differs from %s: %v", text.Text, structured, err)
	}
	if r.IsError != (got.Error != nil) {
		m.t.Errorf("an error is one in both places: %v %s", r.IsError, text.Text)
	}
	return got, nil
}

// sameJSON reports whether two JSON texts differ at most in the order of members.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// arguments are those of a tool.
type arguments map[string]any

func portForm(more arguments) arguments {
	a := arguments{"message": "Which port?", "fields": []arguments{{"name": "port", "label": "Port", "type": "number", "required": true}}}
	for k, v := range more {
		a[k] = v
	}
	return a
}

// awaitForm waits for an open form to an agent.
func awaitForm(t *testing.T, a *actors.Agent) view.Message {
	t.Helper()
	for e, err := range a.Mail().Follow(t.Context(), view.MessageFilter{Pending: true}, 0) {
		if err != nil {
			t.Error(err)
			break
		}
		if e.AnswerNeeded {
			return e
		}
	}
	return view.Message{}
}

// answer answers a form with texts: name, text, ….
func answer(t *testing.T, a *actors.Agent, which string, texts ...string) {
	t.Helper()
	var ans parley.Answer
	for i := 0; i+1 < len(texts); i += 2 {
		ans.Texts = append(ans.Texts, events.FieldText{Name: texts[i], Text: texts[i+1]})
	}
	if _, err := a.Answer(t.Context(), mustRef(which), ans); err != nil {
		t.Error(err)
	}
}

// mustRef parses a reference to a form, and panics if it is malformed.
func mustRef(s string) capabilities.FormRef {
	ref, err := capabilities.ParseFormRef(s)
	if err != nil {
		panic(err)
	}
	return ref
}

// TestToolsOutliveANodeThatIsAwayAtTheStart has a coding agent start its server while the node restarts. It starts no other, so that this
// one looks for the node at each call.
func TestToolsOutliveANodeThatIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	h := openModelServer(t)
	h.close()
	c := exec.Command("parley", "--state", h.folder, "mcp", "--for", "claude-code")
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "CLAUDE_PROJECT_DIR="+c.Dir)
	m := h.connectTo(&sdk.CommandTransport{Command: c}, "2025-06-18", nil)
	if got := m.use("read_mail", arguments{}); got.Error == nil || got.Error.Code != string(parley.NotRunning) {
		t.Errorf("without a node: %s", got.raw)
	}
	h.open()
	if got := m.use("read_mail", arguments{}); got.Error != nil {
		t.Errorf("with one: %s", got.raw)
	}
}
