package runtime

import (
	"context"
	"encoding/json"
	"io"

	"github.com/coder/acp-go-sdk"
)

// outlet writes messages to an agent, whole lines each. It sees which answer a request, and which is the prompt.
type outlet struct{ p *peer }

func (o outlet) Write(line []byte) (int, error) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return 0, err
	}
	written := make(chan error, 1)
	o.p.in.put(context.Background(), frame{line: line, written: written})
	err := io.ErrClosedPipe
	select {
	case err = <-written:
	case <-o.p.in.closed:
	}
	if m.Method == "" {
		o.p.gate.answer()
	}
	if err != nil {
		o.p.mu.Lock()
		o.p.broken = true
		o.p.mu.Unlock()
		return 0, err
	}
	if t, done := o.p.enter(); t != nil {
		if m.Method == acp.AgentMethodSessionPrompt {
			close(t.written)
		}
		done()
	}
	return len(line), nil
}
