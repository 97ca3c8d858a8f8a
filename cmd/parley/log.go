package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// logWriter writes a log in the background. The log of a node is mostly a file on the disk of its state folder. When that
// disk hangs, a logger that waits for it holds its lock, and everything that logs waits with it.
type logWriter struct {
	to io.Writer

	mu      sync.Mutex
	waiting []byte
	left    int           // lines that were left out, since too much waits
	wake    chan struct{} // receives when something waits; closed by Close
	closed  bool
	ended   chan struct{}
}

const (
	maxLogWaiting = 1 << 20 // bytes
	logPatience   = 2 * time.Second
)

func newLogWriter(to io.Writer) *logWriter {
	w := &logWriter{to: to, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.run()
	return w
}

// Write takes a line. It never blocks for the log, and never fails.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return w.to.Write(line)
	case len(w.waiting)+len(line) > maxLogWaiting:
		w.left++
	default:
		w.waiting = append(w.waiting, line...)
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

func (w *logWriter) run() {
	defer close(w.ended)
	for range w.wake {
		for text := w.take(); len(text) > 0; text = w.take() {
			_, _ = w.to.Write(text) // there is no other place to say so
		}
	}
}

func (w *logWriter) take() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.waiting
	if w.left > 0 {
		text = fmt.Appendf(text, "time=%s level=WARN msg=\"the log could not be written for a while\" lines=%d\n", time.Now().Format(time.RFC3339), w.left)
	}
	w.waiting, w.left = nil, 0
	return text
}

// Close waits a little until all is written. Later lines are written at once.
func (w *logWriter) Close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.wake)
	}
	w.mu.Unlock()
	select {
	case <-w.ended:
	case <-time.After(logPatience):
	}
}
