package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/actors"
	"parley/gateway/api"
	"parley/gateway/backend"
	"parley/gateway/client"
	"parley/gateway/mux"
	"parley/internal/eventually"
	"parley/internal/pack"
)

// muxClient exchanges frames with a node.
type muxClient struct {
	t        *testing.T
	conn     *websocket.Conn
	received []mux.Frame
}

func (h *testServer) muxDial(agent string) *muxClient {
	h.t.Helper()
	conn, r, err := websocket.Dial(h.t.Context(), "ws://"+h.server.Address()+api.WebSocketPath, &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + h.tokens[agent]}}, Subprotocols: []string{mux.Protocol},
	})
	if err != nil {
		h.t.Fatalf("%v: %v", err, r)
	}
	if conn.Subprotocol() != mux.Protocol {
		h.t.Fatalf("the protocol is %q", conn.Subprotocol())
	}
	conn.SetReadLimit(16 << 20)
	h.t.Cleanup(func() { _ = conn.CloseNow() })
	return &muxClient{t: h.t, conn: conn}
}

// send writes frames in one message.
func (k *muxClient) send(frames ...mux.Frame) {
	k.t.Helper()
	var message []byte
	for _, f := range frames {
		message = mux.AppendClient(message, f)
	}
	if err := k.conn.Write(k.t.Context(), websocket.MessageBinary, message); err != nil {
		k.t.Fatal(err)
	}
}

// receive returns the next frame, with its body as JSON.
func (k *muxClient) receive() (mux.Frame, string) {
	k.t.Helper()
	for len(k.received) == 0 {
		ctx, cancel := context.WithTimeout(k.t.Context(), 10*time.Second)
		_, message, err := k.conn.Read(ctx)
		cancel()
		if err != nil {
			k.t.Fatal(err)
		}
		if err := mux.ReadNode(message, func(f mux.Frame) error { k.received = append(k.received, f); return nil }); err != nil {
			k.t.Fatal(err)
		}
	}
	f := k.received[0]
	k.received = k.received[1:]
	text, err := mux.ToJSON(f.Body)
	if err != nil || !json.Valid(text) {
		k.t.Fatalf("%x: %s, %v", f.Body, text, err)
	}
	return f, string(text)
}

// wants checks the next frame.
func (k *muxClient) wants(kind mux.Kind, id uint64, parts ...string) string {
	k.t.Helper()
	f, text := k.receive()
	if f.Kind != kind || f.ID != id {
		k.t.Fatalf("frame %d of %d: %s, want %d of %d", f.Kind, f.ID, text, kind, id)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			k.t.Errorf("%s lacks %s", text, part)
		}
	}
	return text
}

// end returns the code with which the node closes the connection.
func (k *muxClient) end() websocket.StatusCode {
	k.t.Helper()
	for {
		ctx, cancel := context.WithTimeout(k.t.Context(), 10*time.Second)
		_, _, err := k.conn.Read(ctx)
		cancel()
		if err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func jsonBody(format string, args ...any) []byte {
	return mux.AppendJSON(nil, fmt.Sprintf(format, args...))
}

// mapBody returns the same as a map.
func mapBody(t *testing.T, format string, args ...any) []byte {
	t.Helper()
	body, err := mux.FromJSON(fmt.Appendf(nil, format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

const formText = `{"recipient":"HOST","description":"x","fields":[{"name":"a"}],"key":%q}`

func formOf(t *testing.T, text string) string {
	t.Helper()
	var asked struct{ Form string }
	if err := json.Unmarshal([]byte(text), &asked); err != nil || asked.Form == "" {
		t.Fatalf("%s: %v", text, err)
	}
	return asked.Form
}

// TestAnOutcomeComesOnTheAsksOwnID has two agents ask and answer on one connection, in maps and in JSON.
func TestAnOutcomeComesOnTheAsksOwnID(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.muxDial("fae")
	k.send(mux.Frame{Kind: mux.SignIn, ID: 1, Body: jsonBody(`{"token":%q}`, h.tokens["host"])})
	k.wants(mux.Result, 1, `"agent":1`)
	for i, body := range []func(string, ...any) []byte{jsonBody, func(f string, args ...any) []byte { return mapBody(t, f, args...) }} {
		ask, answer, again := uint64(10*i+2), uint64(10*i+3), uint64(10*i+4)
		k.send(mux.Frame{Kind: mux.Ask, ID: ask, Body: body(formText, fmt.Sprint(i))})
		form := formOf(t, k.wants(mux.Asked, ask))
		k.send(mux.Frame{Kind: mux.Call, ID: answer, Agent: 1, Operation: "respond_form", Body: body(`{"id":%q,"values":{"a":"yes"}}`, form)})
		got := map[uint64]string{}
		for range 2 {
			f, text := k.receive()
			if f.Kind != mux.Result || mux.NewReader(f.Body).IsJSON() != (i == 0) {
				t.Errorf("frame %d: %s", f.Kind, text)
			}
			got[f.ID] = text
		}
		if !strings.Contains(got[ask], `"a":"yes"`) || !strings.Contains(got[answer], `"answered"`) {
			t.Errorf("%v", got)
		}
		k.send(mux.Frame{Kind: mux.Ask, ID: again, Body: body(formText, fmt.Sprint(i))}) // the same form
		k.wants(mux.Result, again, form, `"a":"yes"`)
	}
	k.send(mux.Frame{Kind: mux.Call, ID: 90, Operation: "list_messages", Body: mapBody(t, `{"all":true}`)}, // one on a goroutine
		mux.Frame{Kind: mux.SignOut, ID: 91, Agent: 1})
	for range 2 {
		k.receive()
	}
	k.send(mux.Frame{Kind: mux.Call, ID: 92, Agent: 1, Operation: "list_messages", Body: jsonBody(`{}`)})
	k.wants(mux.Refusal, 92, "UNAUTHENTICATED")
}

// TestSlotsOfSignInsAreReused signs agents in and out more often than a connection has slots. The number of an agent whose token
// has ended is nobody's until its client gives it back.
func TestSlotsOfSignInsAreReused(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	k := h.muxDial("host")
	signIn := func(id uint64) string {
		k.send(mux.Frame{Kind: mux.SignIn, ID: id, Body: jsonBody(`{"token":%q}`, h.tokens["fae"])})
		return k.wants(mux.Result, id)
	}
	for i := range uint64(30) {
		for _, want := range []string{`{"agent":1}`, `{"agent":2}`} {
			if got := signIn(4 * i); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		}
		k.send(mux.Frame{Kind: mux.SignOut, ID: 4*i + 1, Agent: 2}, mux.Frame{Kind: mux.SignOut, ID: 4*i + 2, Agent: 2}, mux.Frame{Kind: mux.SignOut, ID: 4*i + 3, Agent: 1})
		for range 3 {
			k.receive()
		}
	}
	signIn(200)
	revokeAll(t, fae)
	k.send(mux.Frame{Kind: mux.Call, ID: 201, Agent: 1, Operation: "list_messages", Body: jsonBody(`{}`)})
	k.wants(mux.Refusal, 201, "UNAUTHENTICATED")
	k.send(mux.Frame{Kind: mux.SignIn, ID: 202, Body: jsonBody(`{"token":%q}`, h.tokens["host"])})
	k.wants(mux.Result, 202, `{"agent":2}`)
	k.send(mux.Frame{Kind: mux.SignOut, ID: 203, Agent: 1})
	k.wants(mux.Result, 203)
	k.send(mux.Frame{Kind: mux.SignIn, ID: 204, Body: jsonBody(`{"token":%q}`, h.tokens["host"])})
	k.wants(mux.Result, 204, `{"agent":1}`)
}

// TestRequestsAndApprovalsBringTheirOutcomes asks by both on one connection, and by an operation that asks nothing.
func TestRequestsAndApprovalsBringTheirOutcomes(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.muxDial("fae")
	k.send(mux.Frame{Kind: mux.SignIn, ID: 1, Body: jsonBody(`{"token":%q}`, h.tokens["host"])})
	k.wants(mux.Result, 1, `"agent":1`)
	for i, ask := range []struct{ operation, body, settle, by, outcome string }{
		{"request", `{"recipient":"HOST","text":"a key","key":"r"}`, "reject", `{"id":%q,"reason":"no"}`, `"declined"`},
		{"approve", `{"tool":"shell","input":{"command":"ls"},"key":"a"}`, "respond_form", `{"id":%q,"values":{"decision":"once"}}`, `"allowed":true`},
	} {
		id := uint64(10 * (i + 1))
		asks := mux.Frame{Kind: mux.AskBy, ID: id, Operation: ask.operation, Body: jsonBody("%s", ask.body)}
		k.send(asks)
		form := formOf(t, k.wants(mux.Asked, id))
		k.send(mux.Frame{Kind: mux.Call, ID: id + 1, Agent: 1, Operation: ask.settle, Body: jsonBody(ask.by, form)})
		got := map[uint64]string{}
		for range 2 {
			f, text := k.receive()
			got[f.ID] = text
		}
		if !strings.Contains(got[id], ask.outcome) || !strings.Contains(got[id], form) {
			t.Errorf("%s: %v", ask.operation, got)
		}
		asks.ID = id + 2
		k.send(asks) // the same
		k.wants(mux.Result, id+2, form, `"outcome"`)
	}
	k.send(mux.Frame{Kind: mux.AskBy, ID: 90, Operation: "approve", Body: jsonBody(`{"tool":"shell","input":{},"key":"b","attended":true}`)})
	k.wants(mux.Result, 90, `"unattended":true`)
	k.send(mux.Frame{Kind: mux.AskBy, ID: 91, Operation: "send", Body: jsonBody(`{"recipient":"HOST","text":"x"}`)})
	k.wants(mux.Refusal, 91, "INVALID_ARGUMENT")
	k.send(mux.Frame{Kind: mux.AskBy, ID: 92, Operation: "approve", Body: jsonBody(`{"tool":"shell"}`)})
	k.wants(mux.Refusal, 92, "INVALID_ARGUMENT")
}

// TestWaitsOfAConnectionEnd ends them by their client, by their time, by the connection, and by the node.
func TestWaitsOfAConnectionEnd(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.muxDial("fae")
	k.send(mux.Frame{Kind: mux.Ask, ID: 1, Body: jsonBody(formText, "1")})
	form := formOf(t, k.wants(mux.Asked, 1))
	k.send(mux.Frame{Kind: mux.Call, ID: 2, Operation: "await", Body: jsonBody(`{"id":%q,"waitMs":60}`, form)})
	k.wants(mux.Result, 2, `"open"`)
	k.send(mux.Frame{Kind: mux.Cancel, ID: 1}, mux.Frame{Kind: mux.Call, ID: 3, Operation: "await", Body: jsonBody(`{"id":%q}`, form)})
	waits := func() int64 {
		for _, l := range h.server.backend.Limits() {
			if l.Name == "waits" && l.For == "agents" {
				return l.Now
			}
		}
		return -1
	}
	eventually.Holds(t, "one waits", func() bool { return waits() == 1 })
	other := h.muxDial("fae")
	other.send(mux.Frame{Kind: mux.Ask, ID: 1, Body: jsonBody(formText, "1")})
	other.wants(mux.Asked, 1, form)
	eventually.Holds(t, "two wait", func() bool { return waits() == 2 })
	_ = other.conn.CloseNow()
	eventually.Holds(t, "one waits again", func() bool { return waits() == 1 })
	k.send(mux.Frame{Kind: mux.Ask, ID: 4, Body: jsonBody(formText, "1")})
	k.wants(mux.Asked, 4, form)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		h.close()
	}()
	want := map[uint64]string{0: fmt.Sprint(mux.Going, " NOT_RUNNING"), 3: fmt.Sprint(mux.Result, " open"), 4: fmt.Sprint(mux.Refusal, " NOT_RUNNING")}
	for range 3 {
		f, text := k.receive()
		kind, word, _ := strings.Cut(want[f.ID], " ")
		if fmt.Sprint(f.Kind) != kind || !strings.Contains(text, word) {
			t.Errorf("frame %d of %d: %s", f.Kind, f.ID, text)
		}
		delete(want, f.ID)
	}
	if code := k.end(); code != websocket.StatusGoingAway {
		t.Errorf("the connection ends with %v", code)
	}
	<-closed
	if n := waits(); n != 0 {
		t.Errorf("%d wait", n)
	}
}

// TestAFollowSendsWhatIsAllowed sends so many messages as the client has allowed.
func TestAFollowSendsWhatIsAllowed(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	k := h.muxDial("host")
	for i := range 5 {
		if _, err := fae.Send(t.Context(), "HOST", fmt.Sprint("mail ", i)); err != nil {
			t.Fatal(err)
		}
	}
	k.send(mux.Frame{Kind: mux.Follow, ID: 1, Body: mapBody(t, `{}`), Credit: 2})
	k.wants(mux.Item, 1, `"mail 0"`)
	second := k.wants(mux.Item, 1, `"mail 1"`)
	k.send(mux.Frame{Kind: mux.Call, ID: 2, Operation: "status", Body: jsonBody(`{}`)}) // nothing comes before it
	k.wants(mux.Result, 2)
	k.send(mux.Frame{Kind: mux.Credit, ID: 1, Credit: 1})
	k.wants(mux.Item, 1, `"mail 2"`)
	var at struct{ Cursor string }
	if err := json.Unmarshal([]byte(second), &at); err != nil {
		t.Fatal(err)
	}
	k.send(mux.Frame{Kind: mux.Cancel, ID: 1}, mux.Frame{Kind: mux.Follow, ID: 3, Body: jsonBody(`{"cursor":%q}`, at.Cursor), Credit: 1 << 63}, mux.Frame{Kind: mux.Credit, ID: 3, Credit: 1 << 63})
	for i := 2; i < 5; i++ {
		k.wants(mux.Item, 3, fmt.Sprintf(`"mail %d"`, i))
	}
	if _, err := fae.Send(t.Context(), "HOST", "mail 5"); err != nil {
		t.Fatal(err)
	}
	k.wants(mux.Item, 3, `"mail 5"`)
}

// TestAFollowOfAgentsSendsWhatIsAllowed follows agents, of which one is made meanwhile.
func TestAFollowOfAgentsSendsWhatIsAllowed(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.muxDial("host")
	k.send(mux.Frame{Kind: mux.FollowAgents, ID: 1, Body: jsonBody(`{}`), Credit: 2})
	k.wants(mux.Item, 1, `"upsert"`)
	k.wants(mux.Item, 1, `"upsert"`)
	k.send(mux.Frame{Kind: mux.Call, ID: 2, Operation: "status", Body: jsonBody(`{}`)}) // nothing comes before it
	k.wants(mux.Result, 2)
	k.send(mux.Frame{Kind: mux.Credit, ID: 1, Credit: 10})
	k.wants(mux.Item, 1, `{"kind":"told"}`)
	h.guest("bob")
	k.wants(mux.Item, 1, `"upsert"`, `"bob"`)
	k.send(mux.Frame{Kind: mux.FollowAgents, ID: 3, Body: jsonBody(`{"agentId":"nobody"}`), Credit: 1})
	k.wants(mux.Refusal, 3, "AGENT_NOT_FOUND")
}

// TestAConnectionIsGoodForWhatItsTokensAre calls what a token is not good for, and revokes tokens.
func TestAConnectionIsGoodForWhatItsTokensAre(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae, bob := h.guest("fae"), h.guest("bob")
	h.tokens["fae"] = makeToken(t, fae, "read")
	k := h.muxDial("fae")
	k.send(mux.Frame{Kind: mux.Ask, ID: 1, Body: jsonBody(formText, "1")})
	k.wants(mux.Refusal, 1, "NOT_PERMITTED")
	k.send(mux.Frame{Kind: mux.Call, ID: 2, Operation: "list_messages", Body: jsonBody(`{"as":"HOST"}`)})
	k.wants(mux.Refusal, 2, "NOT_PERMITTED")
	k.send(mux.Frame{Kind: mux.SignIn, ID: 3, Body: jsonBody(`{"token":"nonsense"}`)})
	k.wants(mux.Refusal, 3, "UNAUTHENTICATED")
	k.send(mux.Frame{Kind: mux.SignIn, ID: 4, Body: jsonBody(`{"token":%q}`, h.tokens["bob"])})
	k.wants(mux.Result, 4, `"agent":1`)
	k.send(mux.Frame{Kind: mux.Ask, ID: 5, Agent: 1, Body: jsonBody(formText, "1")})
	k.wants(mux.Asked, 5)
	revokeAll(t, bob)
	k.wants(mux.Refusal, 5, "UNAUTHENTICATED") // what waited for bob ends, and nothing else
	k.send(mux.Frame{Kind: mux.Call, ID: 6, Agent: 1, Operation: "list_messages", Body: jsonBody(`{}`)})
	k.wants(mux.Refusal, 6, "UNAUTHENTICATED")
	k.send(mux.Frame{Kind: mux.Call, ID: 7, Operation: "list_messages", Body: jsonBody(`{}`)})
	k.wants(mux.Result, 7)
	revokeAll(t, fae)
	if code := k.end(); code != websocket.StatusPolicyViolation {
		t.Errorf("the connection ends with %v", code)
	}
}

func revokeAll(t *testing.T, a *actors.Agent) {
	t.Helper()
	made, err := a.Tokens().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range made {
		if err := a.Tokens().Revoke(t.Context(), token.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnAgentWithManyCallsRefusesNobodyElse has one agent send 10,000 calls on a connection, and another one.
func TestAnAgentWithManyCallsRefusesNobodyElse(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	h.guest("bob")
	k := h.muxDial("fae")
	k.send(mux.Frame{Kind: mux.SignIn, ID: 1, Body: jsonBody(`{"token":%q}`, h.tokens["bob"])})
	k.wants(mux.Result, 1, `"agent":1`)
	const many = 10_000
	calls := make([]mux.Frame, many)
	for i := range calls {
		calls[i] = mux.Frame{Kind: mux.Call, ID: uint64(i + 10), Operation: "list_messages", Body: jsonBody(`{}`)}
	}
	k.send(append(calls, mux.Frame{Kind: mux.Ask, ID: 2, Agent: 1, Body: jsonBody(formText, "1")})...)
	refused, asked := 0, false
	for range many + 1 {
		switch f, text := k.receive(); {
		case f.ID == 2:
			asked = f.Kind == mux.Asked
		case f.Kind == mux.Refusal && strings.Contains(text, "RATE_LIMITED"):
			refused++
		case f.Kind != mux.Result:
			t.Fatalf("frame %d of %d: %s", f.Kind, f.ID, text)
		}
	}
	if !asked || refused == 0 || refused == many {
		t.Errorf("%d of %d calls were refused, and the other agent's was accepted: %v", refused, many, asked)
	}
}

// TestWhatIsNoFrameEndsAConnection says what no client says. Frames that can be read are refused one by one.
func TestWhatIsNoFrameEndsAConnection(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	k := h.muxDial("fae")
	deep := mux.AppendJSON(nil, strings.Repeat("[", 200)+strings.Repeat("]", 200))
	for i, f := range []mux.Frame{
		{Kind: mux.Call, Operation: "fly", Body: jsonBody(`{}`)},
		{Kind: mux.Call, Operation: "form", Body: jsonBody(`{`)},
		{Kind: mux.Call, Operation: "form", Body: pack.AppendUint(nil, 7)},
		{Kind: mux.Call, Operation: "form", Body: deep},
		{Kind: mux.Call, Agent: 9, Operation: "form", Body: jsonBody(`{}`)},
		{Kind: mux.Ask, Body: jsonBody(`{"recipient":"nobody","description":"x","fields":[{"name":"a"}]}`)},
		{Kind: mux.Call, Operation: "await", Body: jsonBody(`{"id":"nonsense"}`)},
		{Kind: mux.Call, Operation: "respond_form", Body: jsonBody(`{"number":99,"values":{}}`)},
		{Kind: mux.Follow, Body: jsonBody(`{"cursor":"x"}`)},
		{Kind: mux.SignIn, Body: jsonBody(`[]`)},
	} {
		f.ID = uint64(i)
		k.send(f)
		k.wants(mux.Refusal, f.ID, `"code"`)
	}
	k.send(mux.Frame{Kind: mux.Credit, ID: 99, Credit: 1}, mux.Frame{Kind: mux.Cancel, ID: 99}, mux.Frame{Kind: mux.SignOut, ID: 100, Agent: 0}, mux.Frame{Kind: mux.SignOut, ID: 101, Agent: 99})
	k.wants(mux.Result, 100)
	k.wants(mux.Result, 101)
	for name, misbehave := range map[string]func(*muxClient){
		"text":     func(k *muxClient) { _ = k.conn.Write(t.Context(), websocket.MessageText, []byte("{}")) },
		"no frame": func(k *muxClient) { _ = k.conn.Write(t.Context(), websocket.MessageBinary, []byte{0xc1}) },
		"of the node": func(k *muxClient) {
			_ = k.conn.Write(t.Context(), websocket.MessageBinary, []byte{0x95, 9, 1, 1, 1, 1})
		},
		"an ID twice": func(k *muxClient) {
			await := mux.Frame{Kind: mux.Ask, ID: 1, Body: jsonBody(formText, "twice")}
			k.send(await)
			k.wants(mux.Asked, 1)
			k.send(await)
		},
	} {
		other := h.muxDial("fae")
		misbehave(other)
		if code := other.end(); code != websocket.StatusPolicyViolation {
			t.Errorf("%s: the connection ends with %v", name, code)
		}
	}
	k.send(mux.Frame{Kind: mux.Call, ID: 200, Operation: "list_messages", Body: jsonBody(`{}`)})
	k.wants(mux.Result, 200)
}

// TestAStopAnswersWhatIsUnderWayOnTheSocket stops a node that listens on its socket alone, while a call is under way there.
func TestAStopAnswersWhatIsUnderWayOnTheSocket(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.close()
	entered, release := make(chan struct{}), make(chan struct{})
	h.listen = Off
	h.open(func(s *Server) {
		backend.Add(s.backend, api.Operation{Name: "slow", Scope: api.ScopeRead}, func(context.Context, api.NodeRequest) (api.Done, error) {
			close(entered)
			<-release
			return api.Done{}, nil
		})
	})
	c, err := client.New(client.Options{Socket: filepath.Join(h.folder, "parley.sock"), Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	called, closed := make(chan error, 1), make(chan struct{})
	go func() { called <- c.Call(t.Context(), "slow", nil, nil) }()
	<-entered
	go func() {
		defer close(closed)
		h.close()
	}()
	eventually.Holds(t, "the node begins nothing more", func() bool {
		_, err := os.Stat(filepath.Join(h.folder, "parley.sock"))
		return errors.Is(err, fs.ErrNotExist)
	})
	select {
	case <-closed:
		t.Error("the node has stopped, and a call is under way")
	case <-time.After(300 * time.Millisecond): // in which a node without calls has stopped long ago
	}
	close(release)
	if err := <-called; err != nil {
		t.Error(err)
	}
	<-closed
}
