package acp

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
	"parley/capabilities"
)

// Bounds of what an agent may have under way. The library queues 1,024 notifications and then gives up, and has no
// bound on requests. So it is given no more than this.
const (
	maxNotified  = 512
	maxRequested = 256
	maxHeld      = 8 << 20 // bytes of their messages
)

// reader is the input of the protocol library: an agent's messages, as long as there is room for them.
type reader struct {
	out    <-chan runtime.Piece
	stray  func(string) // takes what is no message
	closed chan struct{}
	rest   string

	mu        sync.Mutex
	notified  int           // notifications that came in
	handled   int           // those of them that were handled
	requested int           // requests that were not answered yet
	held      int           // bytes of all that is not handled yet
	moved     chan struct{} // closed, and replaced, when one of them changes
	readErr   error         // the reason why reading ended; nil at the end of the output
}

func newReader(out <-chan runtime.Piece, stray func(string)) *reader {
	return &reader{out: out, stray: stray, closed: make(chan struct{}), moved: make(chan struct{})}
}

// message has the parts of a message that tell its kind, as the library reads them.
type message struct {
	JSONRPC string            `json:"jsonrpc"`
	ID      *json.RawMessage  `json:"id"`
	Method  string            `json:"method"`
	Params  json.RawMessage   `json:"params"`
	Result  json.RawMessage   `json:"result"`
	Error   *acp.RequestError `json:"error"`
}

// Read implements io.Reader. It returns one message, or a part of one, at a time.
func (r *reader) Read(p []byte) (int, error) {
	for r.rest == "" {
		line, ok := <-r.out
		switch {
		case !ok:
			return 0, io.EOF
		case line.Err != nil:
			return 0, r.fail(line.Err)
		}
		admitted, err := r.admit(line.Text)
		if err != nil {
			return 0, err
		}
		if admitted {
			r.rest = strings.TrimRight(line.Text, "\n") + "\n"
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// admit blocks until there is room for a message. It reports false for a line that is no message.
func (r *reader) admit(text string) (bool, error) {
	var m message
	if json.Unmarshal([]byte(text), &m) != nil || m.ID == nil && m.Method == "" {
		r.stray(text)
		return false, nil
	}
	if capabilities.Nesting([]byte(text)) > runtime.MaxDepth {
		return false, r.fail(parley.Refuse(parley.TooLarge, "a message of the program nests deeper than %d", runtime.MaxDepth))
	}
	switch update := m.Method == acp.ClientMethodSessionUpdate; {
	case m.Method == "" || m.ID == nil && m.Method == "$/cancel_request":
		return true, nil
	case m.ID == nil && update:
		return true, r.take(&r.notified, len(m.Params), func() bool { return r.notified-r.handled < maxNotified })
	case m.ID == nil || update: // nobody waits for it
		return false, nil
	}
	return true, r.take(&r.requested, len(m.Params), func() bool { return r.requested < maxRequested })
}

// take counts one more message of a size when there is room.
func (r *reader) take(count *int, size int, room func() bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !room() || r.held > 0 && r.held+size > maxHeld {
		if err := r.wait(context.Background()); err != nil {
			return err
		}
	}
	*count++
	r.held += size
	return nil
}

// wait blocks until a count changes. The caller holds the lock.
func (r *reader) wait(ctx context.Context) error {
	moved := r.moved
	r.mu.Unlock()
	defer r.mu.Lock()
	select {
	case <-moved:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-r.closed:
		return io.ErrClosedPipe
	}
}

// handle notes that a message was handled. A request is still to be answered.
func (r *reader) handle(update bool, params json.RawMessage) {
	r.move(func() {
		r.held -= len(params)
		if update {
			r.handled++
		}
	})
}

// answer notes that a request was answered.
func (r *reader) answer() { r.move(func() { r.requested-- }) }

func (r *reader) move(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.moved)
	r.moved = make(chan struct{})
}

// catchUp blocks until all earlier notifications are handled. The library does not order requests after them.
func (r *reader) catchUp(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for before := r.notified; r.handled < before; {
		if r.wait(ctx) != nil {
			return
		}
	}
}

func (r *reader) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readErr = err
	return err
}

// err returns the error in the program's output, or nil.
func (r *reader) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readErr
}
