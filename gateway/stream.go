package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Bounds of a stream of events.
const (
	slowest   = 10 * time.Second // what a reader may take for what it is sent
	heartbeat = 15 * time.Second
)

// sse writes server-sent events to one reader. A reader that does not read is cut off: it comes back with the last
// cursor that it has, and misses nothing.
type sse struct {
	w  http.ResponseWriter
	rc *http.ResponseController

	slowest time.Duration // what the reader may take for each write
}

// newSSE begins a stream of events.
func newSSE(w http.ResponseWriter, slowest time.Duration) (*sse, error) {
	s := &sse{w: w, rc: http.NewResponseController(w), slowest: slowest}
	if err := s.rc.SetReadDeadline(time.Time{}); err != nil { // what a request may take is no bound of its stream
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return s, s.write([]byte("retry: 500\n\n"))
}

// send writes one event. What an event has to say arrives whole, and its cursor with it, or not at all.
func (s *sse) send(name string, cursor uint64, what any) error {
	body, err := json.Marshal(what) // has no line breaks
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("event: " + name + "\n")
	if cursor > 0 {
		b.WriteString("id: " + strconv.FormatUint(cursor, 10) + "\n")
	}
	b.WriteString("data: ")
	b.Write(body)
	b.WriteString("\n\n")
	return s.write(b.Bytes())
}

// beat shows that the stream is alive.
func (s *sse) beat() error { return s.write([]byte(": \n\n")) }

func (s *sse) write(b []byte) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(s.slowest)); err != nil {
		return err
	}
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}
