package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/gateway/api"
)

// rolloutItem is what is read of one line of a file in which Codex keeps a thread.
type rolloutItem struct {
	Type    string `json:"type"`
	Payload struct {
		Type   string          `json:"type"`
		Role   string          `json:"role"`
		Space  string          `json:"namespace"`
		Name   string          `json:"name"`
		Call   string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
	} `json:"payload"`
}

// codexStep reads a line of the file in which Codex keeps a thread. Only items of the conversation count: events repeat them.
func codexStep(line []byte) (s step, ok bool) {
	var item rolloutItem
	if json.Unmarshal(line, &item) != nil || item.Type != "response_item" {
		return s, false
	}
	switch p := item.Payload; p.Type {
	case "message":
		s.answer, s.told = p.Role == "assistant", p.Role == "developer" || p.Role == "user"
	case "function_call", "custom_tool_call", "local_shell_call", "reasoning":
		s.answer = true
		if p.Type == "function_call" && isCodexReadTool(p.Space, p.Name) {
			s.reads = []string{p.Call}
		}
	case "function_call_output":
		s.told = true
		s.add(p.Call, p.Output)
	}
	return s, true
}

// isCodexReadTool reports whether a tool reads mail. Codex names those of an MCP server by a namespace.
func isCodexReadTool(space, name string) bool {
	return space == "mcp__"+ServerName && slices.Contains(readTools, name) || space == "" && isReadTool(name)
}

// Nudge is the prompt that begins a turn of an idle session of Codex. A hook adds what has come, or drops the prompt.
const Nudge = "Parley: there is new mail."

// isNudge reports whether a call is of that prompt.
func (c toolCall) isNudge() bool { return c.event == UserPromptSubmit && c.prompt == Nudge }

// Bounds of waking.
const (
	nudgeTime  = 30 * time.Second // for Codex to take a prompt
	nudgeAgain = 2 * time.Second  // after a failure
)

// WakeCodex wakes the session of Codex that has started this process when it is idle and has mail, by a prompt that Codex queues,
// until ctx ends. The node says when. What goes wrong is given to failed, and does not end it.
func WakeCodex(ctx context.Context, o Options, failed func(error)) {
	for ctx.Err() == nil {
		session, err := o.awaitWake(ctx)
		if err == nil && session != "" {
			err = queuePrompt(ctx, o, session)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		if parley.CodeOf(err) != parley.NotRunning { // a node that restarts is asked again
			failed(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(nudgeAgain):
		}
	}
}

// awaitWake waits until the session of this process is to be woken, and returns its ID: "" if the wait has ended before.
func (o Options) awaitWake(ctx context.Context) (string, error) {
	text, err := o.exchange(ctx, http.MethodGet, api.WakePath, nil)
	if err != nil {
		return "", err
	}
	var got api.Waken
	if json.Unmarshal(text, &got) != nil {
		return "", parley.Refuse(parley.Internal, "the node's answer cannot be read")
	}
	return got.Session, nil
}

// queuePrompt has Codex queue the prompt for a session. It runs with what this process may: Codex has started it.
func queuePrompt(ctx context.Context, o Options, session string) error {
	ctx, cancel := context.WithTimeout(ctx, nudgeTime)
	defer cancel()
	command := exec.CommandContext(ctx, codexProgram(), "queue", "--thread", session, "--message", Nudge)
	out, err := command.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return parley.Refuse(parley.Internal, "codex queue ends with %d: %s", exit.ExitCode(), parley.Quoted(string(out), 400))
	}
	return err
}

// codexProgram returns the program of the Codex that has started this process, or the name by which the path has it.
func codexProgram() string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", os.Getppid()))
	if err == nil && strings.HasPrefix(filepath.Base(path), "codex") {
		if _, err := os.Stat(path); err == nil { // an update has not replaced it
			return path
		}
	}
	return "codex"
}
