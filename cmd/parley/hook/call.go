package hook

import (
	"encoding/json"
	"strings"

	"parley"
)

// PreToolUse and PermissionRequest are the events on which a hook is asked. Codex has them from Claude Code.
const (
	PreToolUse        = "PreToolUse"
	PermissionRequest = "PermissionRequest"
)

// toolCall is a call that a coding agent asks about. Both agents write the same members: those of Claude Code's hook
// reference and of Codex's generated schema of the input. Other members are ignored.
type toolCall struct {
	event   string
	session string
	id      string // of the call; neither agent gives one on PermissionRequest
	tool    string
	input   json.RawMessage // as it was sent
	folder  string          // in which the agent works at the moment
	mode    string          // the agent's permission mode
}

// readCall reads the request that a hook gets on standard input. The call has the event also where another part of the
// request is wrong.
func readCall(text []byte) (toolCall, error) {
	var in struct {
		Event   string          `json:"hook_event_name"`
		Session string          `json:"session_id"`
		ID      string          `json:"tool_use_id"`
		Tool    string          `json:"tool_name"`
		Input   json.RawMessage `json:"tool_input"`
		Folder  string          `json:"cwd"`
		Mode    string          `json:"permission_mode"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return toolCall{}, parley.Refuse(parley.InvalidArgument, "the request cannot be read: it is not JSON as hooks get it")
	}
	if in.Event != PreToolUse && in.Event != PermissionRequest {
		return toolCall{}, parley.Refuse(parley.InvalidArgument, "%.40q is no event that asks for permission", in.Event)
	}
	call := toolCall{event: in.Event, session: in.Session, id: in.ID, tool: in.Tool, input: in.Input, folder: in.Folder, mode: in.Mode}
	if in.Tool == "" || len(in.Input) == 0 {
		return call, parley.Refuse(parley.InvalidArgument, "the request names no tool, or has no input")
	}
	return call, nil
}

// key returns the idempotency key of a call: a hook that runs again for the same call finds the earlier form. It is ""
// without the call's ID. The same call made twice is two calls, and allowing one once does not allow the other.
func (c toolCall) key(agent Agent) string {
	if c.id == "" || c.session == "" {
		return ""
	}
	return "hook-" + digest(agent.Name, c.session, c.id, c.tool, string(c.input))
}

// isOwnTool reports whether a tool is one of the MCP server that setup enters. Its tools reach the agent's own mail.
func isOwnTool(tool string) bool { return strings.HasPrefix(tool, "mcp__"+ServerName+"__") }

// ServerName is the name of Parley's MCP server in the settings of coding agents.
const ServerName = "parley"
