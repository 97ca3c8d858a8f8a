package client_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"parley/gateway/api"
	"parley/gateway/mux"
)

// cuttingProxy passes requests to a node. It cuts the connection in place of a number of responses: those of one
// operation, or of any if the operation is "".
type cuttingProxy struct {
	url  string
	node string
	of   string
	cuts atomic.Int64

	plainOnly bool // it knows no WebSockets

	sockets atomic.Int64 // connections of mux.Protocol that were opened, or refused with plainOnly
	plain   atomic.Int64 // calls by HTTP

	mu     sync.Mutex
	begun  map[string]int   // frames of clients, by the operations that they begin
	frames map[mux.Kind]int // frames of the node
}

// begunOf returns how many frames have begun an operation.
func (c *cuttingProxy) begunOf(operation string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun[operation]
}

// framesOf returns how many frames of a kind the node has sent.
func (c *cuttingProxy) framesOf(k mux.Kind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames[k]
}

func openCuttingProxy(t *testing.T, node, of string) *cuttingProxy {
	t.Helper()
	c := &cuttingProxy{node: node, of: of, begun: map[string]int{}, frames: map[mux.Kind]int{}}
	l := httptest.NewServer(c)
	c.url = l.URL
	t.Cleanup(l.Close)
	return c
}

// cutsNow reports whether to cut the response to an operation.
func (c *cuttingProxy) cutsNow(operation string) bool {
	return strings.HasSuffix("/"+operation, c.of) && c.cuts.Add(-1) >= 0
}

// ServeHTTP passes one call to the node.
func (c *cuttingProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == api.WebSocketPath && c.plainOnly {
		c.sockets.Add(1)
		http.NotFound(w, r)
		return
	}
	if r.URL.Path == api.WebSocketPath {
		c.passMessages(w, r)
		return
	}
	c.plain.Add(1)
	there, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+c.node+r.URL.Path, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	there.Header, there.ContentLength = r.Header, r.ContentLength
	answer, err := http.DefaultTransport.RoundTrip(there)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	if c.cutsNow(r.URL.Path) {
		_, _ = io.Copy(io.Discard, answer.Body) // the node has performed the call
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // the client may have gone away
}

// passMessages passes the messages of a WebSocket until one is cut.
func (c *cuttingProxy) passMessages(w http.ResponseWriter, r *http.Request) {
	var offered []string // a token may be among them
	for protocol := range strings.SplitSeq(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		offered = append(offered, strings.TrimSpace(protocol))
	}
	header := http.Header{"Authorization": r.Header["Authorization"]}
	node, _, err := websocket.Dial(r.Context(), "ws://"+c.node+r.URL.Path, &websocket.DialOptions{HTTPHeader: header, Subprotocols: offered})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer node.CloseNow()
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{node.Subprotocol()}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	if node.Subprotocol() == mux.Protocol {
		c.sockets.Add(1)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var operations [1 << 16]atomic.Pointer[string] // of the calls, by ID
	go func() {
		defer cancel()
		_ = pump(ctx, conn, node, func(message []byte) error {
			return mux.ReadClient(message, func(f mux.Frame) error {
				name := f.Operation
				switch f.Kind {
				case mux.Ask:
					name = "form"
				case mux.Follow:
					name = "follow"
				case mux.FollowAgents:
					name = "follow_agents"
				case mux.Cancel:
					c.mu.Lock()
					defer c.mu.Unlock()
					c.begun["cancel"]++
					return nil
				case mux.Credit:
					return nil
				}
				c.mu.Lock()
				c.begun[name]++
				c.mu.Unlock()
				operations[f.ID%uint64(len(operations))].Store(&name)
				return nil
			})
		})
	}()
	_ = pump(ctx, node, conn, func(message []byte) error {
		return mux.ReadNode(message, func(f mux.Frame) error {
			c.mu.Lock()
			c.frames[f.Kind]++
			c.mu.Unlock()
			if name := operations[f.ID%uint64(len(operations))].Load(); name != nil && c.cutsNow(*name) {
				return io.EOF
			}
			return nil
		})
	})
}

// pump passes messages until look returns an error.
func pump(ctx context.Context, from, to *websocket.Conn, look func([]byte) error) error {
	from.SetReadLimit(-1)
	for {
		kind, message, err := from.Read(ctx)
		if err == nil && kind == websocket.MessageBinary {
			err = look(message)
		}
		if err == nil {
			err = to.Write(ctx, kind, message)
		}
		if err != nil {
			return err
		}
	}
}
