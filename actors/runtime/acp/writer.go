package acp

import (
	"context"
	"encoding/json"
	"io"

	"github.com/coder/acp-go-sdk"

	"parley/actors/runtime"
)

// writer is the output of the protocol library: it writes each message to the agent as one line. It notes answers to
// requests, and the prompt.
type writer struct{ p *peer }

// Write implements io.Writer. It writes one message.
func (o writer) Write(line []byte) (int, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return 0, err
	}
	written := make(chan error, 1)
	o.p.In.Put(context.Background(), runtime.Frame{Line: line, Written: written})
	err := io.ErrClosedPipe
	select {
	case err = <-written:
	case <-o.p.In.Closed:
	}
	if m.Method == "" {
		o.p.reader.answer()
	}
	if err != nil {
		o.p.mu.Lock()
		o.p.broken = true
		o.p.mu.Unlock()
		return 0, err
	}
	if t, done := o.p.enter(); t != nil {
		if m.Method == acp.AgentMethodSessionPrompt {
			t.prompted()
		}
		done()
	}
	return len(line), nil
}
