package setup

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/cmd/parley/hook"
	"parley/cmd/parley/terminal"
)

// Gemini CLI and Qwen Code have hooks and MCP servers in one file, settings.json.

// geminiEvents are the names of Gemini CLI for events that have others with Claude Code.
var geminiEvents = map[string]string{
	hook.PreToolUse: "BeforeTool", hook.PostToolUse: "AfterTool", hook.UserPromptSubmit: "BeforeAgent", hook.Stop: "AfterAgent",
}

func isGemini(agent hook.Agent) bool { return agent.Name == hook.GeminiCLI().Name }

// isOneFile reports whether an agent has all its settings in one file.
func isOneFile(agent hook.Agent) bool { return isGemini(agent) || agent.Name == hook.QwenCode().Name }

// oneFile enters hooks and MCP server in the file.
func (s settings) oneFile() ([]File, error) {
	path := s.oneFilePath()
	own := s.oneFileHooks(path)
	server := s.server()
	server.Type, server.Trust = "", true // its tools are the agent's own mail
	change := func(d *document, enter bool) error {
		if !enter {
			if err := d.setHooks(s.agent.Name, nil); err != nil {
				return err
			}
			return d.setServer(nil)
		}
		if err := d.setHooks(s.agent.Name, own); err != nil {
			return err
		}
		return d.setServer(&server)
	}
	alone, _ := readDocument(nil) // nothing is an object
	if err := change(alone, true); err != nil {
		return nil, err
	}
	f, err := s.jsonFile(path, alone.text, change)
	return []File{f}, err
}

// oneFilePath returns the path of the person's settings, or of the project's.
func (s settings) oneFilePath() string {
	name, variable := ".gemini", "GEMINI_CLI_HOME" // in which .gemini is
	if !isGemini(s.agent) {
		name, variable = ".qwen", "QWEN_HOME" // which is .qwen
	}
	set, ok := s.Env(variable)
	switch {
	case s.Project:
		return filepath.Join(s.Folder, name, "settings.json")
	case ok && filepath.IsAbs(set) && isGemini(s.agent):
		return filepath.Join(set, name, "settings.json")
	case ok && filepath.IsAbs(set):
		return filepath.Join(set, "settings.json")
	}
	return filepath.Join(s.Home, name, "settings.json")
}

// oneFileHooks returns the hooks for the file: the one before a call asks, and blocks where it fails. The others carry mail.
func (s settings) oneFileHooks(path string) []eventHook {
	command := s.hookCommand()
	shown := path
	if inside, ok := strings.CutPrefix(path, s.Home+string(filepath.Separator)); ok && !s.Project {
		shown = "~/" + inside
	} else if inside, ok := strings.CutPrefix(path, s.Folder+string(filepath.Separator)); ok && s.Project {
		shown = inside
	}
	asking := command
	if s.Away != "" {
		asking += " --when-away " + s.Away
	}
	all := []eventHook{askHook(hook.PreToolUse, asking+otherwise(s.agent.Name, command, shown))}
	for _, event := range []string{hook.PostToolUse, hook.Stop, hook.SessionStart, hook.UserPromptSubmit, hook.SessionEnd} {
		all = append(all, endHook(event, command))
	}
	for i := range all {
		all[i].Status = ""
		all[i].Timeout *= int(time.Second / time.Millisecond)
		if name, ok := geminiEvents[all[i].event]; ok && isGemini(s.agent) {
			all[i].event = name
		}
	}
	return all
}

// checkOneFile reports whether the settings of the folder or of the person have hooks and server, and whether the hook, run as the agent
// runs it, refuses a call. The agent itself is not run.
func (s settings) checkOneFile(ctx context.Context) (words string, good bool) {
	var found, wrong []string
	program := s.agent.Name
	away := ""
	for _, project := range []bool{true, false} {
		s.Project = project
		path := s.oneFilePath()
		if slices.Contains(found, path) {
			continue // the project is the home folder
		}
		f, err := readSettings(resolve(path, maxLinks))
		if err != nil {
			wrong = append(wrong, terminal.Message(err))
			continue
		}
		d, ok := readDocument(f.before)
		if !ok {
			if bytes.Contains(f.before, []byte("parley")) {
				wrong = append(wrong, path+" is no JSON object, or has comments, so it is not known whether it has the hooks")
			}
			continue
		}
		if string(d.get("hooksConfig", "enabled")) == "false" || string(d.get("disableAllHooks")) == "true" {
			wrong = append(wrong, path+" switches all hooks off")
		}
		own := d.own(s.agent.Name)
		if len(own) == 0 {
			continue
		}
		found = append(found, path)
		wanted := s.oneFileHooks(path)
		if missing := missingFrom(own, wanted); len(missing) > 0 {
			wrong = append(wrong, fmt.Sprintf("no hook on %s in %s: parley setup %s enters it", strings.Join(missing, ", "), path, s.agent.Name))
		}
		for _, h := range own {
			switch {
			case h.event != wanted[0].event:
			case h.matcher != "":
				wrong = append(wrong, fmt.Sprintf("the hook on %s in %s is for some tools only", h.event, path))
			case !h.isShut(s.agent.Name):
				wrong = append(wrong, fmt.Sprintf("the hook on %s in %s lets a call run where it fails: parley setup %s enters it anew", h.event, path, s.agent.Name))
			default:
				if failed := tryHook(ctx, s.Folder, s.State, h); failed != "" {
					wrong = append(wrong, fmt.Sprintf("the hook on %s in %s was run, and %s", h.event, path, failed))
				}
				away = WhenAway(s.agent, hook.Away(flagOf(h.args, "--when-away")))
			}
		}
		wrong = append(wrong, s.wrongProgram(ctx, "hooks in "+path, own[0].program, "")...)
		var server mcpServer
		if json.Unmarshal(d.get("mcpServers", hook.ServerName), &server) != nil || !isParley(server.Command) {
			wrong = append(wrong, fmt.Sprintf("no MCP server in %s, so the model has no tools for mail: parley setup %s enters it", path, s.agent.Name))
		}
	}
	version, isThere := versionOf(ctx, program)
	switch {
	case len(wrong) > 0:
		return strings.Join(wrong, "; "), false
	case len(found) > 1:
		return fmt.Sprintf("both the project's and your own hooks are entered, so each call is asked about twice: parley setup %s --remove, and enter one", s.agent.Name), false
	case len(found) == 0 && isThere:
		return "not set up: parley setup " + s.agent.Name, true
	case len(found) == 0:
		return "", true
	}
	seen := ", version " + version
	if !isThere {
		seen = "; the program " + program + " is not on the path"
	}
	return "asks about calls that its own rules let through" + seen + ": the hook was run, and refused a call. " + s.agent.Title + " lets a call run where its shell is killed or the hook takes too long. " +
		"Where no node runs, or nobody follows the inbox: " + away, true
}

// tryTime bounds a run of a hook.
const tryTime = 10 * time.Second

// tryHook runs the command of a hook as the agent does, with a call that does nothing, and returns what is wrong with the answer; "" if it
// refuses the call for this node.
func tryHook(ctx context.Context, folder, state string, h ownHook) string {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	token := rand.Text()
	c := exec.CommandContext(ctx, "sh", "-c", h.Command)
	c.Dir, c.Env = folder, append(os.Environ(), hook.ProbeVariable+"="+token)
	c.Stdin = strings.NewReader(string(plainJSON(map[string]any{
		"hook_event_name": h.event, "session_id": token, "cwd": folder, "tool_name": "run_shell_command", "tool_input": map[string]any{"command": "true"},
	})))
	out, err := c.Output()
	var answer hook.Response
	switch {
	case err != nil:
		return fmt.Sprintf("it failed: %v", terminal.Reason(err))
	case json.Unmarshal(out, &answer) != nil || answer.Decision != "deny":
		return "it did not refuse a call"
	case answer.Reason != hook.ProbeReason(token, state):
		return "it asks another node"
	}
	return ""
}
