package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
	"parley/mailbox/rule"
)

// maxTool is how much of a call's title is the name of its tool, in bytes.
const maxTool = 200

// permissionRequest is what an agent asks before it makes a call.
type permissionRequest struct {
	SessionID string                 `json:"sessionId"`
	ToolCall  toolCall               `json:"toolCall"`
	Options   []acp.PermissionOption `json:"options"`
}

// permit asks whether a call may be made.
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
		t.complain("what the agent asks cannot be asked: " + parley.AsError(err).Error())
	}
	option := optionFor(d, r.Options)
	if d.Allowed && !d.Ended && (option == nil || option.Kind == acp.PermissionOptionKindRejectOnce) {
		t.complain("what was allowed is not, because the agent has no option for this one call")
	}
	outcome := acp.NewRequestPermissionOutcomeCancelled()
	if option != nil {
		outcome = acp.NewRequestPermissionOutcomeSelected(option.OptionId)
	}
	return acp.RequestPermissionResponse{Meta: reasonOf(d), Outcome: outcome}, nil
}

// reasonOf is where an agent finds what was said about a decision: the protocol has no other place for words.
func reasonOf(d runtime.Decision) map[string]any {
	if d.Reason == "" {
		return nil
	}
	return map[string]any{"parley/reason": d.Reason}
}

// callOf is the call that is shown: its tool, and what it is made with. The title of a call names its tool, or else its
// kind does.
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

// commandOf is the call of a command line. Its title says it in other words each time, which no standing rule could be
// for: the tool is its kind, and the title stands beside the command, as the description of other agents does.
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

// editOf is the call of an edit that is shown as diffs. Its tool is its kind, as that of a command line is: a standing
// rule for a file could be for no title.
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

// optionFor returns the option that says what was decided of this one call; nil if none does. What is always allowed
// or denied a standing rule of the node decides the next time, too. The agent is told of this call alone: what it
// remembers by itself may be wider than what the person saw.
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

// plainName gives text as one line that is not too long.
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

// plainJSON writes what is shown: with no escapes but those that JSON needs.
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
