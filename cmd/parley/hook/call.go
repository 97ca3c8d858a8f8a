package hook

import (
	"cmp"
	"encoding/json"
	"strings"

	"parley"
	"parley/gateway/api"
)

// The events on which a hook is asked: about a call on PreToolUse and PermissionRequest, and for the values that an MCP
// server wants on Elicitation. On the others, the calls of a session are decided, and approvals for them are withdrawn.
// Codex has its events from Claude Code.
const (
	PreToolUse         = "PreToolUse"
	PermissionRequest  = "PermissionRequest"
	Elicitation        = "Elicitation"
	PostToolUse        = "PostToolUse"        // of one call
	PostToolUseFailure = "PostToolUseFailure" // of one call, which ran and failed
	SubagentStop       = "SubagentStop"
	Stop               = "Stop"
	SessionEnd         = "SessionEnd"
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
	source  string          // why a session starts or ends
	added   []string        // folders that were added to the session; on DirectoryAdded, the one that is
	hidden  bool            // the former are not known
	part    string          // the ID of the subagent that makes it; "" for the agent itself
	kind    string          // of that subagent, as its user calls it

	prompt     string // on UserPromptSubmit
	last       string // on Stop, what the model has said at last
	transcript string // path of the file with the conversation; "" if that is not said
	lines      string // of the conversation, in place of a file

	wanted wanted // on Elicitation, in place of a tool
}

// wanted are the values that an MCP server asks a person for.
type wanted struct {
	Server  string          `json:"mcp_server_name"`
	Message string          `json:"message"`
	Mode    string          `json:"mode"` // "form" or "url"; "" is "form"
	Schema  json.RawMessage `json:"requested_schema"`
}

// readCall reads the request that a hook gets on standard input. The call has the event also where another part of the
// request is wrong.
func (a Agent) readCall(text []byte) (toolCall, error) {
	var in struct {
		Event   string          `json:"hook_event_name"`
		Session string          `json:"session_id"`
		ID      string          `json:"tool_use_id"`
		Tool    string          `json:"tool_name"`
		Input   json.RawMessage `json:"tool_input"`
		Folder  string          `json:"cwd"`
		Mode    string          `json:"permission_mode"`
		Part    string          `json:"agent_id"`
		Kind    string          `json:"agent_type"`
		Source  string          `json:"source"`
		Reason  string          `json:"reason"`
		Path    string          `json:"transcript_path"`
		Last    string          `json:"last_assistant_message"`
		Prompt  string          `json:"prompt"`
		Lines   string          `json:"transcript"`
		Added   string          `json:"directory"`
		wanted
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return toolCall{}, parley.Refuse(parley.InvalidArgument, "the request cannot be read: it is not JSON as hooks get it")
	}
	in.Event = cmp.Or(a.events[in.Event], in.Event)
	if a.rename != nil {
		in.Tool = a.rename(in.Tool)
	}
	call := toolCall{event: in.Event, session: in.Session, id: in.ID, tool: in.Tool, input: in.Input, folder: in.Folder, mode: in.Mode, part: in.Part, kind: in.Kind, source: cmp.Or(in.Source, in.Reason), transcript: in.Path, last: in.Last, prompt: in.Prompt, lines: in.Lines, wanted: in.wanted}
	switch in.Event {
	case DirectoryAdded:
		call.added = []string{in.Added}
		return call, nil
	case SubagentStop, Stop, SessionEnd, SessionStart, UserPromptSubmit, PostToolBatch, FileChanged:
		return call, nil
	case Elicitation:
		if in.Server == "" {
			return call, parley.Refuse(parley.InvalidArgument, "the request names no MCP server")
		}
		return call, nil
	case PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure:
	default:
		return call, parley.Refuse(parley.InvalidArgument, "%.40q is no event on which this hook answers", in.Event)
	}
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

// maxPart bounds the name of a part, in bytes. The node refuses a longer one.
const maxPart = 200

// partName returns the subagent that makes the call, as it is shown; "" for the agent itself.
func (c toolCall) partName() string {
	if c.part == "" {
		return ""
	}
	name := strings.TrimSpace(c.kind + " " + c.part)
	return strings.ToValidUTF8(name[:min(len(name), maxPart)], "")
}

// carries reports whether the event is for a notice of mail, and nothing else.
func (c toolCall) carries() bool {
	switch c.event {
	case SessionStart, UserPromptSubmit, PostToolBatch, FileChanged:
		return true
	}
	return false
}

// ends reports whether the event says that calls are decided or given up.
func (c toolCall) ends() bool {
	switch c.event {
	case PostToolUse, PostToolUseFailure, SubagentStop, Stop, SessionEnd:
		return true
	}
	return false
}

// hold returns the call as the node holds its form. Without a tool it is a choice of all that a session asks.
func (c toolCall) hold(as api.Acting) api.Hold {
	h := api.Hold{Acting: as, Session: c.session, Part: c.part, Use: c.id, Whole: c.event == SessionEnd}
	switch {
	case c.tool == planTool: // once it has ended, its input is without the plan
		h.Call = digest(c.tool)
	case c.tool != "":
		h.Call = digest(c.tool, string(c.input))
	}
	return h
}
