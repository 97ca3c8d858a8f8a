package mux

import (
	"context"

	"github.com/coder/websocket"

	"parley"
	"parley/gateway/api"
)

// Protocol is the WebSocket subprotocol of connections whose messages hold frames.
const Protocol = "parley.mux"

// WebSocket is a Conn over a WebSocket.
type WebSocket struct{ conn *websocket.Conn }

// NewWebSocket returns the Conn over a WebSocket, which is the caller's to close. A message has at most so many bytes.
func NewWebSocket(conn *websocket.Conn, most int64) WebSocket {
	conn.SetReadLimit(most)
	return WebSocket{conn}
}

// Read implements Conn.
func (w WebSocket) Read(ctx context.Context) ([]byte, error) {
	kind, message, err := w.conn.Read(ctx)
	if err == nil && kind != websocket.MessageBinary {
		err = parley.Refuse(parley.InvalidArgument, "the messages of %s are binary", Protocol)
	}
	return message, err
}

// Write implements Conn.
func (w WebSocket) Write(ctx context.Context, message []byte) error {
	return w.conn.Write(ctx, websocket.MessageBinary, message)
}

// Close implements Conn.
func (w WebSocket) Close(why error) {
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
