package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
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
		ctx, cancel := context.WithTimeout(k.t.Context(), eventually.Patience)
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
		ctx, cancel := context.WithTimeout(k.t.Context(), eventually.Patience)
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

// TestAReadOfTheLogWaitsForEvents reads a log beyond its end.
func TestAReadOfTheLogWaitsForEvents(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	k := h.muxDial("host")
	end, err := h.node.Host().Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.send(mux.Frame{Kind: mux.Call, ID: 1, Operation: "read_log", Body: jsonBody(`{"after":%d,"waitMs":50000}`, end)},
		mux.Frame{Kind: mux.Call, ID: 2, Operation: "read_log", Body: jsonBody(`{"after":%d,"waitMs":1}`, end)})
	k.wants(mux.Result, 2, `"entries":[]`)
	if _, err := fae.Send(t.Context(), "HOST", "news"); err != nil {
		t.Fatal(err)
	}
	k.wants(mux.Result, 1, `"news"`)
}

// TestIdleFollowsHoldNoGoroutines has many follows of messages and of agents wait on one connection.
func TestIdleFollowsHoldNoGoroutines(t *testing.T) {
	const many = 400 // of each kind
	h := openTestServer(t)
	fae := h.guest("fae")
	k := h.muxDial("host")
	if _, err := fae.Send(t.Context(), "HOST", "the first"); err != nil {
		t.Fatal(err)
	}
	before, used := runtime.NumGoroutine(), memoryInUse()
	for i := range uint64(many) {
		k.send(mux.Frame{Kind: mux.Follow, ID: 2*i + 1, Body: jsonBody(`{}`), Credit: 10},
			mux.Frame{Kind: mux.FollowAgents, ID: 2*i + 2, Body: jsonBody(`{}`), Credit: 1}) // no agent after the first
	}
	items := func(n int) {
		t.Helper()
		of := map[uint64]int{}
		for range n {
			f, text := k.receive()
			if of[f.ID]++; f.Kind != mux.Item || of[f.ID] > 1 {
				t.Fatalf("frame %d of %d: %s", f.Kind, f.ID, text)
			}
		}
	}
	items(2 * many)
	eventually.Holds(t, "the follows hold no goroutines", func() bool { return runtime.NumGoroutine() < before+20 })
	t.Logf("%d bytes for an idle follow", (int64(memoryInUse())-int64(used))/(2*many))
	if _, err := fae.Send(t.Context(), "HOST", "the second"); err != nil {
		t.Fatal(err)
	}
	items(many)
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

// TestWhoTakesNothingHoldsNobodyUp has one client leave its responses unread. Another on the same socket is answered.
func TestWhoTakesNothingHoldsNobodyUp(t *testing.T) {
	h := openTestServer(t)
	h.guest("fae")
	h.fillMailbox(60, 10_000)
	idle := h.openSilent(t)
	var calls string
	for id := range uint64(4) {
		calls += masked(0x82, string(mux.AppendClient(nil, mux.Frame{Kind: mux.Call, ID: id + 1, Operation: "list_messages", Body: jsonBody(`{"all":true}`)})))
	}
	if _, err := io.WriteString(idle, calls); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{Socket: h.server.socketPath, Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadFull(idle, make([]byte, 64<<10)); err != nil { // more of it waits for the client
		t.Fatal(err)
	}
	for range 20 {
		if err := c.Call(t.Context(), "count_messages", api.CountMessagesRequest{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.CopyN(io.Discard, idle, 512<<10); err != nil { // the rest comes once the client takes it
		t.Error(err)
	}
}
