package runtime

import (
	"context"
	"encoding/json"
	"os"
	"sync"
)

// Frame is a line for a program. Written, if not nil, is buffered and receives the result of writing it.
type Frame struct {
	Line    []byte
	Written chan error
}

// NewFrame returns the frame of a value, as one line of JSON.
func NewFrame(v any) Frame {
	line, err := json.Marshal(v)
	if err != nil { // what is sent was read as JSON before, or is text
		line = []byte(`{"type":"error","code":"INTERNAL","message":"an answer is not JSON"}`)
	}
	return Frame{Line: append(line, '\n')}
}

// waitingFrames bounds the lines that wait for a program that does not read.
const waitingFrames = 256

// LineWriter writes lines to a program's input. It may be used by many goroutines.
type LineWriter struct {
	file   *os.File
	frames chan Frame
	once   sync.Once
	Closed chan struct{} // closed by Close
	ended  chan struct{}
}

func newLineWriter(f *os.File) *LineWriter {
	return &LineWriter{file: f, frames: make(chan Frame, waitingFrames), Closed: make(chan struct{}), ended: make(chan struct{})}
}

// write writes queued lines until Close. It ignores the error of a program that no longer reads.
func (s *LineWriter) write() {
	defer close(s.ended)
	for {
		select {
		case f := <-s.frames:
			_, err := s.file.Write(f.Line)
			if f.Written != nil {
				f.Written <- err
			}
		case <-s.Closed:
			return
		}
	}
}

// Put queues a line. It blocks while the queue is full, until ctx ends or the input is closed.
func (s *LineWriter) Put(ctx context.Context, f Frame) {
	select {
	case s.frames <- f:
	case <-s.Closed:
	case <-ctx.Done():
	}
}

// Offer queues a line, and drops it if the queue is full.
func (s *LineWriter) Offer(f Frame) {
	select {
	case s.frames <- f:
	default:
	}
}

// Close closes the program's input. Closing again does nothing.
func (s *LineWriter) Close() {
	s.once.Do(func() {
		close(s.Closed)
		s.file.Close()
	})
}
