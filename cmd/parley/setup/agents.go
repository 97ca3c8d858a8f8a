package setup

import (
	"fmt"
	"path/filepath"

	"parley"
	"parley/cmd/parley/hook"
)

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
	hooks := filepath.Join(s.Folder, ".claude", "settings.json")
	servers := filepath.Join(s.Folder, ".mcp.json")
	if !s.Project {
		hooks = filepath.Join(s.Home, ".claude", "settings.json")
		servers = filepath.Join(s.Home, ".claude.json")
		if folder, ok := s.Env("CLAUDE_CONFIG_DIR"); ok && filepath.IsAbs(folder) {
			hooks, servers = filepath.Join(folder, "settings.json"), filepath.Join(folder, ".claude.json")
		}
	}
	file, err := s.hookFile(hooks)
	if err != nil {
		return nil, err
	}
	server, err := s.server()
	if err != nil {
		return nil, err
	}
	mcp, err := enterJSON(servers, map[string]any{"mcpServers": map[string]mcpServer{serverName: server}}, func(o object) (object, error) {
		return enterServer(o, server)
	})
	return []File{file, mcp}, err
}

// codex enters the hook in hooks.json and the MCP server in config.toml, below the home folder (or CODEX_HOME) or in a
// project's .codex. Codex takes hooks in either file. The one in JSON can be changed without touching the person's
// comments.
func (s settings) codex() ([]File, error) {
	folder := filepath.Join(s.Folder, ".codex")
	if !s.Project {
		folder = filepath.Join(s.Home, ".codex")
		if set, ok := s.Env("CODEX_HOME"); ok && filepath.IsAbs(set) {
			folder = set
		}
	}
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
	return []File{file, mcp}, err
}

// hookFile returns the file with the hook entered.
func (s settings) hookFile(path string) (File, error) {
	command, err := s.hookCommand()
	if err != nil {
		return File{}, err
	}
	own := ownHook(command)
	alone, _ := enterHook(nil, s.agent.Name, own) // nothing is an object
	return enterJSON(path, alone.encode(), func(o object) (object, error) {
		entered, ok := enterHook(o, s.agent.Name, own)
		if !ok {
			return nil, fmt.Errorf("its hooks are not as they should be")
		}
		return entered, nil
	})
}

// server returns the entry of the MCP server.
func (s settings) server() (mcpServer, error) {
	self, err := program()
	return mcpServer{Type: "stdio", Command: self, Args: s.arguments("mcp", "--as", Asker(s.agent, s.Options).Name)}, err
}
