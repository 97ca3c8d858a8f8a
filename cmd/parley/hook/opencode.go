package hook

import "parley/gateway/api"

// OpenCode returns the agent OpenCode. It runs no hooks: the plugin that "parley setup opencode" writes runs this one with requests
// as Claude Code's, and does what the response says. OpenCode 1.18.33 does:
//
//   - permission.asked is an event for what its configuration asks about. It has the permission and patterns; the arguments of
//     the call are those of tool.execute.before with the same callID. A reply runs the call once, or rejects it with words for
//     the model. Its own prompt stays until then.
//   - question.asked is an event for the questions of the model's tool. A reply has the labels of the choices.
//   - chat.message adds words to a prompt, tool.execute.after to the result of a tool, and promptAsync begins a turn. All reach
//     the model as the user's, or the tool's.
//   - Several sessions work in one process. A subagent is a session with a parent.
//
// The plugin hands over what it has read of the conversation, as lines of Claude Code's transcript.
func OpenCode() Agent {
	return Agent{
		Name: "opencode", Title: "OpenCode", answer: openCodeResponse, own: []string{askTool}, Aways: []Away{Ask},
		wakes: func(func(string) (string, bool)) bool { return true }, watches: true, reads: claudeStep,
		moments: map[string]string{
			SessionStart: api.MomentStart, UserPromptSubmit: api.MomentPrompt, PostToolUse: api.MomentCalls, Stop: api.MomentStop,
			FileChanged: api.MomentIdle, SessionEnd: api.MomentEnd,
		},
	}
}

// openCodeResponse returns the response that the plugin acts on: nil leaves the call or the questions to OpenCode's prompt.
func openCodeResponse(call toolCall, d Decision) *Response {
	switch {
	case !d.Decided:
		return nil
	case call.event == PreToolUse && call.tool == askTool:
		return claudeResponse(call, d)
	case call.event == PermissionRequest:
		return permissionResponse(d)
	}
	return nil
}
