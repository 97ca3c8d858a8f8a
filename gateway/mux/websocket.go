package mux

import (
	"parley"
	"parley/gateway/api"
	"parley/internal/websocket"
)

// Protocol is the WebSocket subprotocol of connections whose messages hold frames.
const Protocol = "parley.mux"

// WebSocket is a Conn over a WebSocket.
type WebSocket struct{ *websocket.Conn }

// Read implements Conn.
func (w WebSocket) Read() ([]byte, error) {
	kind, message, err := w.Conn.Read()
	if err == nil && kind != websocket.Binary {
		err = parley.Refuse(parley.InvalidArgument, "the messages of %s are binary", Protocol)
	}
	return message, err
}

// Write implements Conn.
func (w WebSocket) Write(message []byte) error { return w.Conn.Write(websocket.Binary, message) }

// Close implements Conn.
func (w WebSocket) Close(why error) {
	code := websocket.Normal
	switch parley.CodeOf(why) {
	case parley.NotRunning:
		code = websocket.GoingAway
	case parley.RateLimited, parley.QuotaExceeded:
		code = websocket.TryLater
	case parley.Unauthenticated, parley.InvalidArgument:
		code = websocket.Policy
	}
	w.Conn.Close(code, api.Shown(why).Error())
}
