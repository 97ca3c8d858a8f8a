package hook

import (
	"slices"
	"strings"
	"time"

	"parley/gateway/api"
)

// GeminiCLI returns the agent Gemini CLI. Its hook reference says, and version 0.61.0 does:
//
//   - BeforeTool runs for each call of each mode, once its own rules, or whoever is asked at its prompt, have let it through. A decision
//     to deny keeps the call from running, with the reason for the model. There is no other: an allow asks nobody less.
//   - Exit status 2 denies too. Any other, a signal and a timeout let the call run. Timeouts are in milliseconds.
//   - additionalContext is added to the prompt on BeforeAgent, to the first one on SessionStart, and to the result of a call on
//     AfterTool. A decision to deny on AfterAgent has the model go on, with the reason as the next prompt. SessionEnd is not waited for.
//   - Hooks of a project run only in a folder that is trusted. hooksConfig.enabled switches all off.
//   - A tool of an MCP server is mcp_SERVER_TOOL. Its transcript is one object, which is not read here.
func GeminiCLI() Agent {
	return Agent{
		Name: "gemini", Title: "Gemini CLI", folder: "GEMINI_PROJECT_DIR", answer: denying, Aways: []Away{Deny, Mode}, alone: always, single: true, blocksStop: true,
		left: leftByName(geminiReads), rename: func(tool string) string {
			if own, ok := strings.CutPrefix(tool, "mcp_"+ServerName+"_"); ok {
				return "mcp__" + ServerName + "__" + own
			}
			return tool
		},
		events: map[string]string{"BeforeTool": PreToolUse, "AfterTool": PostToolUse, "BeforeAgent": UserPromptSubmit, "AfterAgent": Stop},
		moments: map[string]string{
			SessionStart: api.MomentStart, UserPromptSubmit: api.MomentPrompt, PostToolUse: api.MomentCalls, Stop: api.MomentStop, SessionEnd: api.MomentEnd,
		},
	}
}

// QwenCode returns the agent Qwen Code, whose hooks have the names of Claude Code's. Versions 0.15.10 and 0.24.4 do:
//
//   - PreToolUse runs for each call of each mode, once its own rules, or whoever is asked at its prompt, have let it through. It takes a
//     decision to deny. An allow asks nobody less, and an ask is a denial.
//   - It waits for the hooks of an event for a minute, whatever their timeout is, and lets the call run then. So this hook denies
//     before. Exit status 2 denies too; any other, and a signal, let the call run.
//   - SessionStart, UserPromptSubmit and PostToolUse take additionalContext. Stop goes on with the reason of a block.
//   - Hooks of a project run only in a folder that is trusted. disableAllHooks switches all off.
func QwenCode() Agent {
	return Agent{
		Name: "qwen", Title: "Qwen Code", folder: "QWEN_PROJECT_DIR", answer: denying, Aways: []Away{Deny, Mode}, alone: always, single: true, blocksStop: true,
		left: leftByName(qwenReads), waits: 45 * time.Second,
		moments: map[string]string{
			SessionStart: api.MomentStart, UserPromptSubmit: api.MomentPrompt, PostToolUse: api.MomentCalls, Stop: api.MomentStop, SessionEnd: api.MomentEnd,
		},
	}
}

// always says of an agent that its hook has no prompt to leave a call to: its own came before.
func always(func(string) (string, bool)) bool { return true }

// denying returns the response of an agent that takes a denial alone. Without one the call runs.
func denying(call toolCall, d Decision) *Response {
	switch {
	case call.event != PreToolUse:
		return nil
	case !d.Decided:
		return remark(d)
	case d.Allowed:
		return nil
	}
	return &Response{Decision: deny, Reason: d.Reason, Specific: &specific{Event: PreToolUse, Permission: deny, Reason: d.Reason}}
}

// The tools that only read what is there, or concern the session alone. Any other is asked about.
var (
	geminiReads = []string{
		"ask_user", "codebase_investigator", "cli_help", "complete_task", "enter_plan_mode", "exit_plan_mode", "get_internal_docs", "glob", "grep_search", "list_directory", "list_mcp_resources",
		"read_file", "read_many_files", "search_file_content", "tracker_add_dependency", "tracker_create_task", "tracker_get_task", "tracker_list_tasks", "tracker_update_task", "tracker_visualize",
		"update_topic", "write_todos",
	}
	qwenReads = []string{"ask_user_question", "cron_list", "exit_plan_mode", "glob", "grep_search", "list_directory", "lsp", "read_file", "read_many_files", "structured_output", "todo_write", "tool_search"}
)

// leftByName leaves the calls of some tools.
func leftByName(tools []string) func(toolCall, string, func(string) (string, bool)) bool {
	return func(call toolCall, _ string, _ func(string) (string, bool)) bool {
		return slices.Contains(tools, call.tool)
	}
}
