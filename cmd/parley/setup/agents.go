package setup

import (
	"fmt"
	"path/filepath"

	"parley"
	"parley/cmd/parley/hook"
)

// LeastClaudeCode is the least version of Claude Code whose PreToolUse asks in every mode, and takes a form's answers.
const LeastClaudeCode = "2.1.85"

// Files returns the files of a coding agent's settings with the entries of Parley. It writes nothing.
func Files(agent hook.Agent, o Options) ([]File, error) {
	s := settings{Options: o, agent: agent}
	switch agent.Name {
	case hook.ClaudeCode().Name:
		return s.claudeCode()
	case hook.Codex().Name:
		return s.codex()
	}
	return nil, parley.Refuse(parley.InvalidArgument, "%s has no settings that are known here", agent.Title)
}

// claudeCode enters hook and MCP server where Claude Code's references have them. Hooks are in settings.json: for a
// person below the home folder (or CLAUDE_CONFIG_DIR), for a project in its .claude. MCP servers are in .claude.json for
// a person, and in .mcp.json for a project.
func (s settings) claudeCode() ([]File, error) {
	files := s.claudeFiles()
	file, err := s.hookFile(files.hooks)
	if err != nil {
		return nil, err
	}
	server, err := s.server()
	if err != nil {
		return nil, err
	}
	if file.Changed {
		fmt.Fprintf(s.Notes, "note: asks in every mode about calls that your settings do not allow; needs Claude Code %s or later\n", LeastClaudeCode)
	}
	mcp, err := enterJSON(files.servers, map[string]any{"mcpServers": map[string]mcpServer{hook.ServerName: server}}, func(o object) (object, error) {
		return enterServer(o, server)
	})
	return []File{file, mcp}, err
}

// codex enters the hooks in hooks.json and the MCP server in config.toml. No hook answers the questions of Codex, so it
// notes in AGENTS.md that ask_user asks a person. The first two are below the home folder (or CODEX_HOME) or in a
// project's .codex. Codex takes hooks in either file. The one in JSON can be changed without touching the person's
// comments.
func (s settings) codex() ([]File, error) {
	folder := s.codexFolder()
	file, err := s.hookFile(filepath.Join(folder, "hooks.json"))
	if err != nil {
		return nil, err
	}
	server, err := s.server()
	if err != nil {
		return nil, err
	}
	mcp, err := enterTOML(filepath.Join(folder, "config.toml"), server)
	if err == nil && file.Changed {
		fmt.Fprintln(s.Notes, "note: Codex runs a hook once it is trusted: type /hooks there")
	}
	if err != nil {
		return nil, err
	}
	instructions := filepath.Join(folder, "AGENTS.md")
	if s.Project {
		instructions = filepath.Join(s.Folder, "AGENTS.md")
	}
	words, err := enterMarkdown(instructions)
	return []File{file, mcp, words}, err
}

// codexFolder returns the folder of a person's configuration of Codex, or of the project's.
func (s settings) codexFolder() string {
	if s.Project {
		return filepath.Join(s.Folder, ".codex")
	}
	if folder, ok := s.Env("CODEX_HOME"); ok && filepath.IsAbs(folder) {
		return folder
	}
	return filepath.Join(s.Home, ".codex")
}

// hookFile returns the file with the hooks entered.
func (s settings) hookFile(path string) (File, error) {
	own, err := s.hooks()
	if err != nil {
		return File{}, err
	}
	alone, _ := enterHooks(nil, s.agent.Name, own) // nothing is an object
	return enterJSON(path, alone.encode(), func(o object) (object, error) {
		entered, ok := enterHooks(o, s.agent.Name, own)
		if !ok {
			return nil, fmt.Errorf("its hooks are not as they should be")
		}
		return entered, nil
	})
}

// hooks returns the hooks of the agent.
func (s settings) hooks() ([]eventHook, error) {
	command, err := s.hookCommand()
	if s.agent.Name != hook.ClaudeCode().Name {
		return codexHooks(command), err
	}
	return s.claudeHooks(command), err
}

// codexHooks returns the hooks of Codex. It asks on PermissionRequest, and withdraws approvals on the others.
func codexHooks(command string) []eventHook {
	return []eventHook{ownHook(hook.PermissionRequest, command), endHook(hook.PostToolUse, command), endHook(hook.Stop, command)}
}

// claudeHooks returns the hooks of Claude Code. It asks in every mode on PreToolUse, and on PermissionRequest about calls
// that PreToolUse leaves. On the other events it withdraws approvals.
func (s settings) claudeHooks(command string) []eventHook {
	return []eventHook{
		ownHook(hook.PreToolUse, command), ownHook(hook.PermissionRequest, command+" --skip-asked"),
		endHook(hook.PostToolUse, command), endHook(hook.SubagentStop, command), endHook(hook.Stop, command), endHook(hook.SessionEnd, command),
	}
}

// claudeFiles are the paths of Claude Code's settings.
type claudeFiles struct{ hooks, servers string }

// claudeFiles returns the paths of a person's settings, or of the project's.
func (s settings) claudeFiles() claudeFiles {
	if s.Project {
		return claudeFiles{filepath.Join(s.Folder, ".claude", "settings.json"), filepath.Join(s.Folder, ".mcp.json")}
	}
	if folder, ok := s.Env("CLAUDE_CONFIG_DIR"); ok && filepath.IsAbs(folder) {
		return claudeFiles{filepath.Join(folder, "settings.json"), filepath.Join(folder, ".claude.json")}
	}
	return claudeFiles{filepath.Join(s.Home, ".claude", "settings.json"), filepath.Join(s.Home, ".claude.json")}
}

// server returns the entry of the MCP server. It acts for the same agent as the hook.
func (s settings) server() (mcpServer, error) {
	self, err := program()
	args := []string{"mcp", "--for", s.agent.Name}
	if s.As != "" {
		args = []string{"mcp", "--as", s.As}
	}
	return mcpServer{Type: "stdio", Command: self, Args: s.arguments(args...)}, err
}
