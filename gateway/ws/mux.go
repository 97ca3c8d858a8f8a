package ws

import (
	"context"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/gateway/api"
	"parley/gateway/mux"
)

// serveMux serves a WebSocket whose messages hold frames of package mux.
func (s *Server) serveMux(conn *websocket.Conn, p api.Principal) {
	alive, end := context.WithCancel(s.severed)
	var pings sync.WaitGroup
	defer pings.Wait()
	defer end()
	pings.Go(func() { keepAlive(alive, conn, s.KeepAlive, s.FrameTime) })
	_ = mux.Serve(s.draining, s.severed, mux.NewWebSocket(conn, mux.MaxMessage), p, mux.Options{Backend: s.backend, Monitor: s.monitor, FrameTime: s.FrameTime}) // the client was told why
	_ = conn.CloseNow()                                                                                                                                          // it is closed, or broken
}

// keepAlive pings a client until ctx ends. It closes the connection of one that does not answer in time.
func keepAlive(ctx context.Context, conn *websocket.Conn, pause, patience time.Duration) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pinging, cancel := context.WithTimeout(ctx, patience)
		err := conn.Ping(pinging)
		cancel()
		if err != nil {
			_ = conn.CloseNow() // it is closed, or broken
			return
		}
	}
}
