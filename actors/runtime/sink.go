package runtime

import (
	"context"
	"encoding/json"
	"os"
	"sync"
)

// frame is a line for a program. written, if any, has room for one, and is told when it was written or never will be.
type frame struct {
	line    []byte
	written chan error
}

func frameOf(v any) frame {
	line, err := json.Marshal(v)
	if err != nil { // what is sent was read as JSON before, or is text
		line = []byte(`{"type":"error","code":"INTERNAL","message":"an answer is not JSON"}`)
	}
	return frame{line: append(line, '\n')}
}

// waitingFrames is how many lines may wait for a program that does not read.
const waitingFrames = 256

// sink writes a program's input, one line after the other.
type sink struct {
	file   *os.File
	frames chan frame
	once   sync.Once
	closed chan struct{}
	ended  chan struct{}
}

func newSink(f *os.File) *sink {
	return &sink{file: f, frames: make(chan frame, waitingFrames), closed: make(chan struct{}), ended: make(chan struct{})}
}

// write writes what is put until it is closed. A program that does not read any more is none of its concern.
func (s *sink) write() {
	defer close(s.ended)
	for {
		select {
		case f := <-s.frames:
			_, err := s.file.Write(f.line)
			if f.written != nil {
				f.written <- err
			}
		case <-s.closed:
			return
		}
	}
}

// put writes a line when those before it are written.
func (s *sink) put(ctx context.Context, f frame) {
	select {
	case s.frames <- f:
	case <-s.closed:
	case <-ctx.Done():
	}
}

// offer writes a line unless too many wait already.
func (s *sink) offer(f frame) {
	select {
	case s.frames <- f:
	default:
	}
}

// close ends the program's input.
func (s *sink) close() {
	s.once.Do(func() {
		close(s.closed)
		s.file.Close()
	})
}
