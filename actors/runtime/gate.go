package runtime

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/capabilities"
)

// Bounds of what an agent may have under way. The library queues 1,024 notifications and then gives up, and has no bound
// on requests, so it is given no more than this.
const (
	maxNotified  = 512
	maxRequested = 256
	maxHeld      = 8 << 20 // bytes of what they say
)

// gate is what the library reads: an agent's lines, as long as there is room for what they say.
type gate struct {
	out    <-chan piece
	stray  func(string) // takes what is no message
	closed chan struct{}
	rest   string

	mu        sync.Mutex
	notified  int           // notifications that came in
	handled   int           // those of them that were handled
	requested int           // requests that were not answered yet
	held      int           // bytes of all that is not handled yet
	moved     chan struct{} // closed, and replaced, when one of them changes
	fault     error         // why nothing more is read; nil at the end of the output
}

func newGate(out <-chan piece, stray func(string)) *gate {
	return &gate{out: out, stray: stray, closed: make(chan struct{}), moved: make(chan struct{})}
}

// message is what of a message tells what it is; as the library reads it.
type message struct {
	JSONRPC string            `json:"jsonrpc"`
	ID      *json.RawMessage  `json:"id"`
	Method  string            `json:"method"`
	Params  json.RawMessage   `json:"params"`
	Result  json.RawMessage   `json:"result"`
	Error   *acp.RequestError `json:"error"`
}

// Read gives what the agent says, one line or a part of it at a time.
func (g *gate) Read(p []byte) (int, error) {
	for g.rest == "" {
		line, ok := <-g.out
		switch {
		case !ok:
			return 0, io.EOF
		case line.err != nil:
			return 0, g.fail(line.err)
		}
		admitted, err := g.admit(line.text)
		if err != nil {
			return 0, err
		}
		if admitted {
			g.rest = strings.TrimRight(line.text, "\n") + "\n"
		}
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// admit waits until there is room for a message. It is false for what is none.
func (g *gate) admit(text string) (bool, error) {
	var m message
	if json.Unmarshal([]byte(text), &m) != nil || m.ID == nil && m.Method == "" {
		g.stray(text)
		return false, nil
	}
	if capabilities.Nesting([]byte(text)) > maxDepth {
		return false, g.fail(parley.Refuse(parley.TooLarge, "a message of the program nests deeper than %d", maxDepth))
	}
	switch update := m.Method == acp.ClientMethodSessionUpdate; {
	case m.Method == "" || m.ID == nil && m.Method == "$/cancel_request":
		return true, nil
	case m.ID == nil && update:
		return true, g.take(&g.notified, len(m.Params), func() bool { return g.notified-g.handled < maxNotified })
	case m.ID == nil || update: // nobody waits for it
		return false, nil
	}
	return true, g.take(&g.requested, len(m.Params), func() bool { return g.requested < maxRequested })
}

// take counts one more of some size, when there is room.
func (g *gate) take(count *int, size int, room func() bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !room() || g.held > 0 && g.held+size > maxHeld {
		if err := g.wait(context.Background()); err != nil {
			return err
		}
	}
	*count++
	g.held += size
	return nil
}

// wait waits for a count to change. The caller has the lock.
func (g *gate) wait(ctx context.Context) error {
	moved := g.moved
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case <-moved:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-g.closed:
		return io.ErrClosedPipe
	}
}

// handle says that a message with such parameters was handled: an update, or a request, which is still to be answered.
func (g *gate) handle(update bool, params json.RawMessage) {
	g.move(func() {
		g.held -= len(params)
		if update {
			g.handled++
		}
	})
}

// answer says that a request was answered.
func (g *gate) answer() { g.move(func() { g.requested-- }) }

func (g *gate) move(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	close(g.moved)
	g.moved = make(chan struct{})
}

// catchUp waits until the notifications that came in before now are handled: the library does not hold a request back
// until those before it are.
func (g *gate) catchUp(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for before := g.notified; g.handled < before; {
		if g.wait(ctx) != nil {
			return
		}
	}
}

func (g *gate) fail(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = err
	return err
}

// why gives what was wrong with the program's output; nil if nothing was.
func (g *gate) why() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}
