package agui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"parley/gateway/sanitize"
)

// event is one event of a run.
type event map[string]any

// stream writes events as server-sent events, and comments while there are none.
type stream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	stop  context.CancelFunc
	ended sync.WaitGroup
}

func newStream(ctx context.Context, w http.ResponseWriter) *stream {
	ctx, stop := context.WithCancel(ctx)
	s := &stream{w: w, stop: stop}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // no proxy holds events back
	w.WriteHeader(http.StatusOK)
	s.ended.Go(func() { s.keepAlive(ctx) })
	return s
}

// end stops the comments. Nothing is written afterwards.
func (s *stream) end() {
	s.stop()
	s.ended.Wait()
}

func (s *stream) keepAlive(ctx context.Context) {
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.write(": keep-alive\n\n")
		case <-ctx.Done():
			return
		}
	}
}

func (s *stream) send(e event) {
	text, err := json.Marshal(e)
	if err != nil {
		text = []byte(`{"type":"RUN_ERROR","message":"internal error","code":"INTERNAL"}`)
	}
	s.write(fmt.Sprintf("data: %s\n\n", sanitize.JSON(text)))
}

// write writes a piece. An error is that of a client that has gone away, whose context ends too.
func (s *stream) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.w.Write([]byte(text)); err == nil {
		_ = http.NewResponseController(s.w).Flush()
	}
}
