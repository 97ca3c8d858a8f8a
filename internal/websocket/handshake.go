package websocket

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"time"

	"github.com/gobwas/ws"
	"golang.org/x/net/http/httpguts"
)

// acceptOf returns the proof that a server has read a key.
func acceptOf(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// asks reports whether a header asks for a WebSocket, or opens one.
func asks(h http.Header) bool {
	return httpguts.HeaderValuesContainsToken(h["Connection"], "Upgrade") && httpguts.HeaderValuesContainsToken(h["Upgrade"], "websocket")
}

// Check returns what is wrong with a request to open a WebSocket. The status is that of the response which says so.
func Check(r *http.Request) (status int, err error) {
	keys := r.Header.Values("Sec-WebSocket-Key")
	switch {
	case !r.ProtoAtLeast(1, 1) || !asks(r.Header):
		return http.StatusUpgradeRequired, fmt.Errorf("there is a WebSocket, and the request asks for no upgrade to one")
	case r.Method != http.MethodGet:
		return http.StatusMethodNotAllowed, fmt.Errorf("a WebSocket is opened with GET")
	case r.Header.Get("Sec-WebSocket-Version") != "13":
		return http.StatusBadRequest, fmt.Errorf("the version of WebSocket is not 13")
	case len(keys) != 1:
		return http.StatusBadRequest, fmt.Errorf("a WebSocket has one Sec-WebSocket-Key")
	}
	if key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0])); err != nil || len(key) != 16 {
		return http.StatusBadRequest, fmt.Errorf("the Sec-WebSocket-Key is not 16 bytes in base64")
	}
	return 0, nil
}

// Accept opens the WebSocket that a request asks for, which Check has passed. Protocol is that of those which the client
// offers; "" for none. The handler may return before the WebSocket ends.
func Accept(w http.ResponseWriter, r *http.Request, protocol string, o Options) (*Conn, error) {
	h := w.Header()
	h.Set("Upgrade", "websocket")
	h.Set("Connection", "Upgrade")
	h.Set("Sec-WebSocket-Accept", acceptOf(strings.TrimSpace(r.Header.Get("Sec-WebSocket-Key"))))
	if protocol != "" {
		h.Set("Sec-WebSocket-Protocol", protocol)
	}
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over the connection: %w", err)
	}
	came, err := rw.Reader.Peek(rw.Reader.Buffered())
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close() // it has broken
		return nil, err
	}
	return newConn(conn, came, ws.StateServerSide, o), nil
}

// Dial opens a WebSocket at an address of HTTP, and returns the protocol that the server has chosen. The context bounds that alone.
// The status is that of a response which refuses; 0 if there was none.
func Dial(ctx context.Context, client *http.Client, address string, header http.Header, protocol string, o Options) (c *Conn, chosen string, status int, err error) {
	var below net.Conn // what the response's body writes to, which does not say
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { below = i.Conn }})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, "", 0, err
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // it never fails
	if header != nil {
		r.Header = header.Clone()
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-WebSocket-Version", "13")
	r.Header.Set("Sec-WebSocket-Key", base64.StdEncoding.EncodeToString(key))
	if protocol != "" {
		r.Header.Set("Sec-WebSocket-Protocol", protocol)
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, "", 0, err
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	chosen = resp.Header.Get("Sec-WebSocket-Protocol")
	switch {
	case resp.StatusCode != http.StatusSwitchingProtocols:
		err = fmt.Errorf("the server answers with status %d and opens no WebSocket", resp.StatusCode)
	case !ok || !asks(resp.Header) ||
		resp.Header.Get("Sec-WebSocket-Accept") != acceptOf(r.Header.Get("Sec-WebSocket-Key")),
		chosen != "" && chosen != protocol, resp.Header.Get("Sec-WebSocket-Extensions") != "":
		err = fmt.Errorf("the server opens no WebSocket, or another than was asked for")
	}
	if err != nil {
		_ = resp.Body.Close() // nothing more is read
		return nil, "", resp.StatusCode, err
	}
	c = newConn(conn, nil, ws.StateClientSide, o)
	if s, ok := below.(syscall.Conn); ok && readsNow {
		c.out, _ = s.SyscallConn() // nil if it has none
	}
	return c, chosen, resp.StatusCode, nil
}
