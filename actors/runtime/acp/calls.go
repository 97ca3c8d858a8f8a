package acp

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"parley/actors/runtime"
)

// How many calls are remembered, for a request for permission that only names one, and up to what size of their updates.
const (
	keptCalls    = 64
	keptCallSize = 64 << 10
)

// toolCall is what an agent has told of a call that it makes, or of a change to one.
type toolCall struct {
	ID       string          `json:"toolCallId"`
	Title    string          `json:"title"`
	Kind     string          `json:"kind"`
	Status   string          `json:"status"`
	RawInput json.RawMessage `json:"rawInput"`
	Content  json.RawMessage `json:"content"`
}

// with gives the call as it is after a change.
func (c toolCall) with(change toolCall) toolCall {
	c.ID = change.ID
	for _, part := range []struct{ old, new *string }{{&c.Title, &change.Title}, {&c.Kind, &change.Kind}, {&c.Status, &change.Status}} {
		if *part.new != "" {
			*part.old = *part.new
		}
	}
	for _, part := range []struct{ old, new *json.RawMessage }{{&c.RawInput, &change.RawInput}, {&c.Content, &change.Content}} {
		if isGiven(*part.new) {
			*part.old = *part.new
		}
	}
	return c
}

// tooLong stands for the input of a call that is too long to be remembered, and to be shown.
var tooLong = json.RawMessage(`"too long"`)

// isShowable reports whether all of a call can be shown.
func (c toolCall) isShowable() bool { return !bytes.Equal(c.RawInput, tooLong) }

func isGiven(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// calls remembers the newest calls of a turn.
type calls struct {
	mu    sync.Mutex
	byID  map[string]toolCall
	order []string
}

// note notes what an agent tells of a call.
func (c *calls) note(update json.RawMessage) {
	var change toolCall
	if json.Unmarshal(update, &change) != nil || len(change.ID) > runtime.MaxID {
		return
	}
	if len(update) > keptCallSize {
		change = toolCall{ID: change.ID, RawInput: tooLong}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.byID[change.ID]; !known {
		if len(c.order) == keptCalls {
			delete(c.byID, c.order[0])
			c.order = slices.Delete(c.order, 0, 1)
		}
		c.order = append(c.order, change.ID)
	}
	c.byID[change.ID] = c.byID[change.ID].with(change)
}

// complete gives a call with what was told of it before.
func (c *calls) complete(call toolCall) toolCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[call.ID].with(call)
}
