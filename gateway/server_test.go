package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/actors"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/backend"
	"parley/gateway/bridge"
	"parley/gateway/ws"
)

// testServer is a node with its server. It can be closed and opened again.
type testServer struct {
	t       *testing.T
	folder  string
	node    *actors.Node
	server  *Server
	tokens  map[string]string // by agent
	clients map[string]*wsClient
	limits  api.Limits
	listen  string         // "" means TCP too
	network bridge.Network // of receivers of A2A
	instead func(ws.Backend) ws.Backend
	shut    bool
}

func openTestServer(t *testing.T) *testServer {
	t.Helper()
	h := &testServer{t: t, folder: t.TempDir(), tokens: map[string]string{}, clients: map[string]*wsClient{}}
	h.open(nil)
	t.Cleanup(func() {
		for _, k := range h.clients {
			k.disconnect()
		}
		if !h.shut {
			h.close()
		}
	})
	h.tokens["host"] = makeToken(t, h.node.Host(), "read", "ask", "answer", "admin")
	return h
}

// open starts the node and its server. change, if given, changes the server before it serves.
func (h *testServer) open(change func(*Server)) {
	h.t.Helper()
	node, err := actors.Open(context.Background(), actors.Options{Folder: h.folder, Name: "test"})
	if err != nil {
		h.t.Fatal(err)
	}
	server, err := Listen(node, Options{
		Socket: filepath.Join(h.folder, "parley.sock"), Listen: cmp.Or(h.listen, "127.0.0.1:0"), Version: "test", Limits: h.limits, Log: slog.New(slog.DiscardHandler),
		Coders: filepath.Join(h.folder, "coders.json"), Pushes: filepath.Join(h.folder, "a2a-push"), PushNetwork: h.network, instead: h.instead,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if change != nil {
		change(server)
	}
	server.Serve()
	h.node, h.server, h.shut = node, server, false
}

func (h *testServer) close() {
	h.t.Helper()
	h.shut = true
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
func (h *testServer) guest(name string) *actors.Agent {
	h.t.Helper()
	a, err := h.node.Host().Make(h.t.Context(), actors.NewAgent{Kind: events.Guest, Name: name})
	if err != nil {
		h.t.Fatal(err)
	}
	h.tokens[name] = makeToken(h.t, a, "read", "ask", "answer")
	return a
}

// wsClient is a WebSocket client.
type wsClient struct {
	t    *testing.T
	conn *websocket.Conn
}

// dial opens a connection for an agent.
func (h *testServer) dial(agent string) *wsClient {
	h.t.Helper()
	conn, r, err := websocket.Dial(h.t.Context(), "ws://"+h.server.Address()+api.WebSocketPath, &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + h.tokens[agent]}},
	})
	if err != nil {
		h.t.Fatalf("%v: %v", err, r)
	}
	conn.SetReadLimit(16 << 20)
	k := &wsClient{h.t, conn}
	h.t.Cleanup(k.disconnect)
	return k
}

func (k *wsClient) disconnect() { _ = k.conn.CloseNow() }

func (k *wsClient) send(frames ...string) {
	k.t.Helper()
	for _, f := range frames {
		if err := k.conn.Write(k.t.Context(), websocket.MessageText, []byte(f)); err != nil {
			k.t.Fatal(err)
		}
	}
}

// receive returns the next frame.
func (k *wsClient) receive() string {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, text, err := k.conn.Read(ctx)
	if err != nil {
		k.t.Fatalf("wanted a frame: %v", err)
	}
	return string(text)
}

// receiveMembers returns the next frame as a map of its members.
func (k *wsClient) receiveMembers() map[string]any {
	k.t.Helper()
	var f map[string]any
	if err := json.Unmarshal([]byte(k.receive()), &f); err != nil {
		k.t.Fatal(err)
	}
	return f
}

// closeStatus waits for the end of the connection and returns its status code.
func (k *wsClient) closeStatus() websocket.StatusCode {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		_, _, err := k.conn.Read(ctx)
		if err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// want fails unless the frame contains all texts.
func want(t *testing.T, frame string, texts ...string) {
	t.Helper()
	for _, s := range texts {
		if !strings.Contains(frame, s) {
			t.Errorf("got %s, want %s in it", frame, s)
		}
	}
}

// serverOp adds an operation outside the table.
func serverOp[Req interface{ Actor() string }, Resp any](s *Server, name string, needs api.Scope, perform func(context.Context, Req) (Resp, error)) {
	backend.Add(s.backend, api.Operation{Name: name, Scope: needs}, perform)
}

// nodeOp adds an operation of the whole node outside the table.
func nodeOp[Req interface{ Actor() string }, Resp any](s *Server, name string, needs api.Scope, perform func(context.Context, Req) (Resp, error)) {
	backend.Add(s.backend, api.Operation{Name: name, Scope: needs, OfNode: true}, perform)
}

// waitingOp adds an operation of the whole node whose calls may wait.
func waitingOp[Req interface{ Actor() string }, Resp any](s *Server, name string, needs api.Scope, perform func(context.Context, Req) (Resp, error)) {
	backend.Add(s.backend, api.Operation{Name: name, Scope: needs, OfNode: true, Waits: true}, perform)
}

// now returns the number of places of a kind in use.
func (s *Server) now(k api.Kind) (sum int64) {
	for _, l := range s.backend.Limits() {
		if l.Name == api.Resources()[k].Key {
			sum += l.Now
		}
	}
	return sum
}

// guests returns the places of a kind that guests use.
func (s *Server) guests(k api.Kind) api.LimitState {
	for _, l := range s.backend.Limits() {
		if l.Name == api.Resources()[k].Key && l.For == "agents" {
			return l
		}
	}
	return api.LimitState{}
}
