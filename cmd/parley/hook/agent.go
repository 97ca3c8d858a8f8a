package hook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/gateway/api"
	"parley/mailbox/rule"
)

// Agent is a coding agent: a program that calls tools and runs a hook before.
type Agent struct {
	Name  string // as in "parley hook NAME"
	Title string

	folder  string                                    // environment variable with the folder that it works in; "" for none
	pid     string                                    // environment variable with the ID of its process; "" for none
	own     []string                                  // tools whose prompt is a question, which a form answers on PreToolUse
	answer  func(call toolCall, d Decision) *Response // nil for a response that has to be empty
	edits   bool                                      // it makes a call with the input that a response has
	Aways   []Away                                    // what it can do with a call about which nobody decides
	session string                                    // environment variable with the ID of its session, as it was when what has it was started; "" for none
	single  bool                                      // its process works in one session at a time

	events  map[string]string                          // by its own names of events, those that are meant
	rename  func(tool string) string                   // returns the name of a tool of an MCP server as Claude Code has it. Nil has it so
	waits   time.Duration                              // that its hook waits at most; 0 is Wait
	moments map[string]string                          // by events, the moments at which it takes a notice of mail
	wakes   func(env func(string) (string, bool)) bool // reports whether it is woken when a file changes. Nil never is

	reads      func(line []byte) (step, bool) // reads a line of its transcript. Nil cannot
	watches    bool                           // on FileChanged it takes additionalContext, and not words on standard error
	blocksStop bool                           // on Stop it goes on with the reason of a block, and not with additionalContext

	// alone reports whether it has no prompt at which it could ask. Nil has one.
	alone func(env func(string) (string, bool)) bool

	// left reports whether PreToolUse leaves a call made in a folder to the agent's own rules. Nil leaves none.
	left func(call toolCall, folder string, env func(string) (string, bool)) bool

	// unasked says why the agent might make a call that PreToolUse leaves without its own prompt; "" where nothing says so. Nil never does.
	unasked func(call toolCall, folder string, env func(string) (string, bool)) string

	// servers returns the files that may define MCP servers for an agent that works in a folder. Nil is for one that PreToolUse
	// cannot have make a call unasked.
	servers func(folder string, env func(string) (string, bool)) []serverFile
}

// Agents returns the coding agents that have hooks.
func Agents() []Agent { return []Agent{ClaudeCode(), Codex(), OpenCode(), GeminiCLI(), QwenCode()} }

// Waits returns how long the hook of an agent waits for a decision.
func (a Agent) Waits() time.Duration { return cmp.Or(a.waits, Wait) }

// ClaudeCode returns the agent Claude Code. Its hook reference of October 2026 says, and version 2.1.332 does:
//
//   - PermissionRequest runs beside its own prompt, and has no tool_use_id. Without a terminal, and in the modes auto,
//     acceptEdits, bypassPermissions and dontAsk, it does not run, nor in plan where the automatic mode covers planning.
//     The decision allows or denies. A hook without one leaves the prompt as it is. Rules in its settings that deny or
//     ask still hold after an allow.
//   - PreToolUse runs before every call. permissionDecision is allow, deny, ask or defer. The reason goes to the model
//     where it denies, and to the person otherwise. An ask shows the prompt in every mode, and denies without a terminal.
//     A defer ends a run without a terminal, and asks again when the session is resumed. A terminal ignores it.
//   - Esc ends a hook with SIGTERM. An answer at the prompt leaves the hook of PermissionRequest running.
//   - systemMessage is shown to the person. Exit status 2 blocks on PreToolUse and PermissionRequest, and JSON is read at
//     0. Any other status, a signal and a timeout let the call take its usual way.
//   - AskUserQuestion wants answers, in an updatedInput on PreToolUse. It shows its own questions after an allow without.
//   - ExitPlanMode is approved by an allow with an updatedInput. Without one the prompt stays.
//   - An allow may have an updatedInput, which is the whole input with which the call is made: of hookSpecificOutput on
//     PreToolUse, and of the decision on PermissionRequest.
//   - Elicitation runs before its own dialog for what an MCP server wants to know, in a terminal and without. The action
//     accepts with content, or declines. Without an action the dialog comes, or the server is told of a cancellation.
//   - SessionStart, UserPromptSubmit, PostToolBatch and Stop take additionalContext. It reaches the model as words of the
//     system, so it is Parley's alone. After Stop the turn goes on. On SessionStart watchPaths are files of which a change
//     runs FileChanged. One of that with asyncRewake begins a turn with what it writes to standard error, at exit status 2.
//     Without a terminal it is waited for, and its words are lost.
//   - A session keeps its ID at a resume and a compaction. Clear gives it another in the same process, a fork makes one.
//   - CLAUDE_PROJECT_DIR has the project's root in a hook's environment, CLAUDE_PID the ID of its process, and
//     CLAUDE_CODE_ENTRYPOINT how it was started.
func ClaudeCode() Agent {
	return Agent{
		Name: "claude-code", Title: "Claude Code",
		folder: "CLAUDE_PROJECT_DIR", pid: "CLAUDE_PID", own: []string{askTool}, answer: claudeResponse, edits: true,
		Aways: []Away{Ask, Deny, Mode, Defer}, alone: isPrinting, left: leftByClaudeCode, unasked: unaskedByClaudeCode, servers: claudeServers,
		session: "CLAUDE_CODE_SESSION_ID", single: true, wakes: isInTerminal, reads: claudeStep,
		moments: map[string]string{
			SessionStart: api.MomentStart, UserPromptSubmit: api.MomentPrompt, PostToolBatch: api.MomentCalls, Stop: api.MomentStop,
			FileChanged: api.MomentIdle, SessionEnd: api.MomentEnd,
		},
	}
}

// Codex returns the agent Codex, whose hooks are made after Claude Code's. Its source of 2026 reads their output so:
//
//   - PermissionRequest takes a decision with behavior and message, and nothing else. It drops an answer with
//     updatedInput, updatedPermissions or a true interrupt. No output is no decision, and the approval goes on.
//     Its input has a turn_id and no tool_use_id.
//   - PreToolUse takes a deny with a reason. It refuses ask, and allow without a changed input. Without output a call
//     takes its usual way.
//   - systemMessage is shown as a warning. Exit status 2 with words on standard error denies.
//   - SessionStart, UserPromptSubmit and PostToolUse take additionalContext, which reaches the model as words of the developer.
//     UserPromptSubmit drops the prompt, before any request, for a decision to block. Stop goes on with the reason of one. A
//     member that an event does not know has the whole output ignored.
//   - Their session_id is that of the thread. Calls of a subagent have an agent_id. /new begins another thread in the same
//     process, as a start by "clear".
func Codex() Agent {
	return Agent{
		Name: "codex", Title: "Codex", answer: codexResponse, Aways: []Away{Ask, Deny, Mode},
		single: true, reads: codexStep, blocksStop: true,
		moments: map[string]string{
			SessionStart: api.MomentStart, UserPromptSubmit: api.MomentPrompt, PostToolUse: api.MomentCalls, Stop: api.MomentStop,
			SessionEnd: api.MomentEnd,
		},
	}
}

// Process returns the ID of the agent's process as it names it to what it starts, 0 for none, and how the name of its program begins.
func (a Agent) Process(env func(string) (string, bool)) (pid int, program string) {
	if set, ok := env(a.pid); ok && a.pid != "" {
		pid, _ = strconv.Atoi(set) // 0 names none
	}
	program, _, _ = strings.Cut(a.Name, "-")
	return pid, program
}

// leaves reports whether PreToolUse leaves a call to the agent's own rules.
func (a Agent) leaves(call toolCall, env func(string) (string, bool)) bool {
	return a.left != nil && a.left(call, a.workFolder(call, env), env)
}

// takesInput reports whether the agent makes the call with the input that is allowed. A plan is approved as it is.
func (a Agent) takesInput(call toolCall) bool { return a.edits && call.tool != planTool }

func (a Agent) asksItself(call toolCall) bool { return slices.Contains(a.own, call.tool) }

// workFolder returns the folder that the agent was started in: its own variable's, else the request's, else that of
// the hook. The agent may change to another folder for a command; this one does not change.
func (a Agent) workFolder(call toolCall, env func(string) (string, bool)) string {
	if a.folder != "" {
		if set, ok := env(a.folder); ok && filepath.IsAbs(set) {
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

// callFolder returns the folder that a call is made in: the request's, else the one that the agent works in. It returns
// "" for a folder that rules cannot name.
func (a Agent) callFolder(call toolCall, env func(string) (string, bool)) string {
	folder := a.workFolder(call, env)
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
