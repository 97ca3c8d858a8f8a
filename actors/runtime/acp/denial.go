package acp

import (
	"fmt"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"

	"parley/actors/runtime"
)

// maxExplained bounds the prompts of one run that explain denials.
const maxExplained = 16

// denials are the reasons of the calls that were denied in a turn. Agents get no reason with the outcome of a permission
// request: one goes on without it, others end their turn. So a prompt tells it once the agent has responded.
type denials struct {
	mu      sync.Mutex
	pending []string
	known   map[string]bool
	prompts int
}

// explainLater notes the reason of a denied call. The same is told once.
func (t *turn) explainLater(c toolCall, reason string) {
	if reason == "" {
		return
	}
	text := fmt.Sprintf("The call %q was denied: %s", c.subject(t.peer.agent), reason)
	d := &t.denials
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[text] || len(d.known) == maxExplained {
		return
	}
	if d.known == nil {
		d.known = map[string]bool{}
	}
	d.known[text] = true
	d.pending = append(d.pending, text)
}

// take returns the text of the next prompt, "" if there is none.
func (d *denials) take() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) == 0 || d.prompts == maxExplained {
		return ""
	}
	d.prompts++
	text := strings.Join(d.pending, "\n")
	d.pending = nil
	return text
}

// explain prompts the agent with the reasons of denied calls, if there are any and it has ended its turn. It reports
// whether another response follows.
func (t *turn) explain(a stopped) bool {
	if a.err != nil || a.reason != acp.StopReasonEndTurn && a.reason != acp.StopReasonCancelled || t.err != nil || t.stopping || t.left || t.ctx.Err() != nil {
		return false
	}
	text := t.denials.take()
	if text == "" {
		return false
	}
	shown := text
	if len(shown) > thoughtSize {
		shown = shown[:runtime.CutAt(shown, thoughtSize)]
	}
	t.deliver()
	t.notices.flush(t.writing)
	t.notices.put(t.writing, map[string]any{"sessionUpdate": "user_message_chunk", "content": map[string]string{"type": "text", "text": shown}})
	t.prompt(text)
	return true
}
