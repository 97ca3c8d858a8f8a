package mux

import (
	"context"
	"io"
	"slices"

	"github.com/coder/websocket"

	"parley"
	"parley/gateway/api"
)

// Protocol is the WebSocket subprotocol of connections whose messages hold frames.
const Protocol = "parley.mux"

// WebSocket is a Conn over a WebSocket.
type WebSocket struct {
	conn   *websocket.Conn
	buffer []byte // of the last message
}

// NewWebSocket returns the Conn over a WebSocket, which is the caller's to close. A message has at most so many bytes.
func NewWebSocket(conn *websocket.Conn, most int64) *WebSocket {
	conn.SetReadLimit(most)
	return &WebSocket{conn: conn}
}

// The sizes of buffers of messages, in bytes.
const (
	firstBuffer = 4 << 10
	maxBuffer   = 256 << 10 // of one that is kept
)

// Read implements Conn.
func (w *WebSocket) Read() ([]byte, error) {
	if cap(w.buffer) > maxBuffer || w.buffer == nil {
		w.buffer = make([]byte, 0, firstBuffer)
	}
	kind, r, err := w.conn.Reader(context.Background())
	if err == nil && kind != websocket.MessageBinary {
		err = parley.Refuse(parley.InvalidArgument, "the messages of %s are binary", Protocol)
	}
	for b := w.buffer[:0]; err == nil; {
		var n int
		n, err = r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			w.buffer = b
			return b, nil
		}
		if len(b) == cap(b) {
			b = slices.Grow(b, len(b))
		}
	}
	return nil, err
}

// Write implements Conn.
func (w *WebSocket) Write(ctx context.Context, message []byte) error {
	return w.conn.Write(ctx, websocket.MessageBinary, message)
}

// Cut implements Conn.
func (w *WebSocket) Cut() { _ = w.conn.CloseNow() } // it may have broken already

// Close implements Conn.
func (w *WebSocket) Close(why error) {
	code := websocket.StatusNormalClosure
	switch parley.CodeOf(why) {
	case parley.NotRunning:
		code = websocket.StatusGoingAway
	case parley.RateLimited, parley.QuotaExceeded:
		code = websocket.StatusTryAgainLater
	case parley.Unauthenticated, parley.InvalidArgument:
		code = websocket.StatusPolicyViolation
	}
	reason := api.Shown(why).Error()
	_ = w.conn.Close(code, reason[:min(len(reason), maxReason)]) // a client that has gone away misses nothing
}

// maxReason bounds the reason of a close frame, in bytes.
const maxReason = 120
