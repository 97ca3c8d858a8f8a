package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
	"parley/mailbox/rule"
)

// maxTool bounds the bytes of a call's title that name its tool.
const maxTool = 200

// permissionRequest is an agent's request for permission to make a call.
type permissionRequest struct {
	SessionID string                 `json:"sessionId"`
	ToolCall  toolCall               `json:"toolCall"`
	Options   []acp.PermissionOption `json:"options"`
}

// permit asks the host whether a call may be made.
func permit(ctx context.Context, t *turn, params json.RawMessage) (any, error) {
	var r permissionRequest
	if err := t.parse(params, &r, &r.SessionID); err != nil {
		return nil, err
	}
	t.settle(ctx)
	call := t.notices.calls.complete(r.ToolCall)
	d, err := runtime.Decision{}, error(parley.Refuse(parley.TooLarge, "the call is too long to be shown"))
	if call.isShowable() {
		d, err = t.host.Approve(ctx, callOf(call))
	}
	switch {
	case t.isEnding():
		d = runtime.Decision{Ended: true}
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil: // it cannot be asked, so it is not allowed
		d = runtime.Decision{}
		t.warn("what the agent asks cannot be asked: " + parley.AsError(err).Error())
	}
	option := optionFor(d, r.Options)
	if d.Allowed && !d.Ended && (option == nil || option.Kind == acp.PermissionOptionKindRejectOnce) {
		t.warn("what was allowed is not, because the agent has no option for this one call")
	}
	outcome := acp.NewRequestPermissionOutcomeCancelled()
	if option != nil {
		outcome = acp.NewRequestPermissionOutcomeSelected(option.OptionId)
	}
	return acp.RequestPermissionResponse{Meta: reasonOf(d), Outcome: outcome}, nil
}

// reasonOf returns the metadata with the reason of a decision. The protocol has no other place for it.
func reasonOf(d runtime.Decision) map[string]any {
	if d.Reason == "" {
		return nil
	}
	return map[string]any{"parley/reason": d.Reason}
}

// callOf returns the call that is shown: its tool and its input. The tool is the title of the call, or else its kind.
func callOf(c toolCall) runtime.Call {
	if command, ok := commandOf(c); ok {
		return command
	}
	if edit, ok := editOf(c); ok {
		return edit
	}
	tool, input := cmp.Or(c.Title, c.Kind, "tool"), map[string]json.RawMessage{}
	if shown := plainName(tool); shown != tool {
		input["title"] = plainJSON(tool) // all of it is to be seen
		tool = shown
	}
	if isGiven(c.Content) {
		input["content"] = c.Content
	}
	if isGiven(c.RawInput) {
		if len(input) == 0 {
			return runtime.Call{Tool: tool, Input: compact(c.RawInput)}
		}
		input["rawInput"] = c.RawInput
	}
	return runtime.Call{Tool: tool, Input: string(plainJSON(input))}
}

// commandOf returns the call of a command line. Its tool is its kind, since its title differs each time and no standing
// rule could match it. The title is shown beside the command, as descriptions of other agents are.
func commandOf(c toolCall) (runtime.Call, bool) {
	var input map[string]json.RawMessage
	var line string
	if c.Kind != string(acp.ToolKindExecute) || isGiven(c.Content) || json.Unmarshal(c.RawInput, &input) != nil || json.Unmarshal(input["command"], &line) != nil {
		return runtime.Call{}, false
	}
	if rule.CheckInput(string(c.RawInput)) != nil { // a key that stands twice would be lost
		return runtime.Call{}, false
	}
	if _, taken := input["title"]; !taken && c.Title != "" {
		input["title"] = plainJSON(c.Title)
	}
	return runtime.Call{Tool: c.Kind, Input: string(plainJSON(input))}, true
}

// editOf returns the call of an edit that is shown as diffs. Its tool is its kind, so that a standing rule can match
// it.
func editOf(c toolCall) (runtime.Call, bool) {
	var diffs []struct {
		Type string `json:"type"`
	}
	if c.Kind != string(acp.ToolKindEdit) || json.Unmarshal(c.Content, &diffs) != nil || len(diffs) == 0 {
		return runtime.Call{}, false
	}
	for _, d := range diffs {
		if d.Type != "diff" {
			return runtime.Call{}, false
		}
	}
	input := map[string]json.RawMessage{"content": c.Content}
	if c.Title != "" {
		input["title"] = plainJSON(c.Title)
	}
	if isGiven(c.RawInput) {
		input["rawInput"] = c.RawInput
	}
	return runtime.Call{Tool: rule.EditTool, Input: string(plainJSON(input))}, true
}

// optionFor returns the option for a decision about this one call, nil if there is none. A standing rule of the node
// decides later calls. The agent is not told of it: what it remembers may be wider than what the person saw.
func optionFor(d runtime.Decision, options []acp.PermissionOption) *acp.PermissionOption {
	wanted := []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways}
	switch {
	case d.Ended:
		return nil
	case d.Allowed:
		wanted = []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindRejectOnce}
	}
	for _, kind := range wanted {
		for i := range options {
			if options[i].Kind == kind {
				return &options[i]
			}
		}
	}
	return nil
}

// plainName returns text as one short line.
func plainName(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxTool {
		text = text[:runtime.CutAt(text, maxTool)]
	}
	return text
}

// plainJSON encodes what is shown, with no escapes but those that JSON needs.
func plainJSON(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func compact(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}

// Bounds of the calls that are remembered, for a request for permission that only names one.
const (
	keptCalls    = 64
	keptCallSize = 320 << 10 // bytes of one update
	keptSize     = 4 << 20   // bytes of their inputs and contents
)

// toolCall is a call of a tool as an agent describes it, or a change of one.
type toolCall struct {
	ID       string          `json:"toolCallId"`
	Title    string          `json:"title"`
	Kind     string          `json:"kind"`
	Status   string          `json:"status"`
	RawInput json.RawMessage `json:"rawInput"`
	Content  json.RawMessage `json:"content"`
}

// with returns the call after a change.
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

// tooLong replaces the input of a call that is too long to be kept and shown.
var tooLong = json.RawMessage(`"too long"`)

// isShowable reports whether the whole call can be shown.
func (c toolCall) isShowable() bool { return !bytes.Equal(c.RawInput, tooLong) }

// size returns the bytes of the call's input and content.
func (c toolCall) size() int { return len(c.RawInput) + len(c.Content) }

func isGiven(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// calls has the newest calls of a turn.
type calls struct {
	mu    sync.Mutex
	byID  map[string]toolCall
	order []string
}

// note adds an update of a call.
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
	c.shrink()
}

// shrink drops the inputs of the oldest calls until the others are within keptSize.
func (c *calls) shrink() {
	size := 0
	for _, call := range c.byID {
		size += call.size()
	}
	for _, id := range c.order {
		if size <= keptSize {
			return
		}
		call := c.byID[id]
		size -= call.size()
		call.RawInput, call.Content = tooLong, nil
		size += call.size()
		c.byID[id] = call
	}
}

// complete returns a call together with its earlier updates.
func (c *calls) complete(call toolCall) toolCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[call.ID].with(call)
}
