package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
	"parley/mailbox/rule"
)

// maxTool bounds the bytes of a call's title that name its tool.
const maxTool = 200

// agentInfo is an agent as its process describes itself.
type agentInfo struct {
	name    string
	folders []string // spellings of the folder that it runs in
}

// relative returns a path relative to the agent's folder if it is in it.
func (a agentInfo) relative(file string) string {
	for _, folder := range a.folders {
		if rel, ok := strings.CutPrefix(file, folder+"/"); ok {
			return rel
		}
	}
	return file
}

// Names of agents that describe their calls in a way of their own.
const (
	geminiName = "gemini-cli"
	codexName  = "codex-acp"
)

// callOf returns the call that is shown: its tool and its input. The tool is the kind of the call, so that standing
// rules can match it: titles differ from call to call. A call of no kind has its title as its tool.
func callOf(c toolCall, by agentInfo) runtime.Call {
	if command, why, ok := commandOf(c, by); ok {
		return runtime.Call{Permission: parley.Permission{Tool: executeTool, Input: string(plainJSON(command)), Reason: why}}
	}
	if edit, ok := editOf(c, by); ok {
		return edit
	}
	input := map[string]json.RawMessage{}
	tool := c.Kind
	if isKind(c.Kind) {
		if c.Title != "" {
			input["title"] = plainJSON(c.Title)
		}
	} else {
		tool = cmp.Or(c.Title, c.Kind, "tool")
	}
	if shown := plainName(tool); shown != tool {
		input["title"] = plainJSON(tool) // all of it is to be seen
		tool = shown
	}
	if isGiven(c.Content) {
		input["content"] = c.Content
	}
	if tool == rule.ReadTool && !isGiven(c.RawInput) && len(c.Locations) > 0 {
		input["locations"] = plainJSON(c.Locations) // a rule is about the files
	}
	if isGiven(c.RawInput) {
		if len(input) == 0 {
			return runtime.Call{Permission: parley.Permission{Tool: tool, Input: compact(c.RawInput)}}
		}
		input["rawInput"] = c.RawInput
	}
	return runtime.Call{Permission: parley.Permission{Tool: tool, Input: string(plainJSON(input))}}
}

// executeTool is the tool of a command line.
const executeTool = string(acp.ToolKindExecute)

// isKind reports whether a kind tells what a call does.
func isKind(kind string) bool {
	switch acp.ToolKind(kind) {
	case acp.ToolKindRead, acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove, acp.ToolKindSearch, acp.ToolKindExecute, acp.ToolKindThink,
		acp.ToolKindFetch, acp.ToolKindSwitchMode:
		return true
	}
	return false
}

// commandOf returns the input of a call that runs a command line, and why the agent wants to run it. A rule is about the
// command. A title is shown beside it.
func commandOf(c toolCall, by agentInfo) (input map[string]json.RawMessage, why string, ok bool) {
	input, ok = commandInput(c)
	if !ok && by.name == codexName {
		input, why, ok = codexCommand(c, by)
	}
	if !ok && by.name == geminiName {
		input, why, ok = geminiCommand(c, by)
	}
	if !ok {
		return nil, "", false
	}
	line, _ := textOf(input["command"])
	if _, taken := input["title"]; !taken && c.Title != "" && c.Title != line {
		input["title"] = plainJSON(c.Title)
	}
	return input, why, true
}

// commandInput returns the raw input of a call if it has a command line. Content is left out if it has no more than the
// description.
func commandInput(c toolCall) (map[string]json.RawMessage, bool) {
	var input map[string]json.RawMessage
	if c.Kind != executeTool || json.Unmarshal(c.RawInput, &input) != nil {
		return nil, false
	}
	if _, ok := textOf(input["command"]); !ok || rule.CheckInput(string(c.RawInput)) != nil { // a key that stands twice would be lost
		return nil, false
	}
	if !hasContent(c.Content) {
		return input, true
	}
	description, ok := textOf(input["description"])
	said, only := onlyText(c.Content)
	return input, ok && only && said == description
}

// codexCommand returns the input of a command that Codex wants to run outside of its sandbox. Its raw input is an event,
// of which IDs and proposals are left out: they differ from call to call and do not change what runs.
func codexCommand(c toolCall, by agentInfo) (input map[string]json.RawMessage, why string, ok bool) {
	var event map[string]json.RawMessage
	var words []string
	if json.Unmarshal(c.RawInput, &event) != nil || json.Unmarshal(event["command"], &words) != nil || rule.CheckInput(string(c.RawInput)) != nil {
		return nil, "", false
	}
	for key, value := range event {
		switch key {
		case "call_id", "approval_id", "turn_id", "started_at_ms", "command", "cwd", "reason", "parsed_cmd", "available_decisions",
			"proposed_execpolicy_amendment", "proposed_network_policy_amendments":
		default:
			if isGiven(value) { // more is allowed than the command
				return nil, "", false
			}
		}
	}
	if len(words) != 3 || words[1] != "-lc" && words[1] != "-c" || !slices.Contains([]string{"bash", "sh", "zsh"}, path.Base(words[0])) {
		return nil, "", false
	}
	input = map[string]json.RawMessage{"command": plainJSON(words[2])}
	if folder, ok := textOf(event["cwd"]); !ok || !slices.Contains(by.folders, folder) {
		input["cwd"] = json.RawMessage(cmp.Or(string(event["cwd"]), "null")) // only a rule for the very call covers it
	}
	return input, reasonIn(event["reason"], input), true
}

// maxReason bounds the reason of a call, in bytes. The node takes no longer one.
const maxReason = 4 << 10

// reasonIn returns why an agent makes a call. One that is no text, or too long, is part of the input instead.
func reasonIn(given json.RawMessage, input map[string]json.RawMessage) string {
	why, ok := textOf(given)
	if ok && len(why) <= maxReason {
		return why
	}
	if isGiven(given) {
		input["description"] = given
	}
	return ""
}

// geminiCommand returns the input of a command that Gemini wants to run. It sends no input: the title is the command.
// The content is the folder, a description in brackets, and a mark if it runs in the background.
func geminiCommand(c toolCall, by agentInfo) (input map[string]json.RawMessage, why string, ok bool) {
	said, only := onlyText(c.Content)
	if c.Kind != executeTool || isGiven(c.RawInput) || c.Title == "" || !only {
		return nil, "", false
	}
	input = map[string]json.RawMessage{"command": plainJSON(c.Title)}
	for _, folder := range by.folders {
		description, ok := strings.CutPrefix(said, "[current working directory "+folder+"]")
		if !ok {
			continue
		}
		if description == "" {
			return input, "", true
		}
		if text, ok := strings.CutPrefix(description, " ("); ok && strings.HasSuffix(text, ")") {
			return input, reasonIn(plainJSON(strings.TrimSuffix(text, ")")), input), true
		}
	}
	input["content"] = c.Content // another folder, or the background: only a rule for the very call covers it
	return input, "", true
}

// onlyText returns the text of a content that has one block of text alone.
func onlyText(content json.RawMessage) (string, bool) {
	var blocks []struct {
		Type    string
		Content struct{ Type, Text string }
	}
	if json.Unmarshal(content, &blocks) != nil || len(blocks) != 1 || blocks[0].Type != "content" || blocks[0].Content.Type != "text" {
		return "", false
	}
	return blocks[0].Content.Text, true
}

// editOf returns the call of an edit that is shown as diffs.
func editOf(c toolCall, by agentInfo) (runtime.Call, bool) {
	var diffs []struct{ Type, Path string }
	if c.Kind != string(acp.ToolKindEdit) || json.Unmarshal(c.Content, &diffs) != nil || len(diffs) == 0 {
		return runtime.Call{}, false
	}
	files := map[string]bool{}
	for _, d := range diffs {
		if d.Type != "diff" {
			return runtime.Call{}, false
		}
		files[d.Path] = true
	}
	input := map[string]json.RawMessage{"content": c.Content}
	if c.Title != "" {
		input["title"] = plainJSON(c.Title)
	}
	why := ""
	if reason, ok := codexPatch(c.RawInput, files); ok && by.name == codexName {
		why = reasonIn(reason, input)
	} else if isGiven(c.RawInput) {
		input["rawInput"] = c.RawInput
	}
	return runtime.Call{Permission: parley.Permission{Tool: rule.EditTool, Input: string(plainJSON(input)), Reason: why}}, true
}

// codexPatch returns the reason of a patch of Codex, whose raw input is an event. It reports false if the event has more
// than changes of files that are shown as diffs: another file, a move, or the right to write below a folder.
func codexPatch(raw json.RawMessage, files map[string]bool) (reason json.RawMessage, ok bool) {
	var event map[string]json.RawMessage
	var changes map[string]json.RawMessage
	if json.Unmarshal(raw, &event) != nil || json.Unmarshal(event["changes"], &changes) != nil || rule.CheckInput(string(raw)) != nil {
		return nil, false
	}
	for key, value := range event {
		switch key {
		case "call_id", "turn_id", "started_at_ms", "changes", "reason":
		default:
			if isGiven(value) {
				return nil, false
			}
		}
	}
	for file, text := range changes {
		var change struct {
			Type        string          `json:"type"`
			UnifiedDiff json.RawMessage `json:"unified_diff"`
			Content     json.RawMessage `json:"content"`
			MovePath    json.RawMessage `json:"move_path"`
		}
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		if strict.Decode(&change) != nil || isGiven(change.MovePath) || !files[file] || !slices.Contains([]string{"add", "delete", "update"}, change.Type) {
			return nil, false
		}
	}
	return event["reason"], len(changes) == len(files)
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

// textOf returns the text of a JSON string.
func textOf(raw json.RawMessage) (text string, ok bool) {
	return text, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil
}

// isGiven reports whether a value is there.
func isGiven(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// hasContent reports whether a content has anything in it.
func hasContent(content json.RawMessage) bool {
	return isGiven(content) && string(bytes.TrimSpace(content)) != "[]"
}
