package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley"
	"parley/mailbox/rule"
)

// codingAgent is a program that calls tools and asks before: how its hooks are answered, and where they are set up.
type codingAgent struct {
	name   string // as in "parley hook NAME"
	title  string
	folder string   // environment variable with the folder it works in, if it sets one
	own    []string // tools whose prompt is a question, which no permission answers

	// answer gives what is printed for a ruling on an event, or nil for nothing.
	answer func(event string, r ruling) *hookAnswer
	setup  func(*settingUp) ([]settingsFile, error)
}

func codingAgents() []codingAgent { return []codingAgent{claudeCode(), codex()} }

func (a codingAgent) asksItself(call toolCall) bool { return slices.Contains(a.own, call.tool) }

// The events on which a hook is asked. Codex has them from Claude Code.
const (
	preToolUse        = "PreToolUse"
	permissionRequest = "PermissionRequest"
)

// toolCall is a call that a coding agent asks about. Both agents write it alike: as Claude Code's hook reference and
// Codex's generated schema of the input have it, with more that is of no matter here.
type toolCall struct {
	event   string
	session string
	id      string // of the call; neither agent gives one on PermissionRequest
	tool    string
	input   json.RawMessage // to the letter
	folder  string          // in which the agent works at the moment
}

// readCall reads what a hook gets on standard input. Where it fails, the event is known if it could be read.
func readCall(text []byte) (toolCall, error) {
	var in struct {
		Event   string          `json:"hook_event_name"`
		Session string          `json:"session_id"`
		ID      string          `json:"tool_use_id"`
		Tool    string          `json:"tool_name"`
		Input   json.RawMessage `json:"tool_input"`
		Folder  string          `json:"cwd"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return toolCall{}, parley.Refuse(parley.InvalidArgument, "the request cannot be read: it is not JSON as hooks get it")
	}
	if in.Event != preToolUse && in.Event != permissionRequest {
		return toolCall{}, parley.Refuse(parley.InvalidArgument, "%.40q is no event that asks for permission", in.Event)
	}
	call := toolCall{event: in.Event, session: in.Session, id: in.ID, tool: in.Tool, input: in.Input, folder: in.Folder}
	if in.Tool == "" || len(in.Input) == 0 {
		return call, parley.Refuse(parley.InvalidArgument, "the request names no tool, or has no input")
	}
	return call, nil
}

// key makes a hook that is run again for the same call find what was asked before. Without the call's ID there is
// none: the same call made twice is two calls, and one that was allowed once is not allowed again.
func (c toolCall) key(agent codingAgent) string {
	if c.id == "" || c.session == "" {
		return ""
	}
	return "hook-" + digest(agent.name, c.session, c.id, c.tool, string(c.input))
}

// asker is the agent for whom a call is asked about where none is named.
type asker struct {
	name, title string
	labels      map[string]string
}

// maxShownFolder is how long a folder may be to stand in a title in full.
const maxShownFolder = 200

// asker gives the one of the folder in which the agent works. Its name tells folders of the same name apart: a
// standing rule for one project is none for another.
func (a codingAgent) asker(folder string) asker {
	if whole, err := filepath.EvalSymlinks(folder); err == nil {
		folder = whole
	}
	base := []rune(strings.Map(nameRune, filepath.Base(folder)))
	shown := folder
	if len(shown) > maxShownFolder || visible(shown) != shown {
		shown = string(base)
	}
	return asker{
		name:   fmt.Sprintf("%s-%s-%.6s", a.name, string(base[:min(len(base), 40)]), digest(folder)),
		title:  a.title + " in " + shown,
		labels: map[string]string{"kind": "coding-agent", "program": a.name},
	}
}

// nameRune keeps what can be typed in a name.
func nameRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
		return r
	}
	return '-'
}

// workFolder is where the agent works: what it says itself, else where its hook runs. The agent may have changed to
// another folder for a command; the one that it was started in does not change.
func (p *program) workFolder(a codingAgent, call toolCall) string {
	if a.folder != "" {
		if set, ok := p.env(a.folder); ok && filepath.IsAbs(set) {
			return filepath.Clean(set)
		}
	}
	if filepath.IsAbs(call.folder) {
		return filepath.Clean(call.folder)
	}
	if here, err := os.Getwd(); err == nil {
		return here
	}
	return string(filepath.Separator)
}

// callFolder is where a call is made: where the agent says that it is at the moment, else where it works. "" is a folder
// that rules cannot name.
func (p *program) callFolder(a codingAgent, call toolCall) string {
	folder := p.workFolder(a, call)
	if filepath.IsAbs(call.folder) {
		folder = filepath.Clean(call.folder)
	}
	if rule.CheckFolder(folder) != nil {
		return ""
	}
	return folder
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
