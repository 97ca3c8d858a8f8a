package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"

	"parley/gateway/api"
	"parley/gateway/mux"
	"parley/internal/eventually"
	"parley/internal/pack"
)

// atRest bounds what the node holds for a connection at rest, in bytes of heap and stacks.
const atRest = 20 << 10

// TestGrowthOfConnections opens connections on which one call was answered. Each takes little memory, and one goroutine.
func TestGrowthOfConnections(t *testing.T) {
	h := openTestServer(t)
	h.openRest(t, 20) // what is made once
	before, goroutines := memoryNow(), runtime.NumGoroutine()
	const connections = 400
	h.openRest(t, connections)
	eventually.Holds(t, "each has one goroutine", func() bool { return runtime.NumGoroutine() <= goroutines+connections+10 })
	each := (memoryNow() - before) / connections
	t.Logf("%d bytes for each", each)
	if each > atRest {
		t.Errorf("a connection at rest takes %d bytes, over %d", each, atRest)
	}
}

// TestGrowthOfConnectionsWithTexts opens WebSockets with texts, as pages and clients of other systems do, of an agent with mail. Each takes
// little memory too, and one goroutine.
func TestGrowthOfConnectionsWithTexts(t *testing.T) {
	h := openTestServer(t)
	fae := h.guest("fae")
	for range 100 {
		if _, err := fae.Send(t.Context(), "HOST", "a note"); err != nil {
			t.Fatal(err)
		}
	}
	h.dial("fae").send(`{"type":"ask_request","id":"1","payload":{"prompt":"?"}}`)
	h.openTexts(t, 20) // what is made once
	before, goroutines := memoryNow(), runtime.NumGoroutine()
	const connections = 400
	h.openTexts(t, connections)
	eventually.Holds(t, "each has one goroutine", func() bool {
		if n := h.server.now(api.KindWebSockets); n < connections {
			t.Fatalf("%d are left", n)
		}
		return runtime.NumGoroutine() <= goroutines+connections+10
	})
	each := (memoryNow() - before) / connections
	t.Logf("%d bytes for each", each)
	if each > atRest {
		t.Errorf("a connection at rest takes %d bytes, over %d", each, atRest)
	}
}

// openTexts opens WebSockets of the host's, and awaits the question that waits on each. The client's side has no buffers and no goroutines.
func (h *testServer) openTexts(t *testing.T, connections int) {
	t.Helper()
	for range connections {
		conn, err := net.Dial("tcp", h.server.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", api.WebSocketPath, h.tokens["host"])
		if err != nil {
			t.Fatal(err)
		}
		received := bufio.NewReader(conn)
		if r, err := http.ReadResponse(received, nil); err != nil || r.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(r, err)
		}
		if _, err := received.ReadString('}'); err != nil {
			t.Fatal(err)
		}
	}
}

// memoryNow returns the bytes of heap and stacks that are in use.
func memoryNow() int64 {
	for range 3 { // stacks shrink by half each time
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// openRest opens connections to the socket, and makes a call on each.
func (h *testServer) openRest(t *testing.T, connections int) {
	t.Helper()
	call := masked(0x82, string(mux.AppendClient(nil, mux.Frame{Kind: mux.Call, ID: 1, Operation: "locate", Body: pack.AppendString(pack.AppendString(pack.AppendMap(nil, 1), "name"), "@self")})))
	for range connections {
		conn := h.openSilent(t)
		if _, err := io.WriteString(conn, call); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
	}
}

// openSilent opens a connection of frames to the socket. The client's side has no buffers and no goroutines.
func (h *testServer) openSilent(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", h.server.socketPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: parley\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\n\r\n", api.WebSocketPath, mux.Protocol)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || r.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(r, err)
	}
	return conn
}
